"""The records of circuit breakers: what children say of theirs, and what operators order. Type keys are in lower case."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

import msgspec

from chokaq.lifecycle.circuit import CircuitState, Forced
from chokaq.store.records import Registration

_EPOCH, _MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)
MAX_EVENTS = 1_001
"""One page of events: a thousand, and the one that tells there are more."""


class CircuitChange(msgspec.Struct, frozen=True, kw_only=True):
    """How one circuit of a child stands now."""

    type_key: str
    state: CircuitState
    failures: int
    """In a row: towards the opening while closed, else since it was last closed."""
    generation: int
    changed_ms: int = 0
    """Milliseconds since the state was entered."""
    next_probe_ms: int | None = None
    """Milliseconds until an open circuit tries a job; None: it is not open, or will not by itself."""
    last_error: str | None = None
    """Type of the last error that counted."""


class CircuitView(msgspec.Struct, frozen=True, kw_only=True):
    """What a live worker last said of a circuit."""

    type_key: str
    worker_id: str
    queue: str
    host: str
    state: CircuitState
    failures: int
    generation: int
    changed_at: datetime
    next_probe_ms: int | None
    """0: it is due, and waits for a job."""
    last_error: str | None


class CircuitOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The last order an operator gave about a type."""

    type_key: str
    forced: Forced
    """Forced.NO: the circuits follow their own rule again."""
    actor: str
    reason: str | None
    at: datetime
    number: int
    """Rises from order to order, over all types."""


class CircuitOrders(msgspec.Struct, frozen=True):
    """The orders in force."""

    number: int
    """Of the latest order known; a fetch that tells another one means: read again."""
    orders: list[CircuitOrder]


class CircuitList(msgspec.Struct, frozen=True):
    """Everything about circuits."""

    circuits: list[CircuitView]
    orders: list[CircuitOrder]
    """In force, by type."""


class CircuitEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker's circuit did, or an order an operator gave."""

    id: int
    type_key: str
    at: datetime
    """When the state was entered, or the order given."""
    before: CircuitState | None
    """None: it is an order."""
    after: CircuitState | None
    worker_id: str | None
    host: str | None
    queue: str | None
    failures: int | None
    """In a row: those that led to it; of a closing, those it ended."""
    last_error: str | None
    """Type of the last error that counted."""
    forced: Forced | None
    """The order; Forced.NO: one was taken back. None: it is no order."""
    actor: str | None
    reason: str | None
    worker_ended_at: datetime | None
    """None: it has not ended, or is not known any more."""

    @property
    def is_try(self) -> bool:
        """Whether an open circuit only tries a job, or was opened again after that."""
        return bool(self.before and self.after)

    @property
    def place(self) -> "EventPlace":
        """Where a list goes on behind this one."""
        return EventPlace((self.at - _EPOCH) // _MILLISECOND, self.id)


class EventPlace(NamedTuple):
    """Where a list of events goes on: behind this one."""

    at_ms: int
    """Milliseconds since 1970."""
    id: int


class CircuitSession(Protocol):
    """The part of a session that is about circuits."""

    def report_circuits(self, worker: Registration, changes: Sequence[CircuitChange]) -> None:
        """A child tells how its circuits stand now, one change per type, at most 1,000. Nothing is kept for an ended worker.

        A circuit that has entered another state than was told before (it begins closed), or was opened again, leaves an event.
        """
        ...

    def read_circuit_orders(self) -> CircuitOrders:
        """The orders in force, for a child whose fetch told of a number it has not seen."""
        ...

    def list_circuits(self) -> CircuitList:
        """What live workers last said of their circuits, the open ones first, at most 5,000; and the orders in force."""
        ...

    def list_circuit_events(
        self,
        type_key: str,
        limit: int = 50,
        after: EventPlace | None = None,
        *,
        since_ms: int | None = None,
        tries: bool = True,
    ) -> list[CircuitEvent]:
        """What the circuits of a type did and what was ordered about it, newest first. 1 ≤ limit ≤ 1,001.

        `since_ms`: only within the last so many milliseconds. `tries` False: without those of open circuits that failed, or are
        under way.
        """
        ...

    def force_circuit(
        self, type_key: str, forced: Forced, actor: str, reason: str | None = None, *, request: str | None = None
    ) -> CircuitOrder:
        """Order the circuits of a type everywhere; Forced.NO takes an order back. With an AuditLog row and an event; the order that
        stands now.

        `request`: a ULID minted before the first try, so that a repeat changes nothing.
        """
        ...
