"""Looking at circuit breakers over the whole fleet, and ordering them open or closed."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from chokaq.jobs.ids import new_id
from chokaq.lifecycle.circuit import CircuitState, Forced
from chokaq.operations.actor import By, require_operator
from chokaq.operations.errors import OperationError
from chokaq.operations.telling import command
from chokaq.store.circuits import CircuitList, CircuitOrder, CircuitView
from chokaq.store.protocol import Session

ORDERS = {"open": Forced.OPEN, "closed": Forced.CLOSED, "clear": Forced.NO}
"""The words an operator uses."""
_WORST = (CircuitState.OPEN, CircuitState.HALF_OPEN, CircuitState.CLOSED)


class CircuitStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One job type over all its workers."""

    type_key: str
    """In lower case."""
    state: CircuitState
    """The worst of any worker; as ordered, when an order stands."""
    order: CircuitOrder | None
    """None: the circuits follow their own rule."""
    open: int
    """Workers whose circuit is open."""
    half_open: int
    """Workers whose circuit tries a job."""
    workers: int
    """Live workers that have said something about it: their circuit has met a failure or an order."""
    failures: int
    """In a row, the most of any worker."""
    last_error: str | None
    """Type of the error that counted last, of the worker that changed last."""
    changed_at: datetime | None
    next_probe_ms: int | None
    """Milliseconds until the first open circuit tries a job; None: none will by itself."""
    reports: list[CircuitView]
    """What each worker said."""


def list_circuits(session: Session) -> list[CircuitStatus]:
    """Every type whose circuit has met a failure or an order on a live worker, the open ones first."""
    return summarise(session.list_circuits())


@command("force_circuit")
def force_circuit(session: Session, type_key: str, order: str, who: By) -> CircuitStatus:
    """Order the circuits of a type on every worker: `open` (its jobs wait), `closed` (they run, whatever fails), or `clear` (the
    circuits follow their own rule again, beginning closed). Holds until the next order, for workers started later, too.

    Running jobs go on. Raises OperationError.
    """
    require_operator(who)
    forced = ORDERS.get(order)
    if forced is None:
        raise OperationError(f"a circuit is forced to {', '.join(ORDERS)}, not {order[:60]!r}")
    key = check_type(type_key).lower()
    stands = session.force_circuit(key, forced, who.actor, who.reason, request=new_id())
    for status in list_circuits(session):
        if status.type_key == key:
            return status
    return _status(key, [], None if stands.forced is Forced.NO else stands)


def check_type(name: str) -> str:
    """A type key. Raises OperationError when it cannot be one."""
    if not (0 < len(name) <= 255 and name.isascii() and name.isprintable() and name == name.strip()):
        raise OperationError(f"{name[:60]!r} is not a type key: 1 to 255 printable ASCII characters")
    return name


def summarise(found: CircuitList) -> list[CircuitStatus]:
    """One status per type, the open ones first."""
    orders = {order.type_key: order for order in found.orders}
    reports: dict[str, list[CircuitView]] = {type_key: [] for type_key in orders}
    for view in found.circuits:
        reports.setdefault(view.type_key, []).append(view)
    statuses = [_status(type_key, views, orders.get(type_key)) for type_key, views in reports.items()]
    return sorted(statuses, key=lambda status: (_WORST.index(status.state), status.type_key))


def circuit_notes(circuits: Sequence[CircuitStatus]) -> tuple[list[str], list[str]]:
    """What is wrong with them (jobs of an open circuit wait), and what somebody ordered and may have forgotten: sentences."""
    problems, notes = [], []
    for circuit in circuits:
        order = circuit.order
        if order is not None:
            why = f" ({order.reason})" if order.reason else ""
            notes.append(
                f"The circuit of {circuit.type_key} is forced {order.forced.name.lower()} by {order.actor}{why}: "
                f"`chokaq circuits force {circuit.type_key} clear`."
            )
        elif circuit.state is not CircuitState.CLOSED:
            word = "open" if circuit.state is CircuitState.OPEN else "being tried"
            where = (
                "1 worker" if circuit.open + circuit.half_open == 1 else f"{circuit.open + circuit.half_open} workers"
            )
            error = f", last {circuit.last_error}" if circuit.last_error else ""
            problems.append(
                f"The circuit of {circuit.type_key} is {word} on {where} after {circuit.failures} failures in a row{error}: "
                "its jobs wait until one succeeds. `chokaq circuits` shows more."
            )
    return problems, notes


def _status(type_key: str, views: list[CircuitView], order: CircuitOrder | None) -> CircuitStatus:
    states = [view.state for view in views]
    state = next((worst for worst in _WORST if worst in states), CircuitState.CLOSED)
    if order is not None:
        state = CircuitState.OPEN if order.forced is Forced.OPEN else CircuitState.CLOSED
    latest = max(views, key=lambda view: view.changed_at, default=None)
    blamed = max((view for view in views if view.last_error), key=lambda view: view.changed_at, default=None)
    probes = [view.next_probe_ms for view in views if view.next_probe_ms is not None]
    return CircuitStatus(
        type_key=type_key,
        state=state,
        order=order,
        open=states.count(CircuitState.OPEN),
        half_open=states.count(CircuitState.HALF_OPEN),
        workers=len(views),
        failures=max((view.failures for view in views), default=0),
        last_error=None if blamed is None else blamed.last_error,
        changed_at=None if latest is None else latest.changed_at,
        next_probe_ms=min(probes, default=None),
        reports=views,
    )
