"""Logs: one line per event, no secrets, JSON that parses."""

import json
import logging

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from chokaq.observe import configure_logging, redact, redact_text, tell_repeats
from tests.observe.conftest import fresh


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


def test_secrets_stay_out_of_the_fields_of_jobs_commands_and_repeats(capfd: pytest.CaptureFixture[str]) -> None:
    with fresh():
        configure_logging("info", "json", [r"card-\d+"], repeats=1)
        log = structlog.get_logger("chokaq")
        for _ in range(2):
            log.info("job_retried", type="pay.v1", error="Refused", message="PWD=hunter2; card-77 declined")
            log.warning("command_rejected", command="purge card-77", target="card-77", why="token=hunter2", actor="a")
            log.error("schema_apply_failed", store="mssql://sa:hunter2@h/d", error="mssql://sa:hunter2@h/d")
        tell_repeats(all_of_them=True)
    _, err = capfd.readouterr()
    lines = [json.loads(line) for line in err.splitlines()]
    assert [line["event_id"] for line in lines] == [2022, 6000, 5002] * 2
    assert [line["folded"] for line in lines[3:]] == [1, 1, 1]
    assert lines[4]["command"] == "purge ***"
    assert "hunter2" not in err
    assert "card-77" not in err


def test_numbers_stand_on_the_console_as_well(capfd: pytest.CaptureFixture[str]) -> None:
    with fresh():
        configure_logging("info", "console")
        structlog.get_logger("chokaq").info("worker_started", queue="emails")
    assert "event_id=1000" in capfd.readouterr().err


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
