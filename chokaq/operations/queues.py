"""Looking at queues, and overriding what the YAML says about them while workers run."""

import difflib
from collections.abc import Callable

from msgspec import UNSET, UnsetType

from chokaq.operations.actor import By, require_operator
from chokaq.operations.errors import OperationError
from chokaq.store.protocol import Session
from chokaq.store.records import QueueChange, QueueView

MAX_WORKERS = 10_000
MAX_FLEET = 100_000
MAX_TIMEOUT_SECONDS = 86_400


def list_queues(session: Session) -> list[QueueView]:
    """Every queue that an operator or a worker touched, or that holds live jobs, by name."""
    return session.list_queues()


def pause_queue(session: Session, queue: str, who: By, *, create: bool = False) -> QueueView:
    """Claim nothing new from the queue, on all workers; running jobs finish. `create`: also when no such queue is known."""
    return _change(session, queue, QueueChange(paused=True), who, create=create)


def resume_queue(session: Session, queue: str, who: By, *, create: bool = False) -> QueueView:
    """Undo a pause."""
    return _change(session, queue, QueueChange(paused=False), who, create=create)


def activate_queue(session: Session, queue: str, who: By, *, create: bool = False) -> QueueView:
    """Undo a deactivation."""
    return _change(session, queue, QueueChange(active=True), who, create=create)


def deactivate_queue(session: Session, queue: str, who: By, *, create: bool = False) -> QueueView:
    """Take the queue out of service: as a pause, and told apart from one."""
    return _change(session, queue, QueueChange(active=False), who, create=create)


def set_queue(
    session: Session,
    queue: str,
    who: By,
    *,
    max_workers: int | UnsetType | None = UNSET,
    fleet_max_workers: int | UnsetType | None = UNSET,
    execution_timeout: float | UnsetType | None = UNSET,
    zombie_timeout: float | UnsetType | None = UNSET,
    create: bool = False,
) -> QueueView:
    """Write overrides; UNSET leaves one alone, None clears it (the YAML rules again). Timeouts in seconds.

    Bounds: max_workers 1 to 10,000 per child; fleet_max_workers 1 to 100,000; timeouts 1 s to 86,400 s.
    """
    change = QueueChange(
        max_workers=_checked("max_workers", max_workers, _whole(MAX_WORKERS)),
        fleet_max_workers=_checked("fleet_max_workers", fleet_max_workers, _whole(MAX_FLEET)),
        execution_timeout_ms=_checked("execution_timeout", execution_timeout, _timeout),
        zombie_timeout_ms=_checked("zombie_timeout", zombie_timeout, _timeout),
    )
    if change == QueueChange():
        raise OperationError("nothing to set: name at least one override")
    return _change(session, queue, change, who, create=create)


def _change(session: Session, queue: str, change: QueueChange, who: By, *, create: bool) -> QueueView:
    require_operator(who)
    name = check_queue(queue)
    if not create:
        known = [view.name for view in session.list_queues()]
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known) or 'none'}."
            raise OperationError(f"there is no queue {name!r} here; {hint} --create sets it before its first job")
    return session.set_queue(name, change, who.actor, who.reason)


def check_queue(name: str) -> str:
    """A queue's name. Raises OperationError when it cannot be one."""
    if not (0 < len(name) <= 255 and name.isascii() and name.isprintable() and name == name.strip()):
        raise OperationError(f"{name[:60]!r} is not a queue name: 1 to 255 printable ASCII characters")
    return name


def _checked(what: str, value: float | UnsetType | None, read: Callable[[str, float], int]) -> int | UnsetType | None:
    if value is None or isinstance(value, UnsetType):
        return value
    return read(what, value)


def _whole(most: int) -> Callable[[str, float], int]:
    def read(what: str, value: float) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise OperationError(f"{what} must be a whole number from 1 to {most:,}, got {value}")
        return value

    return read


def _timeout(what: str, value: float) -> int:
    if not 1 <= value <= MAX_TIMEOUT_SECONDS:
        raise OperationError(f"{what} must be from 1 s to {MAX_TIMEOUT_SECONDS:,} s (24h), got {value:g} s")
    return round(value * 1_000)


__all__ = [
    "activate_queue",
    "check_queue",
    "deactivate_queue",
    "list_queues",
    "pause_queue",
    "resume_queue",
    "set_queue",
]
