"""The bounded reads of operators and metrics: lists of jobs, queues, workers, attempts, audit rows, counters."""

from collections import defaultdict

from chokaq.lifecycle.states import JobStatus, Outcome, Pillar
from chokaq.store.names import check_name
from chokaq.store.records import (
    Attempt,
    AuditEntry,
    Bucket,
    JobFilter,
    Page,
    PriorityView,
    QueueView,
    WorkerView,
)
from chokaq.store.repairs import COUNTED, MAX_PREVIEW, DlqFilter, DlqPreview, KeyHolder, needle, since_1970
from chokaq.store.sqlite.clock import from_ms_or_none, now_ms
from chokaq.store.sqlite.connection import Connected, document
from chokaq.store.sqlite.statements import load
from chokaq.store.sqlite.views import VIEWS
from chokaq.store.views import live_queue

MAX_PAGE = 500

_JOBS, _QUEUES, _HOT_QUEUES = load("ListJobs"), load("ListQueues"), load("ListHotQueues")["list"]
_WORKERS, _ATTEMPTS = load("ListWorkers")["list"], load("ListAttempts")["list"]
_BEHIND_ALL = (1 << 63) - 1
"""Greater than any id of an audit row."""
_AUDIT, _BUCKETS = load("ListAudit"), load("ListBuckets")["list"]
_PRIORITIES = load("ListPriorities")["list"]
_HOLDER = load("GetKeyHolder")["holder"]
_PREVIEW = load("PreviewDLQ")["matches"]
_HEARTBEAT = 8
"""Where a worker's row has its heartbeat."""
_NEVER_MS = 1 << 60
"""An end of time that no job reaches."""


class ReadOperations(Connected):
    """See `chokaq.store.protocol.Session`."""

    def list_jobs(self, where: JobFilter, limit: int = 50, after: str | None = None) -> Page:
        """One page of one pillar, newest first by id."""
        limit = max(1, min(limit, MAX_PAGE))
        leased = where.pillar == Pillar.HOT and where.status in (JobStatus.FETCHED, JobStatus.PROCESSING)
        statement = "leased" if leased else where.pillar.value
        rows = self._select(
            _JOBS[statement],
            {
                "after": after,
                "queue": where.queue,
                "status": where.status,
                "type": where.type_key,
                "reason": where.reason,
                "tag": containing(where.tag),
                "failed_from": since_1970("failed_from", where.failed_from),
                "failed_until": since_1970("failed_until", where.failed_until),
                "search": needle(where.search),
                "limit": limit + 1,
            },
        )
        jobs = [VIEWS.job(row) for row in rows[:limit]]
        return Page(jobs, jobs[-1].id if len(rows) > limit else None)

    def preview_dlq(self, where: DlqFilter, limit: int = 100) -> DlqPreview:
        """How many jobs a filter of the DLQ means now, and the newest of them."""
        until = since_1970("failed_until", where.failed_until)
        rows = self._select(
            _PREVIEW,
            {
                "queue": where.queue,
                "type": where.type_key,
                "reason": where.reason,
                "status": where.status,
                "tag": containing(where.tag),
                "failed_from": since_1970("failed_from", where.failed_from) or 0,
                "failed_until": _NEVER_MS if until is None else until,
                "search": needle(where.search),
            },
        )
        ids = [job_id for job_id, found in rows[:COUNTED] if found]
        return DlqPreview(len(ids), len(rows) > COUNTED, ids[: max(1, min(limit, MAX_PREVIEW))])

    def get_key_holder(self, key: str) -> KeyHolder | None:
        """The live job that holds an idempotency key."""
        for job_id, status in self._select(_HOLDER, {"key": key}):
            return KeyHolder(job_id, JobStatus(status))
        return None

    def list_queues(self) -> list[QueueView]:
        """Every queue that has a row in Queues or live jobs, by name."""
        found = []
        with self._reading() as connection:
            connection.execute("BEGIN")
            try:
                names = [row[0] for row in connection.execute(_HOT_QUEUES).fetchall()]
                now = now_ms()
                unrolled: dict[tuple[str, int], int] = defaultdict(int)
                for queue, outcome, count in connection.execute(_QUEUES["unrolled"]).fetchall():
                    unrolled[queue, outcome] = count
                rows = connection.execute(_QUEUES["list"], {"queues": document(names), "now": now}).fetchall()
                for (
                    name,
                    *overrides,
                    ready,
                    due,
                    scheduled,
                    fetched,
                    processing,
                    live,
                    known,
                    at,
                    by,
                    ok,
                    bad,
                    again,
                    began,
                ) in rows:
                    oldest = connection.execute(_QUEUES["oldest"], {"queue": name, "now": now}).fetchone()[0]
                    view = QueueView(
                        name=name,
                        live=live_queue(overrides),
                        pending=min(ready + due, 100_000),
                        scheduled=scheduled,
                        fetched=fetched,
                        processing=processing,
                        succeeded_total=ok + unrolled[name, Outcome.SUCCEEDED],
                        failed_total=bad + unrolled[name, Outcome.FAILED],
                        retried_total=again + unrolled[name, Outcome.RETRIED],
                        oldest_due_ms=None if oldest is None else max(now - oldest, 0),
                        live_workers=live,
                        known=bool(known),
                        updated_at=from_ms_or_none(at),
                        updated_by=by,
                        oldest_running_ms=None if began is None else max(now - began, 0),
                    )
                    found.append(view)
            finally:
                connection.execute("COMMIT")
        return found

    def list_priorities(self, queue: str) -> list[PriorityView]:
        """How long the due jobs of a queue have waited, by priority, the highest first."""
        rows = self._select(_PRIORITIES, {"queue": check_name("queue", queue), "now": now_ms()})
        return [PriorityView(priority, waiting, max(oldest, 0)) for priority, waiting, oldest in rows]

    def list_workers(self, *, ended: bool = False) -> list[WorkerView]:
        """The registry, newest first."""
        rows, now = self._select(_WORKERS, {"ended": ended}), now_ms()
        return [VIEWS.worker(row, max(now - row[_HEARTBEAT], 0)) for row in rows]

    def list_attempts(self, job_id: str) -> list[Attempt]:
        """The failed attempts of one job, oldest first."""
        return [VIEWS.attempt(row) for row in self._select(_ATTEMPTS, {"id": job_id})]

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
        one = {"target": target, "actor": actor, "action": action}
        name = next((name for name, value in one.items() if value), "all")
        key = {**one, "after": after or _BEHIND_ALL, "limit": max(1, min(limit, MAX_PAGE))}
        return [VIEWS.audit_entry(row) for row in self._select(_AUDIT[name], key)]

    def list_buckets(self, queue: str | None, since_ms: int) -> list[Bucket]:
        """Outcome counters of the last `since_ms` milliseconds."""
        rows = self._select(_BUCKETS, {"queue": queue, "since": now_ms() - since_ms})
        return [VIEWS.bucket(row) for row in rows]


def containing(text: str | None) -> str | None:
    """A LIKE pattern for whatever contains the text, in which the wildcards stand for themselves; None for no text."""
    if not text:
        return None
    literal = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{literal}%"
