"""CancelJobs and what a requested cancellation turns into (design §3.7)."""

from collections.abc import Callable

import pytest

from chokaq.lifecycle.states import Answer, DeathCause, FailureReason, JobStatus, Pillar
from chokaq.store.protocol import Session
from chokaq.store.records import (
    Beat,
    CancelAnswer,
    Cancellation,
    CrashPolicies,
    CrashPolicy,
    Failure,
    Figures,
    Held,
    Release,
    Retry,
)
from tests.support.holder import Holder
from tests.support.ids import new_id
from tests.support.jobs import ERROR, QUEUE, death, new_job, new_jobs
from tests.support.lab import Lab

MINUTE = 60_000


def cancelled(session: Session, job_id: str) -> bool:
    """Whether it stands in the DLQ as Cancelled."""
    job = session.get_job(job_id)
    assert job is not None
    return (job.pillar, job.status, job.failure_reason) == (Pillar.DLQ, JobStatus.CANCELLED, FailureReason.CANCELLED)


def requested(session: Session, holder: Holder) -> Held:
    """A running job whose cancellation was asked for."""
    session.enqueue_jobs([new_job()])
    held = holder.take_one()
    assert session.cancel_jobs([held.id], "ann", "enough") == [CancelAnswer(held.id, "requested")]
    return held


def test_each_job_is_answered_by_where_it_stood_in_the_order_asked(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(3))
    done = holder.take_one()
    holder.succeed([done])
    running = holder.take_one()
    buffered = holder.claim_one()
    waiting, later = new_job(), new_job(delay_ms=MINUTE)
    session.enqueue_jobs([waiting, later])
    nobody = new_id()

    ids = [running.id, nobody, later.id, done.id, waiting.id, buffered.id]
    answers = session.cancel_jobs(ids, "ann", "enough")

    assert [(answer.id, answer.result) for answer in answers] == list(
        zip(ids, ["requested", "unknown", "cancelled", "final", "cancelled", "cancelled"], strict=True)
    )
    for job_id in (later.id, waiting.id, buffered.id):
        assert cancelled(session, job_id)
    assert lab.where(done.id) == [Pillar.ARCHIVE]
    job = session.get_job(running.id)
    assert job is not None
    assert job.status is JobStatus.PROCESSING
    assert job.cancel_requested_at is not None


def test_a_cancellation_may_be_repeated(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(2))
    running = holder.take_one()
    waiting = next(row["Id"] for row in lab.rows("JobsHot") if row["Id"] != running.id)
    session.cancel_jobs([running.id, waiting], "ann", "enough")
    before = lab.snapshot()

    again = session.cancel_jobs([running.id, waiting], "ann", "enough")

    assert [answer.result for answer in again] == ["requested", "final"]
    assert lab.snapshot() == before


def test_an_empty_set_and_a_thousand(session: Session, lab: Lab) -> None:
    assert session.cancel_jobs([], "ann") == []
    jobs = new_jobs(1000)
    session.enqueue_jobs(jobs)

    answers = session.cancel_jobs([job.id for job in jobs[::-1]], "ann")

    assert [answer.id for answer in answers] == [job.id for job in jobs[::-1]]
    assert {answer.result for answer in answers} == {"cancelled"}
    assert lab.count("JobsDLQ") == lab.count("AuditLog") == 1000


def test_the_holder_is_told_by_every_fetch_and_every_beat_until_the_job_moves(session: Session, lab: Lab) -> None:
    """C25, C47: cross-process cancellation; also while draining (a fetch of size zero) and with a full buffer."""
    holder, other = Holder(session), Holder(session)
    held = requested(session, holder)
    told = [Cancellation(held.id, held.lease, "ann", "enough")]

    assert holder.fetch(0).cancellations == told
    assert holder.fetch(5).cancellations == told
    assert session.keep_alive(holder.worker, [Beat(held.id, held.lease)], Figures()) == ([Answer.APPLIED], told)
    assert other.fetch(0).cancellations == []
    assert session.keep_alive(other.worker, [], Figures())[1] == []

    failure = Failure(held.id, held.lease, JobStatus.CANCELLED, FailureReason.CANCELLED)
    assert session.archive_failed(holder.worker, [failure]) == [Answer.APPLIED]
    assert cancelled(session, held.id)
    assert holder.fetch(0).cancellations == []
    assert lab.rows("CancelRequests") == []


def test_a_paused_queue_still_tells_cancellations(session: Session) -> None:
    from chokaq.store.records import QueueChange

    holder = Holder(session)
    held = requested(session, holder)
    session.set_queue(QUEUE, QueueChange(paused=True), "ann")

    assert [told.id for told in holder.fetch(5).cancellations] == [held.id]


def test_a_success_that_comes_before_the_cancellation_is_kept(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    held = holder.take_one()
    holder.succeed([held])

    assert session.cancel_jobs([held.id], "ann") == [CancelAnswer(held.id, "final")]
    assert lab.where(held.id) == [Pillar.ARCHIVE]
    assert lab.rows("AuditLog") == []


def test_a_success_after_a_mere_request_wins(session: Session, lab: Lab) -> None:
    """Design §3.7: whichever outcome reaches the store first; a request alone is no outcome."""
    holder = Holder(session)
    held = requested(session, holder)

    holder.succeed([held])

    assert lab.where(held.id) == [Pillar.ARCHIVE]
    assert lab.rows("CancelRequests") == []
    failure = Failure(held.id, held.lease, JobStatus.CANCELLED, FailureReason.CANCELLED)
    assert session.archive_failed(holder.worker, [failure]) == [Answer.STALE]


@pytest.mark.parametrize("buffered", [True, False])
def test_a_cancelled_job_neither_starts_nor_succeeds_nor_returns(session: Session, lab: Lab, buffered: bool) -> None:
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    held = holder.claim_one() if buffered else Held(lab.rows("JobsHot")[0]["Id"], 0)
    session.cancel_jobs([held.id], "ann")
    before = lab.snapshot()

    assert session.start_jobs(holder.worker, [held]) == [Answer.STALE]
    assert session.archive_succeeded(holder.worker, [held]) == [Answer.STALE]
    # CANCELLED is as true an answer to a retry as STALE: the job ended Cancelled instead of returning to Pending.
    [answer] = session.reschedule_for_retry(holder.worker, [Retry(held.id, held.lease, 0, ERROR)])
    assert answer in (Answer.STALE, Answer.CANCELLED)
    assert holder.fetch(5).jobs == []
    assert Holder(session).fetch(5).jobs == []
    assert lab.snapshot() == before


Return = Callable[[Holder, Held], object]
RETURNS: dict[str, tuple[Return, object]] = {
    "retry": (
        lambda holder, held: holder.session.reschedule_for_retry(holder.worker, [Retry(held.id, held.lease, 9, ERROR)]),
        [Answer.CANCELLED],
    ),
    "release": (
        lambda holder, held: holder.session.release_jobs(holder.worker, [Release(held.id, held.lease)]),
        [Answer.CANCELLED],
    ),
    "snooze": (
        lambda holder, held: holder.session.release_jobs(holder.worker, [Release(held.id, held.lease, 9_000)]),
        [Answer.CANCELLED],
    ),
}


@pytest.mark.parametrize("way", RETURNS)
def test_whatever_would_return_the_job_to_pending_ends_it_cancelled(session: Session, lab: Lab, way: str) -> None:
    holder = Holder(session)
    held = requested(session, holder)
    call, expected = RETURNS[way]

    assert call(holder, held) == expected

    assert cancelled(session, held.id)
    assert lab.rows("CancelRequests") == []
    before = lab.snapshot()
    assert call(holder, held) == expected, "an ambiguous commit is settled by the same answer"
    assert lab.snapshot() == before
    assert Holder(session).fetch(5).jobs == []


def test_a_retry_that_ends_cancelled_keeps_its_error(session: Session) -> None:
    holder = Holder(session)
    held = requested(session, holder)
    session.reschedule_for_retry(holder.worker, [Retry(held.id, held.lease, 9_000, ERROR)])

    assert [attempt.error for attempt in session.list_attempts(held.id)] == [ERROR]


@pytest.mark.parametrize("cause", list(DeathCause))
def test_the_death_of_its_worker_ends_it_cancelled(session: Session, lab: Lab, cause: DeathCause) -> None:
    holder = Holder(session)
    held = requested(session, holder)
    policies = CrashPolicies(default=CrashPolicy(on_crash="retry"))

    notice = death(holder.id, cause, held)
    released = session.release_worker(Holder(session, "").worker, notice, policies)

    assert (released.cancelled, released.pending, released.zombies, released.failed) == (1, 0, 0, 0)
    assert cancelled(session, held.id)
    assert lab.rows("CancelRequests") == []


def test_the_rescue_ends_it_cancelled(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    held = requested(session, holder)
    lab.age(held.id, "HeartbeatUtc", 60 * MINUTE)

    released = session.archive_zombies(Holder(session, "").worker, QUEUE, MINUTE, CrashPolicies())

    assert released.cancelled == 1
    assert cancelled(session, held.id)


def test_one_batch_may_hold_cancelled_and_other_jobs(session: Session) -> None:
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(3))
    held = holder.take(3)
    session.cancel_jobs([held[1].id], "ann")

    retries = [Retry(h.id, h.lease, 9_000, ERROR) for h in held]

    assert [answer.name for answer in session.reschedule_for_retry(holder.worker, retries)] == [
        "APPLIED", "CANCELLED", "APPLIED"
    ]  # fmt: skip


def test_every_change_is_in_the_audit_log_with_actor_and_reason(session: Session, lab: Lab) -> None:
    """C48."""
    holder = Holder(session)
    session.enqueue_jobs(new_jobs(2))
    running = holder.take_one()
    waiting = next(row["Id"] for row in lab.rows("JobsHot") if row["Id"] != running.id)

    session.cancel_jobs([running.id, waiting, new_id()], "anna", "“wrong” template 😀\nsee #7")

    entries = session.list_audit()
    assert {entry.target for entry in entries} == {running.id, waiting}
    assert len(entries) == 2
    for entry in entries:
        assert (entry.actor, entry.reason) == ("anna", "“wrong” template 😀\nsee #7")
        assert "cancel" in entry.action.lower()
        assert entry.before is not None
        assert entry.after is not None
        assert entry.before != entry.after


def test_a_client_may_cancel_its_own_jobs_only(session: Session, lab: Lab) -> None:
    """`own_only`: jobs of another login are as unknown as those that do not exist."""
    mine, other = new_job(), new_job()
    session.enqueue_jobs([mine, other])
    lab.put(other.id, OwnerLogin="somebody-else")

    answers = session.cancel_jobs([other.id, mine.id], "app", own_only=True)

    assert [answer.result for answer in answers] == ["unknown", "cancelled"]
    assert lab.where(other.id) == [Pillar.HOT]


def test_a_repeat_of_a_call_answers_what_its_first_try_did(session: Session) -> None:
    first, second = new_job(), new_job()
    session.enqueue_jobs([first, second])
    request = new_id()
    session.cancel_jobs([first.id], "ann", request=new_id())
    assert session.cancel_jobs([first.id, second.id], "ann", request=request) == [
        CancelAnswer(first.id, "final"),
        CancelAnswer(second.id, "cancelled"),
    ]

    again = session.cancel_jobs([first.id, second.id], "ann", request=request)

    assert again == [CancelAnswer(first.id, "final"), CancelAnswer(second.id, "cancelled")]
    assert len(session.list_audit(second.id)) == 1
