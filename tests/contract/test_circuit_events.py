"""What circuits did: every change of state leaves an event, orders too; read page by page, kept for a week and in bounds."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from chokaq.lifecycle.circuit import CircuitState, Forced
from chokaq.store.circuits import CircuitEvent
from chokaq.store.errors import StoreError, StoreRefused
from chokaq.store.protocol import Session
from chokaq.store.records import CrashPolicies
from tests.contract.test_circuits import ODD, change
from tests.support.holder import Holder
from tests.support.ids import new_id
from tests.support.jobs import QUEUE, TYPE, death
from tests.support.lab import Lab

CLOSED, OPEN, HALF_OPEN = CircuitState
WEEK = 7 * 86_400_000
KEPT_TRIES, KEPT_OTHERS = 1_000, 2_000

States = list[tuple[CircuitState | None, CircuitState | None]]


def states(events: list[CircuitEvent]) -> States:
    """From and to, oldest first."""
    return [(event.before, event.after) for event in reversed(events)]


def test_a_circuit_that_opens_leaves_an_event_with_all_that_was_told(session: Session) -> None:
    holder = Holder(session)
    session.report_circuits(holder.worker, [change(ODD.upper(), changed_ms=90_000, last_error='мод."Ошибка"\n😀')])

    [event] = session.list_circuit_events(ODD.upper())

    assert (event.type_key, event.before, event.after, event.failures) == (ODD, CLOSED, OPEN, 5)
    assert (event.worker_id, event.host, event.queue) == (holder.id, "host-1", QUEUE)
    assert event.last_error == 'мод."Ошибка"\n😀'
    assert (event.forced, event.actor, event.reason, event.worker_ended_at) == (None, None, None, None)
    [seen] = session.list_circuits().circuits
    assert event.at == seen.changed_at, "the instant of the change, by the database's clock, not that of the report"


def test_a_report_without_another_state_leaves_none_and_a_repeat_no_second_one(session: Session) -> None:
    holder = Holder(session)
    session.report_circuits(holder.worker, [change(state=CLOSED, failures=3, generation=0)])
    assert session.list_circuit_events(TYPE) == []

    for _ in range(2):
        session.report_circuits(holder.worker, [change(failures=5, generation=1)])
    session.report_circuits(holder.worker, [change(failures=5, generation=1, next_probe_ms=3)])

    assert states(session.list_circuit_events(TYPE)) == [(CLOSED, OPEN)]


def test_the_way_of_a_circuit_can_be_followed_and_a_closing_tells_what_it_ended(session: Session) -> None:
    holder = Holder(session)
    for state, failures, generation, ago in (
        (OPEN, 5, 1, 90_000), (HALF_OPEN, 5, 2, 60_000), (OPEN, 6, 3, 59_000), (OPEN, 7, 5, 29_000), (HALF_OPEN, 7, 6, 2_000),
        (CLOSED, 0, 7, 1_000),
    ):  # fmt: skip
        told = change(state=state, failures=failures, generation=generation, changed_ms=ago)
        session.report_circuits(holder.worker, [told])

    events = session.list_circuit_events(TYPE)

    assert states(events) == [
        (CLOSED, OPEN), (OPEN, HALF_OPEN), (HALF_OPEN, OPEN), (OPEN, OPEN), (OPEN, HALF_OPEN), (HALF_OPEN, CLOSED),
    ]  # fmt: skip
    assert [event.failures for event in events] == [7, 7, 7, 6, 5, 5]
    assert [event.is_try for event in events] == [False, True, True, True, True, False]
    assert states(session.list_circuit_events(TYPE, tries=False)) == [(CLOSED, OPEN), (HALF_OPEN, CLOSED)]


def test_each_worker_and_each_type_has_a_way_of_its_own(session: Session) -> None:
    one, other = Holder(session), Holder(session, "reports")
    session.report_circuits(one.worker, [change(changed_ms=2_000), change("b.v1", changed_ms=1_000)])
    session.report_circuits(other.worker, [change(changed_ms=500)])

    events = session.list_circuit_events(TYPE)

    assert [(event.worker_id, event.queue) for event in events] == [(other.id, "reports"), (one.id, QUEUE)]
    assert [event.type_key for event in session.list_circuit_events("B.V1")] == ["b.v1"]


def test_an_ended_worker_leaves_none_any_more_and_its_end_is_told_with_what_it_left(session: Session) -> None:
    by, gone = Holder(session, ""), Holder(session)
    session.report_circuits(gone.worker, [change()])
    session.release_worker(by.worker, death(gone.id, "crash"), CrashPolicies())
    session.report_circuits(gone.worker, [change(state=CLOSED, generation=2)])

    [event] = session.list_circuit_events(TYPE)

    assert event.after is OPEN
    assert event.worker_ended_at is not None
    assert event.worker_ended_at >= event.at


def test_orders_stand_among_the_events(session: Session) -> None:
    holder = Holder(session)
    session.report_circuits(holder.worker, [change(changed_ms=5_000)])
    request = new_id()
    for _ in range(2):
        session.force_circuit(TYPE.upper(), Forced.CLOSED, "Анна", "“storm” 😀\nsee #7", request=request)
    session.force_circuit(TYPE, Forced.NO, "bob")

    cleared, forced, opened = session.list_circuit_events(TYPE, tries=False)

    assert (forced.forced, forced.actor, forced.reason) == (Forced.CLOSED, "Анна", "“storm” 😀\nsee #7")
    assert (forced.before, forced.after, forced.worker_id, forced.failures) == (None, None, None, None)
    assert (cleared.forced, cleared.actor, cleared.reason) == (Forced.NO, "bob", None)
    assert opened.after is OPEN
    assert forced.at == session.list_audit(TYPE)[-1].at


@pytest.mark.parametrize(
    "write",
    [
        lambda session, holder: session.report_circuits(
            holder.worker, [change(state=CLOSED, failures=0, generation=2)]
        ),
        lambda session, holder: session.force_circuit(TYPE, Forced.CLOSED, "bob"),
    ],
    ids=["report", "order"],
)
def test_a_change_without_its_event_is_none(
    session: Session, lab: Lab, write: Callable[[Session, Holder], object]
) -> None:
    holder = Holder(session)
    session.report_circuits(holder.worker, [change()])
    before = lab.snapshot("Circuits", "CircuitOrders", "AuditLog", "CircuitEvents")

    with lab.broken("CircuitEvents"), pytest.raises(StoreError):
        write(session, holder)

    assert lab.snapshot("Circuits", "CircuitOrders", "AuditLog", "CircuitEvents") == before
    write(session, holder)
    assert lab.count("CircuitEvents") == 2


def test_pages_follow_each_other_also_within_one_millisecond(session: Session, lab: Lab) -> None:
    workers = [Holder(session) for _ in range(7)]
    for holder in workers:
        session.report_circuits(holder.worker, [change(changed_ms=60_000)])
    lab.execute("UPDATE {CircuitEvents} SET AtUtc = (SELECT MIN(AtUtc) FROM {CircuitEvents})")
    seen: list[CircuitEvent] = []
    while True:
        page = session.list_circuit_events(TYPE, 3, seen[-1].place if seen else None)
        seen += page
        if len(page) < 3:
            break

    assert len({event.at for event in seen}) == 1
    assert {event.worker_id for event in seen} == {holder.id for holder in workers}
    assert [event.id for event in seen] == sorted((event.id for event in seen), reverse=True)
    assert len(seen) == 7


def test_only_the_last_hours_when_asked(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    session.report_circuits(holder.worker, [change()])
    lab.age_all("CircuitEvents", "AtUtc", 3_600_000)
    session.report_circuits(holder.worker, [change(state=CLOSED, failures=0, generation=2)])

    assert states(session.list_circuit_events(TYPE, since_ms=3_500_000)) == [(OPEN, CLOSED)]
    assert states(session.list_circuit_events(TYPE, since_ms=3_700_000)) == [(CLOSED, OPEN), (OPEN, CLOSED)]
    assert len(session.list_circuit_events(TYPE, since_ms=400 * 86_400_000)) == 2


def test_a_type_key_that_is_none_is_refused(session: Session) -> None:
    for key in ("", "ü"):
        with pytest.raises(StoreRefused):
            session.list_circuit_events(key)


# ── how long they are kept ────────────────────────────────────────────────────────────────────────────────────────────
def test_events_are_kept_for_a_week(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    session.report_circuits(holder.worker, [change(), change("b.v1")])
    session.force_circuit(TYPE, Forced.OPEN, "ann")
    lab.age_all("CircuitEvents", "AtUtc", WEEK - 60_000)
    assert session.purge_leftovers() == 0
    lab.age_all("CircuitEvents", "AtUtc", 120_000, f"TypeKey = '{TYPE}'")

    assert session.purge_leftovers() == 2

    assert [row["TypeKey"] for row in lab.rows("CircuitEvents")] == ["b.v1"]
    assert session.purge_leftovers() == 0


def test_of_each_type_a_bounded_number_is_kept_and_tries_never_push_out_when_it_began(
    session: Session, lab: Lab
) -> None:
    fill(lab, TYPE, CLOSED, OPEN, 1)
    fill(lab, TYPE, OPEN, HALF_OPEN, KEPT_TRIES + 30)
    fill(lab, "b.v1", CLOSED, OPEN, KEPT_OTHERS + 20)
    assert session.purge_leftovers() == 50
    assert session.purge_leftovers() == 0

    kept = session.list_circuit_events(TYPE, 1_001)
    assert len(kept) == KEPT_TRIES + 1
    assert [event.failures for event in session.list_circuit_events(TYPE, tries=False)] == [0]
    assert kept[0].failures == KEPT_TRIES + 29, "the newest stay"
    assert lab.count("CircuitEvents", "TypeKey = 'b.v1'") == KEPT_OTHERS
    assert lab.count("CircuitEvents", "TypeKey = 'b.v1' AND Failures < 20") == 0


def test_a_purge_takes_no_more_than_its_size_of_a_kind(session: Session, lab: Lab) -> None:
    fill(lab, TYPE, CLOSED, OPEN, 25)
    lab.age_all("CircuitEvents", "AtUtc", WEEK + 1)
    assert [session.purge_leftovers(10) for _ in range(4)] == [10, 10, 5, 0]


def fill(lab: Lab, type_key: str, before: CircuitState, after: CircuitState, count: int) -> None:
    """Events of the last hour, a second apart; Failures numbers them, the oldest 0."""
    if lab.kind == "sqlite":
        at = "CAST(strftime('%s', 'now') AS INTEGER) * 1000 - {age} * 1000"
    else:
        at = "DATEADD(second, -{age}, SYSUTCDATETIME())"
    for start in range(0, count, 500):
        rows = ", ".join(
            f"('{type_key}', {at.format(age=count - number)}, {int(before)}, {int(after)}, {number})"
            for number in range(start, min(start + 500, count))
        )
        lab.execute("INSERT INTO {CircuitEvents} (TypeKey, AtUtc, FromState, ToState, Failures) VALUES " + rows)


def test_an_event_of_a_worker_that_is_known_no_more_is_still_told(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    session.report_circuits(holder.worker, [change()])
    lab.execute(f"DELETE FROM {{Workers}} WHERE WorkerId = '{holder.id}'")

    [event] = session.list_circuit_events(TYPE)

    assert (event.worker_id, event.host, event.worker_ended_at) == (holder.id, "host-1", None)
    assert event.at.utcoffset() == timedelta(0)
