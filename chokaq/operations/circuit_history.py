"""What the circuits of a job type did, and what operators ordered about it, page by page."""

import msgspec

from chokaq.lifecycle.circuit import CircuitState, Forced
from chokaq.operations.circuits import check_type
from chokaq.operations.cursors import cursor_of, position_of
from chokaq.operations.errors import OperationError
from chokaq.store.circuits import CircuitEvent, EventPlace
from chokaq.store.protocol import Session

MAX_EVENTS_PAGE = 500
DAY = 86_400.0
KEPT_DAYS = 7


class CircuitHistory(msgspec.Struct, frozen=True):
    """One page, newest first."""

    type_key: str
    """In lower case."""
    events: list[CircuitEvent]
    after: str | None
    """Pass it to get the next page; None at the end."""


def list_circuit_events(
    session: Session,
    type_key: str,
    limit: int = 50,
    after: str | None = None,
    *,
    since: float | None = None,
    tries: bool = False,
) -> CircuitHistory:
    """One page, newest first. `limit`: 1 to 500; `after`: of the page before; `since`: only the last so many seconds.

    `tries`: also when open circuits tried a job, and were opened again. Raises OperationError.
    """
    key = check_type(type_key).lower()
    if not 1 <= limit <= MAX_EVENTS_PAGE:
        raise OperationError(f"a page holds 1 to {MAX_EVENTS_PAGE} events, not {limit:,}")
    if since is not None and not 0 < since <= KEPT_DAYS * DAY:
        raise OperationError(f"events are kept for {KEPT_DAYS} days: ask for the last so many seconds within them")
    where = [key, since, tries]
    behind = None if after is None else _place(position_of("circuit_events", where, after))
    since_ms = None if since is None else round(since * 1_000)
    found = session.list_circuit_events(key, limit + 1, behind, since_ms=since_ms, tries=tries)
    events = found[:limit]
    more = cursor_of("circuit_events", where, _position(events[-1].place)) if len(found) > limit else None
    return CircuitHistory(key, events, more)


def event_words(event: CircuitEvent) -> str:
    """What it was, in a few words: `opened`, `tries a job`, `opened again`, `closed`, `forced open`, `order cleared`."""
    if event.forced is not None:
        return "order cleared" if event.forced is Forced.NO else f"forced {event.forced.name.lower()}"
    if event.after is CircuitState.CLOSED:
        return "closed"
    if event.after is CircuitState.HALF_OPEN:
        return "tries a job"
    return "opened again" if event.is_try else "opened"


def _position(place: EventPlace) -> str:
    return f"{place.at_ms}:{place.id}"


def _place(position: str) -> EventPlace:
    at, _, number = position.partition(":")
    if not (at.isdecimal() and number.isdecimal() and len(at) <= 15 and len(number) <= 18):
        raise OperationError("this cursor is damaged: begin anew without one")
    return EventPlace(int(at), int(number))
