"""Rows as the records that people see."""

from collections.abc import Sequence
from typing import Any

from chokaq.lifecycle.states import FailureReason, JobStatus, KeyScope, Pillar
from chokaq.store.records import JobView, LiveQueue
from chokaq.store.sqlite.clock import from_ms, from_ms_or_none


def job_view(
    columns: Sequence[Any], *, payload: str | None = None, headers: str | None = None, note: str | None = None
) -> JobView:
    """A job from the columns that GetJob.sql and ListJobs.sql select, in their order."""
    (
        pillar, job_id, status, queue, type_key, priority, attempts, crashes, lease, created, due, started, finished, duration,
        worker_id, heartbeat, progress, tags, created_by, owner, key, scope, cancel, reason, error_type, error_message,
    ) = columns  # fmt: skip
    return JobView(
        id=job_id,
        pillar=Pillar(pillar),
        status=JobStatus(status),
        queue=queue,
        type_key=type_key,
        priority=priority,
        attempt_count=attempts,
        crash_count=crashes,
        lease=lease,
        created_at=from_ms(created),
        due_at=from_ms(due),
        started_at=from_ms_or_none(started),
        finished_at=from_ms_or_none(finished),
        duration_ms=duration,
        worker_id=worker_id,
        heartbeat_at=from_ms_or_none(heartbeat),
        progress=progress,
        tags=tags,
        created_by=created_by,
        owner_login=owner,
        idempotency_key=key,
        key_scope=KeyScope(scope),
        cancel_requested_at=from_ms_or_none(cancel),
        failure_reason=None if reason is None else FailureReason(reason),
        error_type=error_type,
        error_message=error_message,
        payload=payload,
        headers=headers,
        note=note,
    )


def live_queue(columns: Sequence[Any]) -> LiveQueue:
    """The overrides of a queue from MaxWorkers, FleetMaxWorkers, ExecutionTimeoutMs, ZombieTimeoutMs, IsPaused, IsActive."""
    max_workers, fleet, execution_timeout, zombie_timeout, paused, active = columns
    return LiveQueue(max_workers, fleet, execution_timeout, zombie_timeout, bool(paused), bool(active))
