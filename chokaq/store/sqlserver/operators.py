"""What operators call: cancel, overrides, and the bounded reads."""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from chokaq.store.errors import StoreRefused, StoreUnavailable
from chokaq.store.names import check_name
from chokaq.store.records import (
    Attempt,
    AuditEntry,
    Bucket,
    CancelAnswer,
    JobFilter,
    Page,
    PriorityView,
    QueueChange,
    QueueView,
    WorkerView,
)
from chokaq.store.repairs import needle
from chokaq.store.sqlserver import documents, views
from chokaq.store.sqlserver.calling import Calling

MAX_PAGE = 500
_RESULTS = ("cancelled", "requested", "final")


class OperatorOperations(Calling):
    """See `chokaq.store.protocol.Session`."""

    def cancel_jobs(
        self,
        job_ids: Sequence[str],
        actor: str,
        reason: str | None = None,
        *,
        own_only: bool = False,
        request: str | None = None,
    ) -> list[CancelAnswer]:
        """Pending and Fetched → DLQ at once; Processing: its holder is told. Audited per job changed."""
        documents.bounded(job_ids)
        documents.fitting("actor", actor, 100)
        documents.fitting("reason", reason, 1_000)
        [rows] = self._call("CancelJobs", documents.ids(job_ids), actor, reason or "", own_only, request or "")
        found = {row[0]: _RESULTS[row[1]] for row in rows}
        return [CancelAnswer(job_id, found.get(job_id, "unknown")) for job_id in job_ids]

    def set_queue(self, queue: str, change: QueueChange, actor: str, reason: str | None = None) -> QueueView:
        """Write overrides, audited with before and after."""
        check_name("queue", queue)
        documents.fitting("actor", actor, 100)
        documents.fitting("reason", reason, 1_000)
        given: list[int | bool | UnsetType | None] = [
            change.max_workers,
            change.fleet_max_workers,
            change.execution_timeout_ms,
            change.zombie_timeout_ms,
            change.paused,
            change.active,
        ]
        mask = sum(1 << place for place, value in enumerate(given) if value is not UNSET)
        values = [-1 if value is None or isinstance(value, UnsetType) else int(value) for value in given]
        if any(not isinstance(value, UnsetType) and value is not None and value < 0 for value in given):
            raise StoreRefused(f"queue {queue}: an override may not be negative")
        self._call("SetQueue", queue, mask, *values, actor, reason or "")
        for row in self._call("ListQueues", queue)[0]:
            return views.queue_view(row)
        raise StoreUnavailable(f"queue {queue} was changed, but is gone again")

    def list_jobs(self, where: JobFilter, limit: int = 50, after: str | None = None) -> Page:
        """One page of one pillar, newest first by id."""
        limit = max(1, min(limit, MAX_PAGE))
        [rows] = self._call(
            "ListJobs",
            where.pillar.value,
            where.queue or "",
            -1 if where.status is None else int(where.status),
            where.type_key or "",
            -1 if where.reason is None else int(where.reason),
            where.tag or "",
            limit + 1,
            after or "",
            *documents.span(where.failed_from, where.failed_until),
            needle(where.search) or "",
        )
        jobs = [views.VIEWS.job(row) for row in rows[:limit]]
        return Page(jobs, jobs[-1].id if len(rows) > limit else None)

    def list_queues(self) -> list[QueueView]:
        """Every queue that has a row in Queues or live jobs, by name."""
        return [views.queue_view(row) for row in self._call("ListQueues", "")[0]]

    def list_priorities(self, queue: str) -> list[PriorityView]:
        """How long the due jobs of a queue have waited, by priority, the highest first."""
        check_name("queue", queue)
        return [views.priority_view(row) for row in self._call("ListPriorities", queue)[0]]

    def list_workers(self, *, ended: bool = False) -> list[WorkerView]:
        """The registry, newest first."""
        return [views.VIEWS.worker([*row[:9], *row[10:]], row[9]) for row in self._call("ListWorkers", ended)[0]]

    def list_attempts(self, job_id: str) -> list[Attempt]:
        """The failed attempts of one job, oldest first."""
        if not documents.is_id(job_id):
            return []
        return [views.VIEWS.attempt(row) for row in self._call("ListAttempts", job_id)[0]]

    def list_audit(
        self,
        target: str | None = None,
        limit: int = 50,
        after: int | None = None,
        *,
        actor: str | None = None,
        action: str | None = None,
    ) -> list[AuditEntry]:
        """Audit rows, newest first."""
        limit = max(1, min(limit, MAX_PAGE))
        [rows] = self._call("ListAudit", target or "", limit, after or 0, actor or "", action or "")
        return [views.VIEWS.audit_entry(row) for row in rows]

    def list_buckets(self, queue: str | None, since_ms: int) -> list[Bucket]:
        """Outcome counters of the last `since_ms` milliseconds."""
        return [views.VIEWS.bucket(row) for row in self._call("ListBuckets", queue or "", since_ms)[0]]
