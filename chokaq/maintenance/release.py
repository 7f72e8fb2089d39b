"""Carrying out death notices: what a dead worker held goes back, or to the DLQ. Needs no leadership."""

from collections import deque
from collections.abc import Callable

import msgspec
import structlog

from chokaq.maintenance.channel import Notice
from chokaq.store.errors import StoreRefused
from chokaq.store.protocol import Session
from chokaq.store.records import CrashPolicies, Registration, Released

log = structlog.get_logger("chokaq")

REFUSED_PAUSE = 30.0
"""Seconds before a notice that the store refused is tried again; the others do not wait for it."""


class _Case(msgspec.Struct):
    number: int
    notice: Notice
    so_far: Released
    not_before: float = 0.0


class Releases:
    """Notices that are not carried out yet, oldest first."""

    def __init__(self, policies: Callable[[str], CrashPolicies], ring: Callable[[str], None]) -> None:
        """`ring` is called with the queue whenever jobs have gone back to it: an idle child need not wait for its poll."""
        self._policies = policies
        self._ring = ring
        self._cases: deque[_Case] = deque()

    def add(self, notice: Notice) -> None:
        """Take a notice; one that is already here is not taken twice."""
        if all(case.number != notice.number for case in self._cases):
            self._cases.append(_Case(notice.number, notice, Released()))

    def __len__(self) -> int:
        return len(self._cases)

    def due(self, now: float) -> bool:
        """True when `step` has something to do."""
        return any(case.not_before <= now for case in self._cases)

    def step(self, session: Session, me: Registration, now: float) -> int | None:
        """One call for the first due notice. Returns its number when it is carried out. Raises StoreUnavailable."""
        case = next((case for case in self._cases if case.not_before <= now), None)
        if case is None:
            return None
        notice = case.notice.notice
        try:
            released = session.release_worker(me, notice, self._policies(notice.queue))
        except StoreRefused as error:
            case.not_before = now + REFUSED_PAUSE
            log.exception("release_refused", worker_id=notice.worker_id, queue=notice.queue, error=str(error))
            return None
        case.so_far = _sum(case.so_far, released)
        if released.pending:
            self._ring(notice.queue)
        if not released.done:
            return None
        self._cases.remove(case)
        log.info(
            "worker_released",
            worker_id=notice.worker_id,
            queue=notice.queue,
            cause=notice.cause,
            **{name: count for name, count in _counts(case.so_far).items() if count},
        )
        return case.number


def _counts(released: Released) -> dict[str, int]:
    return {
        "pending": released.pending,
        "zombies": released.zombies,
        "poisoned": released.poisoned,
        "failed": released.failed,
        "cancelled": released.cancelled,
    }


def _sum(first: Released, second: Released) -> Released:
    return Released(
        pending=first.pending + second.pending,
        zombies=first.zombies + second.zombies,
        poisoned=first.poisoned + second.poisoned,
        failed=first.failed + second.failed,
        cancelled=first.cancelled + second.cancelled,
    )
