"""What the circuits of a type did, page by page, and how it is said."""

import pytest

from chokaq.lifecycle.circuit import CircuitState
from chokaq.operations import OperationError, by, force_circuit, list_circuit_events
from chokaq.operations.circuit_history import event_words
from chokaq.operations.cursors import cursor_of
from chokaq.store.circuits import CircuitChange
from chokaq.store.protocol import Session
from tests.support.holder import Holder
from tests.support.jobs import TYPE
from tests.support.lab import Lab

ANNA = by("anna", "the provider is down")
CLOSED, OPEN, HALF_OPEN = CircuitState


def live_through(session: Session) -> None:
    """Opened, tried twice, opened again in between, closed; then forced open and cleared."""
    holder = Holder(session)
    for generation, (state, ago) in enumerate(
        [(OPEN, 9_000), (HALF_OPEN, 8_000), (OPEN, 7_000), (HALF_OPEN, 6_000), (CLOSED, 5_000)], 1
    ):
        session.report_circuits(
            holder.worker,
            [CircuitChange(type_key=TYPE, state=state, failures=5, generation=generation, changed_ms=ago)],
        )
    force_circuit(session, TYPE, "open", ANNA)
    force_circuit(session, TYPE, "closed", ANNA)
    force_circuit(session, TYPE, "clear", ANNA)


def test_every_event_has_words(session: Session) -> None:
    live_through(session)
    found = list_circuit_events(session, TYPE.upper(), tries=True)
    assert found.type_key == TYPE
    assert [event_words(event) for event in reversed(found.events)] == [
        "opened", "tries a job", "opened again", "tries a job", "closed", "forced open", "forced closed", "order cleared",
    ]  # fmt: skip


def test_pages_follow_each_other_without_the_tries(session: Session) -> None:
    live_through(session)
    words: list[str] = []
    after, pages = None, 0
    while True:
        page = list_circuit_events(session, TYPE, 2, after)
        words += [event_words(event) for event in page.events]
        after, pages = page.after, pages + 1
        if after is None:
            break
    assert words == ["order cleared", "forced closed", "forced open", "closed", "opened"]
    assert pages == 3


def test_a_full_last_page_has_no_next(session: Session) -> None:
    live_through(session)
    assert list_circuit_events(session, TYPE, 5).after is None


def test_only_the_last_hours(session: Session, lab: Lab) -> None:
    live_through(session)
    lab.age_all("CircuitEvents", "AtUtc", 7_200_000)
    assert list_circuit_events(session, TYPE, since=3_600).events == []
    assert len(list_circuit_events(session, TYPE, since=3 * 3_600).events) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"type_key": "ü"}, "is not a type key"),
        ({"limit": 0}, "1 to 500 events"),
        ({"limit": 501}, "1 to 500 events"),
        ({"since": 0}, "kept for 7 days"),
        ({"since": 8 * 86_400.0}, "kept for 7 days"),
        ({"after": "no cursor"}, "is no cursor"),
        ({"after": cursor_of("circuit_events", [TYPE, None, False], "12")}, "damaged"),
        ({"after": cursor_of("circuit_events", [TYPE, None, True], "12:1")}, "another filter"),
    ],
)
def test_what_is_out_of_bounds_is_refused(session: Session, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(OperationError, match=message):
        list_circuit_events(session, **({"type_key": TYPE} | arguments))  # type: ignore[arg-type]
