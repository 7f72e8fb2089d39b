"""Looking at queues, and overriding what the YAML says about them while workers run."""

import difflib
from collections.abc import Callable

import msgspec
from msgspec import UNSET, UnsetType

from chokaq.operations.actor import By, require_operator
from chokaq.operations.errors import OperationError
from chokaq.operations.telling import command
from chokaq.store.protocol import Session
from chokaq.store.records import PriorityView, QueueChange, QueueView

MAX_WORKERS = 10_000
MAX_FLEET = 100_000
MAX_TIMEOUT_SECONDS = 86_400
BEATS = 3
"""Heartbeats a zombie timeout has to span, so that one slow call does not make a healthy job look dead."""


class QueueDetail(msgspec.Struct, frozen=True):
    """A queue, and how long each of its priorities has waited."""

    queue: QueueView
    priorities: list[PriorityView]
    """The highest first; at most the 100 that have waited longest."""


def show_queue(session: Session, queue: str) -> QueueDetail:
    """One queue with the lag of each priority. Raises OperationError when no such queue is known."""
    name = check_queue(queue)
    return QueueDetail(_known(session, name), session.list_priorities(name))


def list_queues(session: Session) -> list[QueueView]:
    """Every queue that an operator or a worker touched, or that holds live jobs, by name."""
    return session.list_queues()


@command("pause")
def pause_queue(session: Session, queue: str, who: By, *, create: bool = False) -> QueueView:
    """Claim nothing new from the queue, on all workers; running jobs finish. `create`: also when no such queue is known."""
    return _change(session, queue, QueueChange(paused=True), who, create=create)


@command("resume")
def resume_queue(session: Session, queue: str, who: By, *, create: bool = False) -> QueueView:
    """Undo a pause."""
    return _change(session, queue, QueueChange(paused=False), who, create=create)


@command("activate")
def activate_queue(session: Session, queue: str, who: By, *, create: bool = False) -> QueueView:
    """Undo a deactivation."""
    return _change(session, queue, QueueChange(active=True), who, create=create)


@command("deactivate")
def deactivate_queue(session: Session, queue: str, who: By, *, create: bool = False) -> QueueView:
    """Take the queue out of service: as a pause, and told apart from one."""
    return _change(session, queue, QueueChange(active=False), who, create=create)


@command("set")
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
    heartbeat: float | None = None,
) -> QueueView:
    """Write overrides; UNSET leaves one alone, None clears it (the YAML rules again). Timeouts in seconds.

    Bounds: max_workers 1 to 10,000 per child; fleet_max_workers 1 to 100,000; timeouts 1 s to 86,400 s. `heartbeat`: how often the
    queue's workers renew their leases, in seconds, by the configuration (None: not known); a zombie_timeout under three of them is
    refused, since it would take healthy jobs for dead.
    """
    _check_leases(queue, zombie_timeout, heartbeat)
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
        _known(session, name, "--create sets it before its first job")
    return session.set_queue(name, change, who.actor, who.reason)


def _known(session: Session, name: str, more: str = "") -> QueueView:
    views = {view.name: view for view in session.list_queues()}
    if name in views:
        return views[name]
    near = difflib.get_close_matches(name, views, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(views) or 'none'}."
    raise OperationError(f"there is no queue {name!r} here; {hint} {more}".rstrip())


def _check_leases(queue: str, zombie_timeout: float | UnsetType | None, heartbeat: float | None) -> None:
    if heartbeat is None or zombie_timeout is None or isinstance(zombie_timeout, UnsetType):
        return
    if zombie_timeout < BEATS * heartbeat:
        raise OperationError(
            f"zombie_timeout of {queue}: {zombie_timeout:g} s is under three heartbeats of its workers ({heartbeat:g} s each by "
            f"the configuration), so one slow call would make a healthy job look dead: set at least {BEATS * heartbeat:g} s, "
            "or a shorter heartbeat in the configuration first"
        )


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
    "QueueDetail",
    "activate_queue",
    "check_queue",
    "deactivate_queue",
    "list_queues",
    "pause_queue",
    "resume_queue",
    "set_queue",
    "show_queue",
]
