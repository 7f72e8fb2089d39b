"""A store in memory that keeps the interface of the operators' repairs: what a use-case asks of it, and how it uses the answers.

It holds jobs as views in any pillar. `calls` tells what was asked, with actor, reason and request.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, cast

import msgspec

from chokaq.lifecycle.states import FailureReason, JobStatus, Pillar
from chokaq.store.claims import ClaimView
from chokaq.store.protocol import Session, Store
from chokaq.store.records import Attempt, AuditEntry, JobFilter, JobView, Page
from chokaq.store.repairs import DlqFilter, DlqPreview, Edits, KeyHolder, RepairAnswer

from .ids import new_id
from .jobs import QUEUE, TYPE

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
COUNTED = 10_000
_OPEN = (JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.ZOMBIE)


class Call(NamedTuple):
    """One action that was asked for."""

    action: str
    ids: list[str]
    actor: str
    reason: str | None
    request: str | None
    more: dict[str, Any]


class FakeRepairs:
    """Jobs in memory, and the operations on them."""

    def __init__(self) -> None:
        self.jobs: dict[str, JobView] = {}
        self.workers: dict[str, bool] = {}
        """Worker id → whether it is live."""
        self.attempts: list[Attempt] = []
        self.audit: list[AuditEntry] = []
        self.calls: list[Call] = []
        self.previews: list[DlqFilter] = []
        self.between: Callable[[], None] = lambda: None
        """Called after a preview: what happens meanwhile."""

    @property
    def session(self) -> Session:
        """Itself, as the operations take it."""
        return cast("Session", self)

    @property
    def store(self) -> Store:
        """A store whose sessions are this one."""
        return cast("Store", _FakeStore(self))

    def stopped(self, status: JobStatus = JobStatus.FAILED, **fields: Any) -> str:
        """Add a job to the DLQ; its id."""
        made = {
            "pillar": Pillar.DLQ,
            "status": status,
            "attempt_count": 3,
            "failure_reason": FailureReason.MAX_RETRIES_EXCEEDED,
            "finished_at": NOW - timedelta(hours=1),
        }
        return self.add(**{**made, **fields})

    def add(self, **fields: Any) -> str:
        """Add a job, Pending unless `fields` say otherwise; its id."""
        made = {
            "id": new_id(),
            "pillar": Pillar.HOT,
            "status": JobStatus.PENDING,
            "queue": QUEUE,
            "type_key": TYPE,
            "priority": 10,
            "attempt_count": 0,
            "crash_count": 0,
            "lease": 3,
            "created_at": NOW - timedelta(hours=2),
            "due_at": NOW - timedelta(hours=2),
            "payload": '{"n":1}',
        }
        job = JobView(**{**made, **fields})
        self.jobs[job.id] = job
        return job.id

    # ── the interface ─────────────────────────────────────────────────────────────────────────────────────────────────
    def get_job(self, job_id: str) -> JobView | None:
        return self.jobs.get(job_id)

    def list_jobs(self, where: JobFilter, limit: int = 50, after: str | None = None) -> Page:
        found = [
            msgspec.structs.replace(job, payload=None, headers=None, note=None)
            for job in sorted(self.jobs.values(), key=lambda job: job.id, reverse=True)
            if job.pillar == where.pillar
            and where.queue in (None, job.queue)
            and where.status in (None, job.status)
            and where.type_key in (None, job.type_key)
            and where.reason in (None, job.failure_reason)
            and (where.pillar != Pillar.DLQ or _matches(job, where))
            and (after is None or job.id < after)
        ]
        return Page(found[:limit], found[limit - 1].id if len(found) > limit else None)

    def list_attempts(self, job_id: str) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.job_id == job_id]

    def list_claims(self, _job_id: str) -> list[ClaimView]:
        return []

    def list_audit(self, target: str | None = None, limit: int = 50, after: int | None = None) -> list[AuditEntry]:
        found = [
            entry
            for entry in reversed(self.audit)
            if target in (None, entry.target) and (after is None or entry.id < after)
        ]
        return found[:limit]

    def get_key_holder(self, key: str) -> KeyHolder | None:
        for job in self.jobs.values():
            if job.pillar == Pillar.HOT and job.idempotency_key == key:
                return KeyHolder(job.id, job.status)
        return None

    def preview_dlq(self, where: DlqFilter, limit: int = 100) -> DlqPreview:
        self.previews.append(where)
        found = [job.id for job in sorted(self.jobs.values(), key=_stopped, reverse=True) if _matches(job, where)]
        answer = DlqPreview(min(len(found), COUNTED), len(found) > COUNTED, found[:limit])
        self.between()
        return answer

    def resurrect_jobs(
        self,
        job_ids: Sequence[str],
        actor: str,
        reason: str | None = None,
        *,
        edits: Edits | None = None,
        without_key: bool = False,
        request: str | None = None,
    ) -> list[RepairAnswer]:
        self.calls.append(
            Call("resurrect", list(job_ids), actor, reason, request, {"edits": edits, "without_key": without_key})
        )
        return [self._resurrect(job_id, edits or Edits(), without_key) for job_id in job_ids]

    def _resurrect(self, job_id: str, edits: Edits, without_key: bool) -> RepairAnswer:
        job = self.jobs.get(job_id)
        if job is None or job.status not in _OPEN:
            return _refused(job_id, job)
        key = None if without_key else job.idempotency_key
        for other in self.jobs.values():
            if key is not None and other.pillar == Pillar.HOT and other.idempotency_key == key:
                return RepairAnswer(job_id, "key_conflict", job.status, other.id)
        self.jobs[job_id] = msgspec.structs.replace(
            _edited(job, edits), pillar=Pillar.HOT, status=JobStatus.PENDING, attempt_count=0, idempotency_key=key
        )
        return RepairAnswer(job_id, "accepted", JobStatus.PENDING, queue=job.queue)

    def drop_jobs(
        self, job_ids: Sequence[str], actor: str, reason: str | None = None, *, request: str | None = None
    ) -> list[RepairAnswer]:
        self.calls.append(Call("drop", list(job_ids), actor, reason, request, {}))
        answers = []
        for job_id in job_ids:
            job = self.jobs.get(job_id)
            if job is None or job.status not in _OPEN:
                answers.append(_refused(job_id, job))
            else:
                self.jobs[job_id] = msgspec.structs.replace(job, status=JobStatus.DROPPED)
                answers.append(RepairAnswer(job_id, "accepted", JobStatus.DROPPED))
        return answers

    def purge_jobs(
        self, job_ids: Sequence[str], actor: str, reason: str | None = None, *, request: str | None = None
    ) -> list[RepairAnswer]:
        self.calls.append(Call("purge", list(job_ids), actor, reason, request, {}))
        answers = []
        for job_id in job_ids:
            job = self.jobs.get(job_id)
            if job is None or job.pillar == Pillar.HOT:
                answers.append(_refused(job_id, job))
            else:
                del self.jobs[job_id]
                answers.append(RepairAnswer(job_id, "accepted"))
        return answers

    def edit_job(
        self, job_id: str, edits: Edits, actor: str, reason: str | None = None, *, request: str | None = None
    ) -> RepairAnswer:
        self.calls.append(Call("edit", [job_id], actor, reason, request, {"edits": edits}))
        job = self.jobs.get(job_id)
        if job is None or job.status not in (JobStatus.PENDING, *_OPEN):
            return _refused(job_id, job)
        self.jobs[job_id] = _edited(job, edits)
        return RepairAnswer(job_id, "accepted", job.status)

    def drain_worker(
        self, worker_id: str, actor: str, reason: str | None = None, *, request: str | None = None
    ) -> RepairAnswer:
        self.calls.append(Call("drain", [worker_id], actor, reason, request, {}))
        live = self.workers.get(worker_id)
        return RepairAnswer(worker_id, "unknown" if live is None else "accepted" if live else "wrong_state")

    def close(self) -> None:
        """Nothing is open."""


class _FakeStore:
    identity = "memory"
    url = "memory"

    def __init__(self, repairs: FakeRepairs) -> None:
        self._repairs = repairs

    def session(self) -> Session:
        return self._repairs.session

    def now(self) -> datetime:
        return NOW


def _stopped(job: JobView) -> tuple[datetime, str]:
    return job.finished_at or NOW, job.id


def _refused(job_id: str, job: JobView | None) -> RepairAnswer:
    return RepairAnswer(job_id, "unknown") if job is None else RepairAnswer(job_id, "wrong_state", job.status)


def _edited(job: JobView, edits: Edits) -> JobView:
    return msgspec.structs.replace(
        job, **{name: value for name, value in msgspec.structs.asdict(edits).items() if value is not msgspec.UNSET}
    )


def _matches(job: JobView, where: DlqFilter | JobFilter) -> bool:
    stopped = job.finished_at or NOW
    texts = (job.id, job.type_key, job.tags or "", job.error_message or "")
    return (
        job.pillar == Pillar.DLQ
        and where.queue in (None, job.queue)
        and where.type_key in (None, job.type_key)
        and where.reason in (None, job.failure_reason)
        and where.status in (None, job.status)
        and (where.tag is None or where.tag in (job.tags or ""))
        and (where.failed_from is None or stopped >= where.failed_from)
        and (where.failed_until is None or stopped < where.failed_until)
        and (where.search is None or any(where.search in text for text in texts))
    )
