"""`chokaq circuits`, and what `status` says of them."""

from pathlib import Path

import pytest

from chokaq.lifecycle.circuit import CircuitState
from chokaq.store.circuits import CircuitChange
from chokaq.store.open import open_store
from chokaq.store.options import DatabaseSettings
from tests.support.jobs import worker_info

from .conftest import Cli

KEY = "email.send.v1"


def report(folder: Path, *changes: CircuitChange) -> None:
    """A worker and maintenance are alive; the worker says this."""
    session = open_store(DatabaseSettings(url=f"sqlite:///{folder}/chokaq.db")).session()
    session.register_worker(worker_info(""))
    worker = session.register_worker(worker_info("emails"))
    session.report_circuits(worker, list(changes))
    session.close()


def opened(type_key: str = KEY) -> CircuitChange:
    return CircuitChange(
        type_key=type_key, state=CircuitState.OPEN, failures=5, generation=1, next_probe_ms=25_000, last_error="OSError"
    )


def test_without_failures_and_orders_it_says_so(cli: Cli) -> None:
    cli("schema", "apply")
    assert "Every circuit is closed" in cli("circuits").out
    assert cli("circuits", "--json").json == {"circuits": []}


def test_an_open_circuit_is_listed_and_makes_status_end_with_1(cli: Cli, folder: Path) -> None:
    report(folder, opened(), CircuitChange(type_key="b.v1", state=CircuitState.CLOSED, failures=2, generation=0))
    for arguments in (("circuits",), ("circuits", "list")):
        out = cli(*arguments).out
        assert KEY in out
        assert "1/0/1" in out
        assert "OSError" in out
        assert out.index(KEY) < out.index("b.v1")
    first, second = cli("circuits", "--json").json["circuits"]
    assert (first["type_key"], first["state"], first["failures"], first["last_error"]) == (KEY, "open", 5, "OSError")
    assert 0 < first["next_probe_ms"] <= 25_000
    assert first["reports"][0]["queue"] == "emails"
    assert (second["state"], second["order"]) == ("closed", None)

    out = cli("status", code=1).out
    assert f"The circuit of {KEY} is open on 1 worker" in out
    assert "half-open" not in out
    found = cli("status", "--json", code=1).json
    assert [circuit["type_key"] for circuit in found["circuits"]] == [KEY]


def test_a_circuit_is_forced_and_cleared_with_who_and_why(cli: Cli, folder: Path) -> None:
    report(folder, opened())
    ran = cli("circuits", "force", KEY.upper(), "closed", "--reason", "it is a test", "--actor", "anna", "--json").json
    assert (ran["state"], ran["order"]["forced"], ran["order"]["actor"], ran["order"]["reason"]) == (
        "closed",
        "closed",
        "anna",
        "it is a test",
    )
    out = cli("circuits").out
    assert "closed (forced)" in out
    assert "anna" in out
    assert "it is a test" in out
    status = cli("status").out
    assert f"forced closed by anna (it is a test): `chokaq circuits force {KEY} clear`" in status
    assert "Nothing is wrong." in status
    assert cli("circuits", "force", KEY, "clear", "--json").json["order"] is None


def test_an_order_about_a_type_nobody_has_met_asks_whether_the_key_is_right(cli: Cli) -> None:
    out = cli("circuits", "force", "emial.send.v1", "open").out
    assert "Is the key right?" in out
    assert "open (forced)" in out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["force", KEY, "ajar"], 2, "Invalid value for"),
        (["force", KEY], 2, "Missing argument"),
        (["force", " x", "open"], 1, "is not a type key"),
        (["force", KEY, "open", "--actor", " "], 1, "the actor is empty"),
    ],
)
def test_a_wrong_order_is_one_clear_message(cli: Cli, arguments: list[str], code: int, message: str) -> None:
    ran = cli("circuits", *arguments, code=code)
    assert message in ran.err
    assert ran.out == ""


def test_the_history_of_a_type_tells_when_who_and_why_page_by_page(cli: Cli, folder: Path) -> None:
    report(folder, opened())
    cli("circuits", "force", KEY, "closed", "--reason", "it is a test", "--actor", "anna")

    out = cli("circuits", "history", KEY.upper()).out
    assert out.index("forced closed") < out.index("opened")
    for told in ("anna", "it is a test", "host-1", "emails", "OSError"):
        assert told in out
    first = cli("circuits", "history", KEY, "-n", "1", "--json").json
    assert [(event["forced"], event["actor"]) for event in first["events"]] == [("closed", "anna")]
    rest = cli("circuits", "history", KEY, "--after", first["after"], "--json").json
    assert [(event["before"], event["after"], event["failures"]) for event in rest["events"]] == [("closed", "open", 5)]
    assert rest["after"] is None
    assert "More: --after" in cli("circuits", "history", KEY, "-n", "1").out


def test_a_history_without_events_says_so_and_what_is_out_of_bounds_is_told(cli: Cli) -> None:
    cli("schema", "apply")
    assert "Nothing of the kind" in cli("circuits", "history", KEY).out
    assert "kept for 7 days" in cli("circuits", "history", KEY, "--since", "8d", code=1).err
    assert "must be a duration" in cli("circuits", "history", KEY, "--since", "long", code=2).err
