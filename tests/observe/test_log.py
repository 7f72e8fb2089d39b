"""Logs: one line per event, no secrets, JSON that parses."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from chokaq.observe import configure_logging, redact, redact_text


@contextmanager
def fresh(*own: logging.Handler) -> Iterator[None]:
    """Root logging as a new program has it (pytest's own handlers are put in after the fixtures), and back again."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.handlers[:] = own
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()


def test_json_lines_parse_and_hold_no_secrets(capfd: pytest.CaptureFixture[str]) -> None:
    with fresh():
        configure_logging("info", "json")
        log = structlog.get_logger("chokaq")
        log.info(
            "worker_started", url="mssql://sa:p@ss/word@h/d", password="x", nested={"api_key": "y", "n": 1}, text="a\nb"
        )
        log.debug("not_shown")
        try:
            raise ValueError("PWD={p;w};Server=h")
        except ValueError:
            log.exception("broken")
        logging.getLogger("library").warning("took %s s", 3)
    out, err = capfd.readouterr()
    assert out == ""
    events = [json.loads(line) for line in err.splitlines()]
    assert [event["event"] for event in events] == ["worker_started", "broken", "took 3 s"]
    assert events[0]["url"] == "mssql://sa:***@h/d"
    assert (events[0]["password"], events[0]["nested"]) == ("***", {"api_key": "***", "n": 1})
    assert events[0]["time"].endswith("Z")
    assert "p;w" not in err
    assert (events[2]["logger"], events[2]["level"]) == ("library", "warning")


class Card:
    """What an application logs as it is."""

    def __repr__(self) -> str:
        return "Card(4111-1111)"


@pytest.mark.parametrize("format", ["json", "console"])
def test_patterns_act_on_every_part_of_a_line(capfd: pytest.CaptureFixture[str], format: str) -> None:  # noqa: A002
    with fresh():
        configure_logging("info", format, [r"\d{4}-\d{4}", "info"])
        log = structlog.get_logger("chokaq").bind(bound="4111-1111 bound")
        log.info("paid with 4111-1111", card=Card(), error=ValueError("4111-1111"), deep={"a": [("4111-1111",)]}, n=7)
        try:
            raise ValueError("no 4111-1111")
        except ValueError:
            log.exception("broken", stack_info=True)
        logging.getLogger("library").warning("took %s", "4111-1111")
        structlog.get_logger("chokaq").info("plain", deep={1, 2})
    _, err = capfd.readouterr()
    assert "4111" not in err
    assert err.count("***") >= 7
    assert "n=7" in err or json.loads(err.splitlines()[0])["n"] == 7
    assert "info" in err  # the level, which no pattern spoils


def test_an_object_that_cannot_be_shown_costs_no_line(capfd: pytest.CaptureFixture[str]) -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError

        def __str__(self) -> str:
            return "broken"

    with fresh():
        configure_logging("info", "json", ["x"])
        structlog.get_logger("chokaq").info("seen", it=Broken())
    assert json.loads(capfd.readouterr().err)["event"] == "seen"


def test_the_console_shows_an_event_on_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    with fresh():
        configure_logging("warning", "console")
        structlog.get_logger("chokaq").warning("queue_stalled", queue="emails", text="a\nb")
        structlog.get_logger("chokaq").info("not_shown")
    _, err = capfd.readouterr()
    assert len(err.splitlines()) == 1
    assert "queue_stalled" in err
    assert "queue=emails" in err


def test_configuring_twice_says_nothing_twice(capfd: pytest.CaptureFixture[str]) -> None:
    with fresh():
        configure_logging("info", "json")
        configure_logging("info", "json")
        logging.getLogger("library").error("once")
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_an_application_that_set_up_logging_keeps_it() -> None:
    own = logging.NullHandler()
    with fresh(own):
        configure_logging("info", "json")
        assert logging.getLogger().handlers == [own]


@given(
    st.text(
        alphabet=st.characters(min_codepoint=33, max_codepoint=126, blacklist_characters="'\""), min_size=1, max_size=20
    )
)
def test_no_password_of_a_url_is_ever_shown(password: str) -> None:
    assert redact_text(f"cannot reach mssql://sa:{password}@db/x") == "cannot reach mssql://sa:***@db/x"


def test_numbers_are_no_secrets_and_text_without_any_stays() -> None:
    assert redact({"tokens": 35, "url": "http://h:80/x"}) == {"tokens": 35, "url": "http://h:80/x"}
    assert redact_text("a = b; see https://example.com/?x=1") == "a = b; see https://example.com/?x=1"
