"""Rows as the records that people see.

The stores select the same columns in the same order; they differ in how they hold a time.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from chokaq.lifecycle.circuit import CircuitState, Forced
from chokaq.lifecycle.states import FailureReason, JobStatus, KeyScope, Pillar
from chokaq.store.circuits import CircuitEvent, CircuitOrder, CircuitView
from chokaq.store.claims import ClaimView
from chokaq.store.records import Attempt, AttemptError, AuditEntry, Bucket, Figures, JobView, LiveQueue, WorkerView


def live_queue(row: Sequence[Any]) -> LiveQueue:
    """MaxWorkers, FleetMaxWorkers, ExecutionTimeoutMs, ZombieTimeoutMs, IsPaused, IsActive."""
    workers, fleet, execution, zombie, paused, active = row
    return LiveQueue(workers, fleet, execution, zombie, bool(paused), bool(active))


class Views:
    """Makes records of the rows of one store."""

    def __init__(self, instant: Callable[[Any], datetime]) -> None:
        """`instant`: a time as this store holds it, as an aware one."""
        self._at = instant

    def job(self, row: Sequence[Any]) -> JobView:
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
            created_at=self._at(created),
            due_at=self._at(due),
            started_at=self._or_none(started),
            finished_at=self._or_none(finished),
            duration_ms=duration,
            worker_id=worker_id,
            heartbeat_at=self._or_none(heartbeat),
            progress=progress,
            tags=tags,
            created_by=created_by,
            owner_login=owner,
            idempotency_key=key,
            key_scope=KeyScope(scope),
            cancel_requested_at=self._or_none(cancel),
            failure_reason=None if reason is None else FailureReason(reason),
            error_type=error_type,
            error_message=error_message,
            payload=payload,
            headers=headers,
            note=note,
        )

    def worker(self, row: Sequence[Any], heartbeat_age_ms: int) -> WorkerView:
        """A row of ListWorkers without the age of its heartbeat, and that."""
        worker_id, queue, host, pid, version, slot, most, started, heartbeat, ended, cause, *figures, drain_at = row
        return WorkerView(
            worker_id=worker_id,
            queue=queue,
            host=host,
            pid=pid,
            version=version,
            slot=slot,
            max_workers=most,
            started_at=self._at(started),
            heartbeat_at=self._at(heartbeat),
            heartbeat_age_ms=heartbeat_age_ms,
            ended_at=self._or_none(ended),
            ended_cause=cause,
            figures=Figures(*figures),
            drain_at=self._or_none(drain_at),
        )

    def attempt(self, row: Sequence[Any]) -> Attempt:
        """A row of ListAttempts."""
        job_id, lease, at, worker_id, reason, kind, message, trace = row
        return Attempt(
            job_id=job_id,
            lease=lease,
            at=self._at(at),
            worker_id=worker_id,
            reason=FailureReason(reason),
            error=AttemptError(kind, message, trace),
        )

    def audit_entry(self, row: Sequence[Any]) -> AuditEntry:
        """A row of ListAudit."""
        number, at, actor, action, target, reason, before, after = row
        return AuditEntry(
            id=number,
            at=self._at(at),
            actor=actor,
            action=action,
            target=target,
            reason=reason,
            before=before,
            after=after,
        )

    def bucket(self, row: Sequence[Any]) -> Bucket:
        """A row of ListBuckets. (Sums may arrive as decimals.)"""
        start, seconds, queue, outcome, reason, count, duration, longest, *lag = row
        return Bucket(
            start=self._at(start),
            seconds=seconds,
            queue=queue,
            outcome=outcome,
            reason=reason,
            count=int(count),
            duration_ms=int(duration),
            max_duration_ms=int(longest),
            lag=tuple(int(part) for part in lag),
        )

    def claim(self, row: Sequence[Any]) -> ClaimView:
        """A row of ListClaims."""
        key, job_id, lease, worker_id, state, claimed, done, expires, result = row
        return ClaimView(
            key=key,
            job_id=job_id,
            lease=lease,
            worker_id=worker_id,
            state=state,
            claimed_at=self._at(claimed),
            done_at=self._or_none(done),
            expires_at=self._or_none(expires),
            result=result,
        )

    def circuit(self, row: Sequence[Any], next_probe_ms: int | None) -> CircuitView:
        """A row of ListCircuits with its next probe as milliseconds from now."""
        type_key, worker_id, queue, host, state, failures, generation, changed, _next_probe, last_error = row
        return CircuitView(
            type_key=type_key,
            worker_id=worker_id,
            queue=queue,
            host=host,
            state=CircuitState(state),
            failures=failures,
            generation=generation,
            changed_at=self._at(changed),
            next_probe_ms=next_probe_ms,
            last_error=last_error,
        )

    def circuit_order(self, row: Sequence[Any]) -> CircuitOrder:
        """An order in force."""
        type_key, forced, actor, reason, at, number = row
        return CircuitOrder(
            type_key=type_key, forced=Forced(forced), actor=actor, reason=reason, at=self._at(at), number=number
        )

    def circuit_event(self, row: Sequence[Any]) -> CircuitEvent:
        """A row of ListCircuitEvents."""
        number, type_key, at, before, after, worker_id, host, queue, failures, error, forced, actor, reason, ended = row
        return CircuitEvent(
            id=number,
            type_key=type_key,
            at=self._at(at),
            before=None if before is None else CircuitState(before),
            after=None if after is None else CircuitState(after),
            worker_id=worker_id,
            host=host,
            queue=queue,
            failures=failures,
            last_error=error,
            forced=None if forced is None else Forced(forced),
            actor=actor,
            reason=reason,
            worker_ended_at=self._or_none(ended),
        )

    def _or_none(self, value: Any) -> datetime | None:
        return None if value is None else self._at(value)
