"""What a move keeps: success, failure, retry and hand-back, seen from the rows they leave behind."""

from datetime import timedelta

import pytest

from chokaq.lifecycle.states import Answer, FailureReason, JobStatus, KeyScope, Pillar
from chokaq.store.protocol import Session
from chokaq.store.records import Beat, Failure, Figures, Held, Release, Retry
from tests.support.holder import Holder
from tests.support.jobs import ERROR, new_job
from tests.support.lab import Lab

HOUR = 3_600_000
KEPT = (
    "Queue", "Type", "Priority", "DueAtUtc", "LeaseNumber", "AttemptCount", "CrashCount", "WorkerId", "StartedAtUtc",
    "Progress", "CreatedAtUtc", "ScheduledAtUtc", "AgeFromUtc", "KeyScope", "PayloadHash", "IdempotencyKey", "OwnerLogin",
    "CreatedBy", "Tags", "Headers", "Payload",
)  # fmt: skip


def rich_job(session: Session, lab: Lab, holder: Holder) -> Held:
    """A running job with every column filled."""
    job = new_job(
        payload='{"a": "é"}'.encode("ascii", "backslashreplace").decode(),
        priority=77,
        delay_ms=HOUR,
        tags="tenant=7",
        created_by="web",
        headers='{"traceparent":"00-1"}',
        idempotency_key="k1",
        key_scope=KeyScope.RETAINED,
    )
    session.enqueue_jobs([job])
    lab.age(job.id, "DueAtUtc", 2 * HOUR)
    lab.put(job.id, CrashCount=2)
    held = holder.take_one()
    session.keep_alive(holder.worker, [Beat(held.id, held.lease, 42, "nearly half")], Figures())
    return held


def test_a_success_moves_to_the_archive_with_everything(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    held = rich_job(session, lab, holder)
    hot = lab.row(held.id)
    lab.age(held.id, "StartedAtUtc", 1_500)

    holder.succeed([held])

    assert lab.where(held.id) == [Pillar.ARCHIVE]
    archived = lab.row(held.id, "JobsArchive")
    hot["StartedAtUtc"] -= 1_500
    assert {name: archived[name] for name in KEPT} == {name: hot[name] for name in KEPT}
    assert archived["FinishedAtUtc"] - archived["StartedAtUtc"] == archived["DurationMs"]
    assert 1_500 <= archived["DurationMs"] < 21_500
    view = session.get_job(held.id)
    assert view is not None
    assert (view.pillar, view.status, view.progress, view.note) == (
        Pillar.ARCHIVE,
        JobStatus.SUCCEEDED,
        42,
        "nearly half",
    )
    assert view.duration_ms == archived["DurationMs"]
    assert view.finished_at is not None
    assert view.started_at is not None
    assert view.finished_at - view.started_at == timedelta(milliseconds=archived["DurationMs"])
    assert session.get_statuses([held.id]) == [JobStatus.SUCCEEDED]


def test_a_failure_moves_to_the_dlq_with_everything_and_its_error(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    held = rich_job(session, lab, holder)
    hot = lab.row(held.id)

    failure = Failure(held.id, held.lease, JobStatus.FAILED, FailureReason.TIMEOUT, ERROR)
    assert session.archive_failed(holder.worker, [failure]) == [Answer.APPLIED]

    assert lab.where(held.id) == [Pillar.DLQ]
    stopped = lab.row(held.id, "JobsDLQ")
    assert {name: stopped[name] for name in KEPT} == {name: hot[name] for name in KEPT}
    view = session.get_job(held.id)
    assert view is not None
    assert (view.pillar, view.status, view.failure_reason) == (Pillar.DLQ, JobStatus.FAILED, FailureReason.TIMEOUT)
    assert (view.error_type, view.error_message) == (ERROR.type, ERROR.message)
    assert (view.progress, view.note, view.payload) == (42, "nearly half", hot["Payload"])
    assert view.finished_at is not None
    [attempt] = session.list_attempts(held.id)
    assert (attempt.job_id, attempt.lease, attempt.worker_id) == (held.id, held.lease, holder.id)
    assert (attempt.reason, attempt.error) == (FailureReason.TIMEOUT, ERROR)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (JobStatus.FAILED, FailureReason.FATAL_ERROR),
        (JobStatus.FAILED, FailureReason.THROTTLED),
        (JobStatus.FAILED, FailureReason.RETRY_LIFETIME_EXPIRED),
        (JobStatus.CANCELLED, FailureReason.CANCELLED),
    ],
)
@pytest.mark.parametrize("started", [True, False])
def test_a_job_may_stop_before_or_after_its_start(
    session: Session, lab: Lab, status: JobStatus, reason: FailureReason, started: bool
) -> None:
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    held = holder.take_one() if started else holder.claim_one()

    assert session.archive_failed(holder.worker, [Failure(held.id, held.lease, status, reason)]) == [Answer.APPLIED]

    view = session.get_job(held.id)
    assert view is not None
    assert (view.pillar, view.status, view.failure_reason) == (Pillar.DLQ, status, reason)
    assert view.attempt_count == int(started)
    assert lab.rows("JobAttempts") == []


def test_a_start_charges_the_attempt(session: Session) -> None:
    """Design §3.4: AttemptCount counts executions started."""
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    held = holder.take_one()

    view = session.get_job(held.id)

    assert view is not None
    assert (view.status, view.attempt_count) == (JobStatus.PROCESSING, 1)
    assert view.started_at is not None
    assert view.heartbeat_at is not None
    assert view.heartbeat_at >= view.started_at


def test_a_retry_waits_its_delay_keeps_the_charge_and_leaves_its_error(session: Session, lab: Lab) -> None:
    """The reference threw lastError away (G11)."""
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    held = holder.take_one()
    before = lab.row(held.id)

    [answer] = session.reschedule_for_retry(holder.worker, [Retry(held.id, held.lease, 3_000, ERROR)])

    assert answer is Answer.APPLIED
    row = lab.row(held.id)
    assert (row["Status"], row["AttemptCount"], row["LeaseNumber"]) == (0, 1, held.lease)
    assert 3_000 <= row["DueAtUtc"] - before["StartedAtUtc"] < 23_000
    assert row["AgeFromUtc"] == before["AgeFromUtc"]
    assert holder.fetch(5).jobs == []
    [attempt] = session.list_attempts(held.id)
    assert (attempt.lease, attempt.worker_id, attempt.reason) == (held.lease, holder.id, FailureReason.TRANSIENT)
    assert attempt.error == ERROR

    lab.age(held.id, "DueAtUtc", 25_000)
    [again] = holder.fetch(5).jobs
    assert (again.lease, again.attempt_count) == (held.lease + 1, 1)


def test_a_retry_in_400_days_is_not_early(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    held = holder.take_one()
    session.reschedule_for_retry(holder.worker, [Retry(held.id, held.lease, 400 * 24 * HOUR, ERROR)])

    assert holder.fetch(5).jobs == []
    row = lab.row(held.id)
    assert abs(row["DueAtUtc"] - row["CreatedAtUtc"] - 400 * 24 * HOUR) < 20_000


@pytest.mark.parametrize(("age", "expired"), [(7_000, False), (60_000, True)])
def test_a_retry_that_would_be_due_too_late_stops_instead(session: Session, lab: Lab, age: int, expired: bool) -> None:
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    held = holder.take_one()
    lab.age(held.id, "AgeFromUtc", age)
    retry = Retry(held.id, held.lease, 10_000, ERROR, max_age_ms=50_000)

    answers = session.reschedule_for_retry(holder.worker, [retry])

    assert answers == [Answer.EXPIRED if expired else Answer.APPLIED]
    view = session.get_job(held.id)
    assert view is not None
    if expired:
        assert (view.status, view.failure_reason) == (JobStatus.FAILED, FailureReason.RETRY_LIFETIME_EXPIRED)
        assert (view.error_type, view.error_message) == (ERROR.type, ERROR.message)
        assert [attempt.error for attempt in session.list_attempts(held.id)] == [ERROR]
    else:
        assert view.status is JobStatus.PENDING
    before = lab.snapshot()
    assert session.reschedule_for_retry(holder.worker, [retry]) == answers
    assert lab.snapshot() == before


@pytest.mark.parametrize("started", [True, False])
def test_a_hand_back_costs_nothing_and_is_due_as_before(session: Session, lab: Lab, started: bool) -> None:
    """Design §3.4, C26: a started job that is handed back is refunded."""
    holder = Holder(session)
    session.enqueue_jobs([new_job(delay_ms=HOUR)])
    lab.age_all("JobsHot", "DueAtUtc", 2 * HOUR)
    before = lab.rows("JobsHot")[0]
    held = holder.take_one() if started else holder.claim_one()

    assert session.release_jobs(holder.worker, [Release(held.id, held.lease)]) == [Answer.APPLIED]

    row = lab.row(held.id)
    assert (row["Status"], row["AttemptCount"], row["CrashCount"], row["LeaseNumber"]) == (0, 0, 0, 1)
    assert (row["DueAtUtc"], row["AgeFromUtc"]) == (before["DueAtUtc"], before["AgeFromUtc"])
    assert lab.rows("JobAttempts") == []
    [again] = holder.fetch(5).jobs
    assert (again.id, again.attempt_count) == (held.id, 0)


@pytest.mark.parametrize("started", [True, False])
def test_a_snooze_is_due_later_and_costs_nothing(session: Session, lab: Lab, started: bool) -> None:
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    held = holder.take_one() if started else holder.claim_one()

    assert session.release_jobs(holder.worker, [Release(held.id, held.lease, 30_000)]) == [Answer.APPLIED]

    row = lab.row(held.id)
    assert (row["Status"], row["AttemptCount"]) == (0, 0)
    assert 30_000 <= row["DueAtUtc"] - row["CreatedAtUtc"] < 50_000
    fetch = holder.fetch(5)
    assert fetch.jobs == []
    assert fetch.next_due_ms is not None
    assert 10_000 < fetch.next_due_ms <= 30_000


def test_a_snooze_beyond_the_age_limit_ends_the_job(session: Session, lab: Lab) -> None:
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    held = holder.take_one()
    release = Release(held.id, held.lease, 60_000, max_age_ms=50_000)

    assert session.release_jobs(holder.worker, [release]) == [Answer.EXPIRED]

    view = session.get_job(held.id)
    assert view is not None
    assert (view.status, view.failure_reason) == (JobStatus.FAILED, FailureReason.RETRY_LIFETIME_EXPIRED)
    before = lab.snapshot()
    assert session.release_jobs(holder.worker, [release]) == [Answer.EXPIRED]
    assert lab.snapshot() == before


def test_the_lease_number_is_never_reset(session: Session, lab: Lab) -> None:
    """Design §2: kept through every pillar."""
    holder = Holder(session)
    session.enqueue_jobs([new_job()])
    for lease in range(1, 5):
        held = holder.take_one()
        assert held.lease == lease
        session.release_jobs(holder.worker, [Release(held.id, held.lease)])
    held = holder.take_one()
    holder.succeed([held])
    assert lab.row(held.id, "JobsArchive")["LeaseNumber"] == 5
