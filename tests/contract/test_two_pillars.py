"""A job that a manual repair left in two pillars: no row of it is refused for ever, and the newer facts stay."""

from collections.abc import Callable

import pytest

from chokaq.lifecycle.states import Answer, DeathCause, FailureReason, JobStatus, Pillar
from chokaq.store.protocol import Session
from chokaq.store.records import CrashPolicies, Failure, Held, Release, Retry
from tests.support.holder import Holder
from tests.support.jobs import ERROR, death, new_job, new_jobs
from tests.support.lab import Lab

MINUTE = 60_000
_SHARED = (
    "Id, Queue, Type, Priority, DueAtUtc, LeaseNumber, AttemptCount, CrashCount, CreatedAtUtc, AgeFromUtc, KeyScope, "
    "PayloadHash, Payload"
)


def put_back(lab: Lab, job_id: str, table: str) -> None:
    """What somebody does by hand to have a job run again, and forgets to delete the old row."""
    lab.execute(
        f"INSERT INTO {{JobsHot}} (Status, IsReady, {_SHARED}) SELECT 0, 1, {_SHARED} FROM {{{table}}} WHERE Id = ?",
        job_id,
    )


def failed(holder: Holder, held: Held) -> None:
    failure = Failure(held.id, held.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR, ERROR)
    assert holder.session.archive_failed(holder.worker, [failure]) == [Answer.APPLIED]


def too_old(holder: Holder, held: Held) -> None:
    retry = Retry(held.id, held.lease, 5_000, ERROR, max_age_ms=1)
    assert holder.session.reschedule_for_retry(holder.worker, [retry]) == [Answer.EXPIRED]


def snoozed_too_long(holder: Holder, held: Held) -> None:
    release = Release(held.id, held.lease, 9_000, max_age_ms=1)
    assert holder.session.release_jobs(holder.worker, [release]) == [Answer.EXPIRED]


def zombie(holder: Holder, _held: Held) -> None:
    assert holder.session.archive_zombies(holder.worker, "mail", MINUTE, CrashPolicies()).zombies == 1


def crashed(holder: Holder, _held: Held) -> None:
    notice = death(holder.id, DeathCause.CRASH, signal=9)
    assert holder.session.release_worker(Holder(holder.session, "").worker, notice, CrashPolicies()).zombies == 1


MOVES = [
    (failed, FailureReason.FATAL_ERROR),
    (too_old, FailureReason.RETRY_LIFETIME_EXPIRED),
    (snoozed_too_long, FailureReason.RETRY_LIFETIME_EXPIRED),
    (zombie, FailureReason.ZOMBIE),
    (crashed, FailureReason.ZOMBIE),
]


def stopped_and_put_back(session: Session, lab: Lab) -> str:
    """A job in the DLQ as Cancelled, and in Hot again."""
    job = new_job()
    session.enqueue_jobs([job])
    session.cancel_jobs([job.id], "ann")
    put_back(lab, job.id, "JobsDLQ")
    return job.id


@pytest.mark.parametrize(("move", "reason"), MOVES)
def test_a_move_into_the_dlq_replaces_the_row_that_stood_there(
    session: Session, lab: Lab, move: Callable[[Holder, Held], None], reason: FailureReason
) -> None:
    job_id = stopped_and_put_back(session, lab)
    holder = Holder(session)
    held = holder.take_one()
    lab.age(job_id, "HeartbeatUtc", 10 * MINUTE)
    lab.age(job_id, "AgeFromUtc", MINUTE)

    move(holder, held)

    assert lab.where(job_id) == [Pillar.DLQ]
    row = lab.row(job_id, "JobsDLQ")
    assert (row["FailureReason"], row["LeaseNumber"]) == (reason, held.lease)


def test_a_cancellation_replaces_it_too(session: Session, lab: Lab) -> None:
    job_id = stopped_and_put_back(session, lab)

    assert session.cancel_jobs([job_id], "bert")[0].result == "cancelled"

    assert lab.where(job_id) == [Pillar.DLQ]
    assert lab.row(job_id, "JobsDLQ")["LastModifiedBy"] == "bert"


def succeeded_and_put_back(session: Session, lab: Lab, holder: Holder) -> str:
    """A job in the Archive, and in Hot again."""
    job = new_job()
    session.enqueue_jobs([job])
    holder.succeed([holder.take_one()])
    put_back(lab, job.id, "JobsArchive")
    return job.id


def test_a_success_replaces_the_row_that_stood_in_the_archive_and_its_neighbours_are_not_held_up(
    session: Session, lab: Lab
) -> None:
    holder = Holder(session)
    job_id = succeeded_and_put_back(session, lab, holder)
    neighbours = new_jobs(2)
    session.enqueue_jobs(neighbours)
    held = {one.id: one for one in holder.take_all(3)}

    done = [held[neighbours[0].id], held[job_id], held[neighbours[1].id]]
    assert session.archive_succeeded(holder.worker, done) == [Answer.APPLIED] * 3
    assert session.archive_succeeded(holder.worker, done) == [Answer.APPLIED] * 3

    assert [lab.where(job.id) for job in done] == [[Pillar.ARCHIVE]] * 3
    assert lab.row(job_id, "JobsArchive")["LeaseNumber"] == held[job_id].lease


def test_a_holder_that_lost_the_job_clears_nothing_from_the_archive(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    job_id = succeeded_and_put_back(session, lab, holder)
    old = lab.row(job_id, "JobsArchive")["LeaseNumber"]
    held = holder.take_one()

    late = Held(job_id, held.lease + 1)
    assert session.archive_succeeded(holder.worker, [late]) == [Answer.STALE]

    assert lab.where(job_id) == [Pillar.HOT, Pillar.ARCHIVE]
    assert lab.row(job_id, "JobsArchive")["LeaseNumber"] == old
    assert session.archive_succeeded(holder.worker, [held]) == [Answer.APPLIED]
