"""Repeats: the first lines of a minute, then one with the count."""

import os
import threading

import pytest
import structlog

from chokaq.observe import tell_repeats
from chokaq.observe.folding import MOST_KEYS, Folding
from tests.observe.conftest import Lines


class Clock:
    """Stands until it is set."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def retried(count: int, **fields: object) -> None:
    log = structlog.get_logger("chokaq")
    for number in range(count):
        log.info("job_retried", **{"job": f"J{number}", "type": "a.v1", "queue": "q", "delay": number, **fields})


def test_what_repeats_is_told_once_with_its_count_when_the_minute_is_over(lines: Lines, clock: Clock) -> None:
    lines.configure("info", repeats=3, clock=clock)
    retried(10)
    assert [line["job"] for line in lines.read()] == ["J0", "J1", "J2"]
    clock.now += 59.9
    retried(1)
    tell_repeats()
    assert lines.read() == []
    clock.now += 0.1
    tell_repeats()
    [told] = lines.read()
    assert (told["event"], told["event_id"], told["level"], told["folded"]) == ("job_retried", 2022, "info", 8)
    assert (told["type"], told["queue"], told["seconds"]) == ("a.v1", "q", 60)
    assert "job" not in told
    tell_repeats()
    assert lines.read() == []
    retried(1)
    assert [line["job"] for line in lines.read()] == ["J0"], "a new minute"


def test_another_event_of_the_process_is_occasion_enough(lines: Lines, clock: Clock) -> None:
    lines.configure("info", repeats=1, clock=clock)
    retried(3)
    clock.now += 60
    structlog.get_logger("chokaq").info("draining", queue="q")
    assert [(line["event"], line.get("folded")) for line in lines.read()] == [
        ("job_retried", None),
        ("job_retried", 2),
        ("draining", None),
    ]


def test_at_the_end_nothing_is_forgotten(lines: Lines, clock: Clock) -> None:
    lines.configure("info", repeats=1, clock=clock)
    retried(5)
    lines.read()
    tell_repeats(all_of_them=True)
    assert [line["folded"] for line in lines.read()] == [4]
    tell_repeats(all_of_them=True)
    assert lines.read() == []


def test_what_differs_in_a_key_field_is_no_repeat(lines: Lines, clock: Clock) -> None:
    lines.configure("info", repeats=1, clock=clock)
    retried(2, type="a.v1")
    retried(2, type="b.v1")
    retried(2, reason="Timeout")
    structlog.get_logger("chokaq").warning("job_fatal", type="a.v1", queue="q", message="x")
    assert len(lines.read()) == 4


def test_debug_lines_applications_and_libraries_are_never_folded(lines: Lines, clock: Clock) -> None:
    lines.configure("debug", repeats=1, clock=clock)
    for _ in range(3):
        structlog.get_logger("chokaq").debug("job_succeeded", type="a.v1")
        structlog.get_logger().info("job_retried")
        structlog.get_logger("shop").info("stopped")
        structlog.get_logger("chokaq").info("no_event_of_ours")
    found = lines.read()
    assert len(found) == 12
    assert {line["event"] for line in found if "event_id" in line} == {"job_succeeded"}


def test_without_a_limit_all_are_written(lines: Lines, clock: Clock) -> None:
    lines.configure("info", repeats=None, clock=clock)
    retried(50)
    tell_repeats(all_of_them=True)
    assert len(lines.read()) == 50


def test_very_many_kinds_of_lines_are_counted_together(lines: Lines, clock: Clock) -> None:
    lines.configure("info", repeats=1, clock=clock)
    for number in range(MOST_KEYS + 10):
        retried(1, type=f"t{number}")
    assert len(lines.read()) == MOST_KEYS + 1
    tell_repeats(all_of_them=True)
    assert [line["folded"] for line in lines.read()] == [9]


def test_threads_count_together(lines: Lines, clock: Clock) -> None:
    lines.configure("info", repeats=7, clock=clock)
    threads = [threading.Thread(target=retried, args=(200,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tell_repeats(all_of_them=True)
    found = lines.read()
    assert [line["folded"] for line in found if "folded" in line] == [793]
    assert len(found) == 8


def test_a_child_does_not_tell_of_its_parents_repeats() -> None:
    folding = Folding(1, Clock())
    logger = type("Named", (), {"name": "chokaq"})()
    folding(logger, "info", {"event": "draining"})
    with pytest.raises(structlog.DropEvent):
        folding(logger, "info", {"event": "draining"})
    child = os.fork()
    if child == 0:
        os._exit(len(folding._seen))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(folding._seen) == 1
