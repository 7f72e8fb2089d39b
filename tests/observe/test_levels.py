"""The level of a process that runs."""

import logging
import os
import signal

import pytest
import structlog

from chokaq.observe import configure_logging, levels
from chokaq.observe.levels import DEBUG_SIGNAL, NORMAL_SIGNAL, set_level, signal_name, take_level_signals, verbose
from tests.observe.conftest import Lines, fresh

_log = structlog.get_logger("chokaq")


def events(lines: Lines) -> list[str]:
    return [line["event"] for line in lines.read()]


def chatter() -> None:
    _log.debug("job_succeeded")
    logging.getLogger("library").debug("talk")
    _log.info("draining")


def test_a_level_is_changed_for_every_logger_and_changed_back(lines: Lines) -> None:
    lines.configure("info")
    chatter()
    assert events(lines) == ["draining"]
    assert not verbose.debug
    set_level("debug")
    chatter()
    assert events(lines) == ["log_level_changed", "job_succeeded", "talk", "draining"]
    assert verbose.debug
    set_level("error")
    chatter()
    assert events(lines) == ["log_level_changed"], "told at the finer of the two levels"
    set_level("error")
    assert events(lines) == []


@pytest.mark.parametrize("configured", ["info", "warning"])
def test_two_signals_turn_debug_on_and_off(lines: Lines, configured: str) -> None:
    before = {number: signal.getsignal(number) for number in (DEBUG_SIGNAL, NORMAL_SIGNAL)}
    lines.configure(configured)
    take_level_signals()
    try:
        signal.raise_signal(DEBUG_SIGNAL)
        signal.raise_signal(DEBUG_SIGNAL)
        chatter()
        signal.raise_signal(NORMAL_SIGNAL)
        found = lines.read()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert [line["event"] for line in found] == [
        "log_level_changed",
        "job_succeeded",
        "talk",
        "draining",
        "log_level_changed",
    ]
    assert [line["level_now"] for line in found if line["event"] == "log_level_changed"] == ["debug", configured]
    assert levels._state.level == configured


def test_a_forked_process_goes_back_to_what_the_supervisor_says_is_configured(lines: Lines) -> None:
    lines.configure("info")
    told, asked = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(told, 1)
        levels.on_level_signal(NORMAL_SIGNAL)
        configure_logging("critical", "json")  # an application's own doing: it is no word for the others
        os._exit(levels.LEVELS[levels._state.level])
    levels.configure_level("error")
    os.write(asked, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == levels.LEVELS["critical"]
    os.close(told)
    os.close(asked)
    assert levels.configured_level() == "error"
    changes = [line for line in lines.read() if line["event"] == "log_level_changed"]
    assert sorted((line["level_now"], line["pid"]) for line in changes) == sorted(
        [("error", os.getpid()), ("error", child)]
    )


def test_an_application_that_configured_structlog_keeps_its_filter() -> None:
    seen: list[str] = []

    def keep(_logger: object, _method: str, event: dict[str, object]) -> str:
        seen.append(str(event["event"]))
        raise structlog.DropEvent

    with fresh(logging.NullHandler()):
        configure_logging("info", "json")
        structlog.configure(processors=[keep], wrapper_class=structlog.make_filtering_bound_logger(30))
        root = logging.getLogger().level
        set_level("debug")
        _log.info("draining")
        _log.warning("job_fatal")
        assert logging.getLogger().level == root
    assert seen == ["job_fatal"]


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGHUP, "SIGHUP"), (DEBUG_SIGNAL, "SIGRTMIN+22"), (NORMAL_SIGNAL, "SIGRTMIN+23")]
)
def test_signals_have_the_names_that_kill_takes(number: int, name: str) -> None:
    assert signal_name(number) == name
