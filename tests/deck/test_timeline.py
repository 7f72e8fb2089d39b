"""How many circuits of a type were not closed, out of what their workers told: pure."""

from datetime import UTC, datetime, timedelta
from itertools import count

from chokaq.deck.timeline import SPAN, Read, timeline
from chokaq.lifecycle.circuit import CircuitState, Forced
from chokaq.operations.circuits import summarise
from chokaq.store.circuits import CircuitEvent, CircuitList, CircuitView

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
TYPE = "email.send.v1"
CLOSED, OPEN, HALF_OPEN = CircuitState
_ids = count(1)


def ago(hours: float) -> datetime:
    """So many hours before now."""
    return NOW - timedelta(hours=hours)


def event(
    hours: float, worker: str, before: CircuitState, after: CircuitState, *, ended: float | None = None
) -> CircuitEvent:
    """A change of a worker's circuit; `ended`: so many hours ago the worker ended."""
    return CircuitEvent(
        id=next(_ids), type_key=TYPE, at=ago(hours), before=before, after=after, worker_id=worker, host="h", queue="q", failures=5,
        last_error=None, forced=None, actor=None, reason=None, worker_ended_at=None if ended is None else ago(ended),
    )  # fmt: skip


def order(hours: float, forced: Forced) -> CircuitEvent:
    """An operator's order."""
    return CircuitEvent(
        id=next(_ids), type_key=TYPE, at=ago(hours), before=None, after=None, worker_id=None, host=None, queue=None, failures=None,
        last_error=None, forced=forced, actor="anna", reason=None, worker_ended_at=None,
    )  # fmt: skip


def now_open(worker: str, type_key: str = TYPE) -> CircuitView:
    """A live worker that says its circuit is open."""
    return CircuitView(
        type_key=type_key, worker_id=worker, queue="q", host="h", state=OPEN, failures=5, generation=1, changed_at=ago(200),
        next_probe_ms=None, last_error=None,
    )  # fmt: skip


def steps(*events: CircuitEvent, live: tuple[CircuitView, ...] = ()) -> list[tuple[float, int]]:
    """(hours ago, count) of every step."""
    newest_first = sorted(events, key=lambda one: one.at, reverse=True)
    found = timeline(TYPE, Read(newest_first, False), summarise(CircuitList(list(live), [])), NOW)
    assert (found.start, found.end, found.cut) == (NOW - SPAN, NOW, False)
    return [((NOW - step.at) / timedelta(hours=1), step.workers) for step in found.steps]


def test_a_day_without_events_is_a_flat_line() -> None:
    assert steps() == [(24, 0)]


def test_workers_open_and_close_one_after_the_other() -> None:
    told = [
        event(5, "a", CLOSED, OPEN), event(4, "b", CLOSED, OPEN), event(3, "a", HALF_OPEN, CLOSED), event(1, "b", OPEN, CLOSED),
    ]  # fmt: skip
    assert steps(*told) == [(24, 0), (5, 1), (4, 2), (3, 1), (1, 0)]


def test_what_was_so_before_the_day_began_is_where_the_line_begins() -> None:
    assert steps(event(30, "a", CLOSED, OPEN), event(2, "a", HALF_OPEN, CLOSED)) == [(24, 1), (2, 0)]
    assert steps(event(30, "a", CLOSED, OPEN), event(29, "a", OPEN, CLOSED)) == [(24, 0)]
    assert steps(event(2, "a", OPEN, CLOSED)) == [(24, 1), (2, 0)], "its opening is kept no more"


def test_a_circuit_goes_with_its_worker() -> None:
    assert steps(event(5, "a", CLOSED, OPEN, ended=3)) == [(24, 0), (5, 1), (3, 0)]
    assert steps(event(5, "a", CLOSED, OPEN, ended=3), event(4, "a", OPEN, CLOSED, ended=3)) == [
        (24, 0),
        (5, 1),
        (4, 0),
        (3, 0),
    ]
    assert steps(event(50, "a", CLOSED, OPEN, ended=30)) == [(24, 0)]


def test_a_live_worker_that_has_been_open_for_longer_than_events_are_kept_counts() -> None:
    assert steps(live=(now_open("a"), now_open("b", "other.v1"))) == [(24, 1)]
    assert steps(event(5, "a", CLOSED, OPEN), live=(now_open("a"),)) == [(24, 0), (5, 1)], "not twice"


def test_orders_of_the_day_stand_beside_the_line() -> None:
    read = Read([order(1, Forced.NO), order(3, Forced.OPEN), order(30, Forced.CLOSED)], False)
    found = timeline(TYPE, read, [], NOW)
    assert [(one.at, one.forced, one.actor) for one in found.orders] == [
        (ago(3), Forced.OPEN, "anna"), (ago(1), Forced.NO, "anna"),
    ]  # fmt: skip
    assert [step.workers for step in found.steps] == [0]


def test_a_line_that_does_not_reach_back_a_day_begins_where_it_knows() -> None:
    told = [event(1, "a", OPEN, CLOSED), event(2, "b", CLOSED, OPEN)]
    found = timeline(TYPE, Read(told, True), [], NOW)
    assert (found.start, found.cut) == (ago(2), True)
    assert [step.workers for step in found.steps] == [2, 1]
    older = [*told, event(40, "c", OPEN, CLOSED)]
    assert not timeline(TYPE, Read(older, True), [], NOW).cut


def test_an_event_of_this_moment_does_not_end_the_line_before_itself() -> None:
    late = event(-0.001, "a", CLOSED, OPEN)
    assert timeline(TYPE, Read([late], False), [], NOW).end == late.at
