"""The circuits of one job type over the last day: how many workers' were not closed, and when operators ordered what.

Children tell changes, not states: the count is what it was before the oldest change that is known, and all changes since then.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from chokaq.deck.shown import CircuitOrdered, CircuitTimeline, Shut
from chokaq.lifecycle.circuit import CircuitState
from chokaq.operations.circuits import CircuitStatus, check_type
from chokaq.store.circuits import MAX_EVENTS, CircuitEvent
from chokaq.store.protocol import Session

SPAN = timedelta(hours=24)
READ = MAX_EVENTS - 1
"""Events that one timeline reads, at most, the newest."""


class Read(NamedTuple):
    """Events of the week, newest first, without tries: a circuit that tries a job is not closed."""

    events: list[CircuitEvent]
    more: bool
    """There are older ones."""


def read_events(session: Session, type_key: str) -> Read:
    """Look, once. Raises OperationError for what is no type key."""
    found = session.list_circuit_events(check_type(type_key).lower(), READ + 1, tries=False)
    return Read(found[:READ], len(found) > READ)


def timeline(type_key: str, read: Read, circuits: Sequence[CircuitStatus], now: datetime) -> CircuitTimeline:
    """What the chart shows. `circuits`: as they stand now; `now`: by the database's clock."""
    start = now - SPAN
    cut = read.more and read.events[-1].at > start
    if cut:
        start = read.events[-1].at
    at_first = dict[str | None, int]()
    changes = Counter[datetime]()
    for event in read.events:
        if event.forced is not None:
            continue
        before, after = _shut(event.before), _shut(event.after)
        changes[max(event.at, start)] += after - before
        if event.worker_id not in at_first and event.worker_ended_at is not None:
            # The circuit went with its worker.
            changes[max(event.worker_ended_at, event.at, start)] -= after
        at_first[event.worker_id] = before
    count = sum(at_first.values()) + _without_events(type_key, circuits, at_first)
    steps = {start: count}
    for at in sorted(changes):
        count += changes[at]
        steps[at] = count
    return CircuitTimeline(
        type_key=type_key,
        start=start,
        end=max(now, *steps),
        steps=[Shut(at, workers) for at, workers in steps.items()],
        orders=[
            CircuitOrdered(event.at, event.forced, event.actor or "")
            for event in reversed(read.events)
            if event.forced is not None and event.at >= start
        ],
        cut=cut,
    )


def _shut(state: CircuitState | None) -> int:
    return int(state is not None and state is not CircuitState.CLOSED)


def _without_events(type_key: str, circuits: Iterable[CircuitStatus], known: Iterable[str | None]) -> int:
    """Live workers whose circuit has been open since before the oldest event that was read."""
    seen = set(known)
    return sum(
        _shut(view.state)
        for circuit in circuits
        if circuit.type_key == type_key
        for view in circuit.reports
        if view.worker_id not in seen
    )
