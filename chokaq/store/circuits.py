"""The records of circuit breakers: what children say of theirs, and what operators order. Type keys are in lower case."""

from datetime import datetime

import msgspec

from chokaq.lifecycle.circuit import CircuitState, Forced


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
