"""What a maintenance process counts: jobs taken from the dead, where they went, rows deleted, time without the store.

It counts on the way: the session it is given does what every session does, and tells of what came back.
"""

import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, cast

import structlog

from chokaq.lifecycle.states import DeathCause, FailureReason, Pillar
from chokaq.observe.metrics.recorder import Recorder
from chokaq.store.errors import StoreRefused
from chokaq.store.looking import Browse
from chokaq.store.protocol import Session
from chokaq.store.records import CrashPolicies, DeathNotice, JobView, Registration, Released

_log = structlog.get_logger("chokaq")
_PAGE = 500
_REMEMBERED = 5_000
"""Jobs of the DLQ that are not taken for another's once more."""
_DIED, _OVERRAN = "WorkerDied", "HardLimit"


class MaintenanceTally:
    """The figures of one maintenance process."""

    def __init__(self, recorder: Recorder, database: str) -> None:
        """`database`: its name in the settings."""
        self.recorder = recorder
        self._leader = recorder.gauge("chokaq_leader", database)
        self._leader.set(0)
        self._away = recorder.counter("chokaq_store_outage_seconds_total", "maintenance")
        self._away_since: float | None = None
        self._known: deque[tuple[str, int]] = deque(maxlen=_REMEMBERED)
        self._blind = False

    def leads(self, leading: bool) -> None:
        """Whether this process leads the fleet, as far as it knows."""
        self._leader.set(leading)

    def watching(self, session: Session) -> Session:
        """The same session, counted."""
        return cast("Session", _Counted(session, self))

    # ── the store ─────────────────────────────────────────────────────────────────────────────────────────────────────
    def away(self) -> None:
        """A call failed for a passing reason, and will be made again."""
        now = time.monotonic()
        if self._away_since is not None:
            self._away.add(now - self._away_since)
        self._away_since = now

    def back(self) -> None:
        """The store answers."""
        if self._away_since is not None:
            self._away.add(time.monotonic() - self._away_since)
            self._away_since = None

    # ── jobs ──────────────────────────────────────────────────────────────────────────────────────────────────────────
    def rescued(
        self, session: Session, operation: str, queue: str, moved: Released, *, worker: str = "", overran: bool = False
    ) -> None:
        """One call has moved jobs; `worker`: the one they were taken from; `overran`: those that failed ran past a hard limit."""
        outcomes = {
            "pending": moved.pending,
            "zombie": moved.zombies,
            "poison": moved.poisoned,
            "failed": moved.failed,
            "cancelled": moved.cancelled,
        }
        for outcome, count in outcomes.items():
            if count:
                self.recorder.add("chokaq_rescued_jobs_total", queue, operation, outcome, amount=count)
        stopped = {
            FailureReason.ZOMBIE: moved.zombies,
            FailureReason.POISON: moved.poisoned,
            FailureReason.TIMEOUT if overran else FailureReason.RETRY_LIFETIME_EXPIRED: moved.failed,
            FailureReason.CANCELLED: moved.cancelled,
        }
        if any(stopped.values()):
            self._dead_letters(session, queue, stopped, worker)

    def purged(self, table: str, rows: int) -> None:
        """Rows were deleted after their retention."""
        if rows:
            self.recorder.add("chokaq_purged_rows_total", table, amount=rows)

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────────
    def _dead_letters(self, session: Session, queue: str, stopped: dict[FailureReason, int], worker: str) -> None:
        """How many stopped, and why, the call has told; of which types they are, the DLQ does."""
        found = self._newest(session, queue, stopped, worker)
        for reason, count in stopped.items():
            types = Counter(job.type_key for job in found if job.failure_reason is reason)
            types[""] = count - types.total()
            error = _OVERRAN if reason is FailureReason.TIMEOUT else _DIED
            for type_key, some in types.items():
                if some > 0:
                    self.recorder.add("chokaq_jobs_dlq_total", queue, type_key, reason.label, amount=some)
                    if reason is not FailureReason.CANCELLED:
                        self.recorder.add("chokaq_jobs_failed_total", queue, type_key, error, amount=some)

    def _newest(self, session: Session, queue: str, stopped: dict[FailureReason, int], worker: str) -> list[JobView]:
        """As many of the newest dead letters of the queue as have stopped for each of these reasons, none of them twice."""
        left = dict(stopped)
        found = []
        for job in self._browse(session, queue):
            mark = (job.id, job.lease)
            reason = job.failure_reason
            if reason is None or not left.get(reason) or mark in self._known or worker not in ("", job.worker_id):
                continue
            left[reason] -= 1
            self._known.append(mark)
            found.append(job)
        return found

    def _browse(self, session: Session, queue: str) -> list[JobView]:
        if self._blind:
            return []
        try:
            return session.browse_jobs(Browse(pillar=Pillar.DLQ, queue=queue, by_end=True), _PAGE).jobs
        except StoreRefused as error:
            # The types stay unknown; everything else is counted all the same.
            self._blind = True
            _log.warning("metrics_without_types", problem=str(error))
            return []


class _Counted:
    """A session that tells what came back."""

    def __init__(self, session: Session, tally: MaintenanceTally) -> None:
        self._session = session
        self._tally = tally

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def release_worker(self, by: Registration, notice: DeathNotice, policies: CrashPolicies) -> Released:
        """See `chokaq.store.protocol.Session`, as all of these."""
        moved = self._session.release_worker(by, notice, policies)
        overran = notice.cause == DeathCause.LIMIT
        self._tally.rescued(
            self._session, "ReleaseWorker", notice.queue, moved, worker=notice.worker_id, overran=overran
        )
        return moved

    def recover_abandoned(self, by: Registration, queue: str, timeout_ms: int, cursor: str | None = None) -> Released:
        """…"""
        moved = self._session.recover_abandoned(by, queue, timeout_ms, cursor)
        self._tally.rescued(self._session, "RecoverAbandoned", queue, moved)
        return moved

    def archive_zombies(
        self, by: Registration, queue: str, timeout_ms: int, policies: CrashPolicies, cursor: str | None = None
    ) -> Released:
        """…"""
        moved = self._session.archive_zombies(by, queue, timeout_ms, policies, cursor)
        self._tally.rescued(self._session, "ArchiveZombies", queue, moved)
        return moved

    def purge_archive(self, queue: str | None, older_than_ms: int, size: int = 1_000) -> int:
        """…"""
        return self._purged("archive", self._session.purge_archive, queue, older_than_ms, size)

    def purge_dlq(self, queue: str | None, older_than_ms: int, size: int = 1_000) -> int:
        """…"""
        return self._purged("dlq", self._session.purge_dlq, queue, older_than_ms, size)

    def purge_leftovers(self, size: int = 1_000) -> int:
        """…"""
        return self._purged("leftovers", self._session.purge_leftovers, size)

    def _purged(self, table: str, purge: Callable[..., int], *args: Any) -> int:
        rows = purge(*args)
        self._tally.purged(table, rows)
        return rows
