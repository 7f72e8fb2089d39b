"""A stopped job with its history, and what a resurrection of it would risk."""

from datetime import datetime, timedelta

import msgspec

from chokaq.lifecycle.states import FailureReason, JobStatus, Pillar
from chokaq.operations.errors import OperationError
from chokaq.operations.jobs import show_job
from chokaq.store.protocol import Session
from chokaq.store.records import Attempt, AuditEntry, JobView
from chokaq.store.repairs import KeyHolder

OLD = timedelta(days=1)
"""A job that was due longer ago than this may be about a world that has moved on."""


class StoppedJob(msgspec.Struct, frozen=True):
    """A job of the DLQ with its history."""

    job: JobView
    attempts: list[Attempt]
    audit: list[AuditEntry]
    risks: list[str]
    """What a resurrection would risk, one sentence each; empty: nothing that is known."""


def show_stopped(session: Session, job_id: str, now: datetime) -> StoppedJob:
    """A job of the DLQ; `now`: the database's clock. Raises OperationError when it does not stand there."""
    detail = show_job(session, job_id)
    job = detail.job
    if job.pillar != Pillar.DLQ:
        raise OperationError(
            f"the job {job.id} is {job.status.label} and stands in the pillar {job.pillar.value}, not in the DLQ: "
            f"`chokaq jobs show {job.id}`"
        )
    holder = None if job.idempotency_key is None else session.get_key_holder(job.idempotency_key)
    return StoppedJob(job, detail.attempts, detail.audit, resurrection_risks(job, now, holder))


def resurrection_risks(job: JobView, now: datetime, holder: KeyHolder | None = None) -> list[str]:
    """What a resurrection of a stopped job would risk, the gravest first. `holder`: who holds its key; None: nobody does."""
    if job.status == JobStatus.DROPPED:
        return ["It was dropped: it never runs again, and cannot be resurrected."]
    return [*_what_happened(job), *_key(job, holder), *_age(job, now)]


def _what_happened(job: JobView) -> list[str]:
    found = []
    times = _times(job.crash_count)
    if job.failure_reason == FailureReason.POISON:
        found.append(f"Poison: its process died {times} while it ran; it may take down the next one, too.")
    elif job.crash_count:
        found.append(f"Its process died {times} while it ran; it may do so again.")
    if job.status == JobStatus.ZOMBIE:
        found.append(
            "Zombie: its owner was lost while it ran, so whether its effects happened is unknown; they may happen twice."
        )
    elif job.attempt_count:
        found.append(f"It was started {_times(job.attempt_count)}: what it did before it stopped may be done again.")
    if job.failure_reason == FailureReason.FATAL_ERROR:
        found.append("FatalError: it will most likely stop again unless its payload or its handler is mended first.")
    elif job.failure_reason == FailureReason.TIMEOUT:
        found.append("Timeout: it will run as long again unless its work or its timeout changes.")
    return found


def _key(job: JobView, holder: KeyHolder | None) -> list[str]:
    if job.idempotency_key is None:
        return []
    if holder is not None:
        told = (
            f"Its key {job.idempotency_key!r} is held by the live job {holder.id} ({holder.status.label}): it would be "
        )
        return [told + "refused with key_conflict; without its key the same work may be done twice."]
    return [
        f"It takes its key {job.idempotency_key!r} back: no live job holds it now; should one take it first, it is refused."
    ]


def _age(job: JobView, now: datetime) -> list[str]:
    age = now - job.due_at
    if age < OLD:
        return []
    return [f"It was due {age.days:,} {'day' if age.days == 1 else 'days'} ago: what it is about may have moved on."]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
