"""Jobs that have stopped, in every way a job can."""

from collections.abc import Sequence

from chokaq.lifecycle.states import DeathCause, FailureReason, JobStatus
from chokaq.store.protocol import Session
from chokaq.store.records import CrashPolicies, Failure, NewJob

from .holder import Holder
from .jobs import ERROR, QUEUE, death, new_job, new_jobs

STOPPED = [JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.ZOMBIE]


def fail(
    session: Session, jobs: Sequence[NewJob], reason: FailureReason = FailureReason.FATAL_ERROR, queue: str = QUEUE
) -> list[str]:
    """Enqueue jobs of one queue and let each fail once; their ids, in order."""
    session.enqueue_jobs(jobs)
    holder = Holder(session, queue)
    held = holder.take_all(len(jobs))
    failures = [Failure(h.id, h.lease, JobStatus.FAILED, reason, ERROR) for h in held]
    session.archive_failed(holder.worker, failures)
    return [job.id for job in jobs]


def stopped(session: Session, status: JobStatus, job: NewJob | None = None) -> str:
    """A job that has come to this state the way jobs do; its id."""
    job = job or new_job()
    if status is JobStatus.FAILED or status is JobStatus.DROPPED:
        fail(session, [job], queue=job.queue)
        if status is JobStatus.DROPPED:
            session.drop_jobs([job.id], "dan")
        return job.id
    session.enqueue_jobs([job])
    if status is JobStatus.CANCELLED:
        session.cancel_jobs([job.id], "dan")
        return job.id
    holder = Holder(session, job.queue)
    held = holder.take_one()
    if status is JobStatus.ZOMBIE:
        by = Holder(session, "").worker
        session.release_worker(by, death(holder.id, DeathCause.CRASH, queue=job.queue), CrashPolicies())
    else:
        assert status is JobStatus.SUCCEEDED
        holder.succeed([held])
    return job.id


def everywhere(session: Session) -> dict[JobStatus, str]:
    """One job in every state; ids by state."""
    found = {status: stopped(session, status) for status in (*STOPPED, JobStatus.DROPPED, JobStatus.SUCCEEDED)}
    holder = Holder(session)
    running, buffered, waiting = new_jobs(3)
    session.enqueue_jobs([running])
    found[JobStatus.PROCESSING] = holder.take_one().id
    session.enqueue_jobs([buffered])
    found[JobStatus.FETCHED] = holder.claim_one().id
    session.enqueue_jobs([waiting])
    found[JobStatus.PENDING] = waiting.id
    return found
