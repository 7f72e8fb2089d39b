"""Turns the rows of the procedures, read by position, into records."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from chokaq.lifecycle.states import FailureReason, JobStatus, KeyScope, Pillar
from chokaq.store.records import (
    Attempt,
    AttemptError,
    AuditEntry,
    Bucket,
    Cancellation,
    FetchedJob,
    Figures,
    JobView,
    LiveQueue,
    PriorityView,
    QueueView,
    Released,
    WorkerView,
)

_MILLISECOND = timedelta(milliseconds=1)


def aware(instant: datetime) -> datetime:
    """A time of the database, which is UTC without saying so."""
    return instant.replace(tzinfo=UTC)


def aware_or_none(instant: datetime | None) -> datetime | None:
    """Like `aware`."""
    return None if instant is None else instant.replace(tzinfo=UTC)


def fetched_job(row: Sequence[Any], now: datetime) -> FetchedJob:
    """A row of FetchJobs; `now` as the database told it in the same answer."""
    job_id, kind, payload, lease, priority, attempts, crashes, created, due, age_from, tags, created_by, headers = row
    return FetchedJob(
        id=job_id,
        type_key=kind,
        payload=payload,
        lease=lease,
        priority=priority,
        attempt_count=attempts,
        crash_count=crashes,
        created_at=created.replace(tzinfo=UTC),
        due_at=due.replace(tzinfo=UTC),
        age_ms=max((now - age_from) // _MILLISECOND, 0),
        tags=tags,
        created_by=created_by,
        headers=headers,
    )


def live_queue(row: Sequence[Any]) -> LiveQueue:
    """MaxWorkers, FleetMaxWorkers, ExecutionTimeoutMs, ZombieTimeoutMs, IsPaused, IsActive."""
    workers, fleet, execution, zombie, paused, active = row
    return LiveQueue(workers, fleet, execution, zombie, bool(paused), bool(active))


def cancellations(rows: Sequence[Sequence[Any]]) -> list[Cancellation]:
    """Rows of (JobId, LeaseNumber, Actor, Reason)."""
    return [Cancellation(*row) for row in rows]


def job_view(row: Sequence[Any]) -> JobView:
    """A row of ListJobs, or the longer one of GetJob."""
    (
        pillar, job_id, status, queue, kind, priority, attempts, crashes, lease, created, due, started, finished, duration,
        worker_id, heartbeat, progress, tags, created_by, owner, key, scope, cancel, reason, error_type, error_message, *more,
    ) = row  # fmt: skip
    payload, headers, note = more or (None, None, None)
    return JobView(
        id=job_id,
        pillar=Pillar(pillar),
        status=JobStatus(status),
        queue=queue,
        type_key=kind,
        priority=priority,
        attempt_count=attempts,
        crash_count=crashes,
        lease=lease,
        created_at=aware(created),
        due_at=aware(due),
        started_at=aware_or_none(started),
        finished_at=aware_or_none(finished),
        duration_ms=duration,
        worker_id=worker_id,
        heartbeat_at=aware_or_none(heartbeat),
        progress=progress,
        tags=tags,
        created_by=created_by,
        owner_login=owner,
        idempotency_key=key,
        key_scope=KeyScope(scope),
        cancel_requested_at=aware_or_none(cancel),
        failure_reason=None if reason is None else FailureReason(reason),
        error_type=error_type,
        error_message=error_message,
        payload=payload,
        headers=headers,
        note=note,
    )


def queue_view(row: Sequence[Any]) -> QueueView:
    """A row of ListQueues."""
    name, *overrides = row[:7]
    pending, scheduled, fetched, processing, ok, bad, again, oldest, live, known, at, by, running = row[7:]
    return QueueView(
        name=name,
        live=live_queue(overrides),
        pending=pending,
        scheduled=scheduled,
        fetched=fetched,
        processing=processing,
        succeeded_total=int(ok),
        failed_total=int(bad),
        retried_total=int(again),
        oldest_due_ms=None if oldest is None else max(oldest, 0),
        live_workers=live,
        known=bool(known),
        updated_at=aware_or_none(at),
        updated_by=by,
        oldest_running_ms=None if running is None else max(running, 0),
    )


def priority_view(row: Sequence[Any]) -> PriorityView:
    """A row of ListPriorities."""
    priority, waiting, oldest = row
    return PriorityView(priority, waiting, max(oldest, 0))


def worker_view(row: Sequence[Any]) -> WorkerView:
    """A row of ListWorkers."""
    worker_id, queue, host, pid, version, slot, most, started, heartbeat, age, ended, cause, *figures, drain_at = row
    return WorkerView(
        worker_id=worker_id,
        queue=queue,
        host=host,
        pid=pid,
        version=version,
        slot=slot,
        max_workers=most,
        started_at=aware(started),
        heartbeat_at=aware(heartbeat),
        heartbeat_age_ms=age,
        ended_at=aware_or_none(ended),
        ended_cause=cause,
        figures=Figures(*figures),
        drain_at=aware_or_none(drain_at),
    )


def attempt(row: Sequence[Any]) -> Attempt:
    """A row of ListAttempts."""
    job_id, lease, at, worker_id, reason, kind, message, trace = row
    return Attempt(
        job_id=job_id,
        lease=lease,
        at=aware(at),
        worker_id=worker_id,
        reason=FailureReason(reason),
        error=AttemptError(kind, message, trace),
    )


def audit_entry(row: Sequence[Any]) -> AuditEntry:
    """A row of ListAudit."""
    number, at, actor, action, target, reason, before, after = row
    return AuditEntry(
        id=number,
        at=aware(at),
        actor=actor,
        action=action,
        target=target,
        reason=reason,
        before=before,
        after=after,
    )


def bucket(row: Sequence[Any]) -> Bucket:
    """A row of ListBuckets. (Sums of bigint may arrive as decimals.)"""
    start, seconds, queue, outcome, reason, count, duration, longest, *lag = row
    return Bucket(
        start=aware(start),
        seconds=seconds,
        queue=queue,
        outcome=outcome,
        reason=reason,
        count=int(count),
        duration_ms=int(duration),
        max_duration_ms=int(longest),
        lag=tuple(int(part) for part in lag),
    )


def released(row: Sequence[Any]) -> Released:
    """A row of ReleaseWorker, or the longer one of RecoverAbandoned and ArchiveZombies, with the next page's place."""
    pending, zombies, poisoned, failed, cancelled, done, *place = row
    return Released(
        pending=pending,
        zombies=zombies,
        poisoned=poisoned,
        failed=failed,
        cancelled=cancelled,
        done=bool(done),
        cursor=f"{place[0]}:{place[1]}" if place and place[0] is not None else None,
    )
