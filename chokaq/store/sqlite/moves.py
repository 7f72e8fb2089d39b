"""The steps several operations share: jobs that leave Hot for the DLQ or return to Pending, applied as sets.

An operation matches its fence first, decides per job, collects here, and applies at the end of its write transaction. The write
transaction excludes every other writer, so what was matched still stands when it is applied.
"""

import sqlite3
from typing import Any, NamedTuple

from chokaq.lifecycle.states import FailureReason, JobStatus, Outcome
from chokaq.store.records import AttemptError
from chokaq.store.sqlite.connection import document
from chokaq.store.sqlite.counters import Tally
from chokaq.store.sqlite.statements import load

_SQL = load("Moves")
_TO_DLQ, _LEAVE_HOT, _TO_PENDING = _SQL["to_dlq"], _SQL["leave_hot"], _SQL["to_pending"]
_FORGET_CANCELS, _ATTEMPT = _SQL["forget_cancels"], _SQL["attempt"]


class HotJob(NamedTuple):
    """What the `match` statements read of a job, in their column order. Times are milliseconds."""

    id: str
    queue: str
    type_key: str
    status: int
    lease: int
    attempts: int
    crashes: int
    worker_id: str | None
    due: int
    started: int | None
    age_from: int
    cancel_requested: int | None
    heartbeat: int | None

    @property
    def lag_ms(self) -> int | None:
        """Start minus due; None when it has not started."""
        return None if self.started is None else self.started - self.due

    @property
    def refunded(self) -> int:
        """AttemptCount without the execution that is under way."""
        return max(self.attempts - 1, 0) if self.status == JobStatus.PROCESSING else self.attempts

    def too_old(self, max_age_ms: int | None, due: int) -> bool:
        """True when the job would be due later than its age limit allows."""
        return max_age_ms is not None and self.age_from + max_age_ms < due


class Moves:
    """What one call does to its jobs."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._dead: list[tuple[Any, ...]] = []
        self._back: list[tuple[Any, ...]] = []
        self._left: list[tuple[str, int]] = []
        self._attempts: list[tuple[Any, ...]] = []
        self._tally = Tally()

    def stop(
        self,
        job: HotJob,
        status: JobStatus,
        reason: FailureReason,
        error: AttemptError | None = None,
        *,
        crashed: bool = False,
        modified_by: str | None = None,
    ) -> None:
        """To the DLQ, counted as a failure."""
        crashes = job.crashes + crashed
        kind, message = (None, None) if error is None else (error.type, error.message)
        self._left.append((job.id, job.lease))
        self._dead.append((job.id, int(status), int(reason), crashes, kind, message, modified_by))
        self._tally.failure(job.queue, reason, job.lag_ms)

    def cancel(
        self, job: HotJob, error: AttemptError | None = None, *, crashed: bool = False, modified_by: str | None = None
    ) -> None:
        """To the DLQ as Cancelled."""
        self.stop(job, JobStatus.CANCELLED, FailureReason.CANCELLED, error, crashed=crashed, modified_by=modified_by)

    def expire(self, job: HotJob, error: AttemptError | None = None, *, crashed: bool = False) -> None:
        """To the DLQ as Failed, too old to wait once more."""
        self.stop(job, JobStatus.FAILED, FailureReason.RETRY_LIFETIME_EXPIRED, error, crashed=crashed)

    def hand_back(self, job: HotJob, due: int | None = None) -> None:
        """To Pending, uncharged. `due` None: as before, the job keeps its place."""
        self._left.append((job.id, job.lease))
        self._back.append((job.id, job.due if due is None else due, job.refunded, job.crashes))

    def retry(self, job: HotJob, due: int, reason: FailureReason, *, crashed: bool = False) -> None:
        """To Pending after a charged failure or a crash, counted as a retry."""
        self._left.append((job.id, job.lease))
        self._back.append((job.id, due, job.attempts, job.crashes + crashed))
        self._tally.add(job.queue, Outcome.RETRIED, reason)

    def attempt(self, job: HotJob, now: int, reason: FailureReason, error: AttemptError) -> None:
        """Its JobAttempts row."""
        self._attempts.append(
            (job.id, job.lease, now, job.worker_id, int(reason), error.type, error.message, error.trace)
        )

    def apply(self, connection: sqlite3.Connection, slot: int, now: int) -> None:
        """Carry everything out, in the one table order."""
        if self._back:
            connection.execute(_TO_PENDING, {"jobs": document(self._back), "now": now})
        if self._dead:
            dead = document(self._dead)
            connection.execute(_TO_DLQ, {"jobs": dead, "now": now})
            connection.execute(_LEAVE_HOT, {"jobs": dead})
        if self._left:
            connection.execute(_FORGET_CANCELS, {"jobs": document(self._left)})
        if self._attempts:
            connection.executemany(_ATTEMPT, self._attempts)
        self._tally.write(connection, slot, now)
