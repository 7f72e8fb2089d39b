"""Outcome counters, their roll-up, and lifetime totals that never shrink (design §6)."""

from collections import Counter
from functools import partial

import pytest

from chokaq.lifecycle.states import FailureReason, JobStatus, Outcome
from chokaq.store.protocol import Session
from chokaq.store.records import Bucket, CrashPolicies, CrashPolicy, Failure, QueueView, Release, Retry
from tests.support.holder import Holder
from tests.support.jobs import ERROR, QUEUE, death, new_job, new_jobs
from tests.support.lab import Lab
from tests.support.stores import Sessions
from tests.support.together import together

HOUR = 3_600_000
DAY = 24 * HOUR
EVER = 4_000 * DAY
BOUNDS = (1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576)
LAGS = [
    (0, 0),
    *((bound, n) for n, bound in enumerate(BOUNDS)),
    *((bound + 1, n + 1) for n, bound in enumerate(BOUNDS)),
    (30 * DAY, 11),
]


def queue(session: Session, name: str = QUEUE) -> QueueView:
    """The queue's figures."""
    return next(view for view in session.list_queues() if view.name == name)


def totals(session: Session, name: str = QUEUE) -> tuple[int, int, int]:
    """Succeeded, failed, retried: ever."""
    view = queue(session, name)
    return view.succeeded_total, view.failed_total, view.retried_total


def sums(buckets: list[Bucket]) -> Counter[tuple[str, int, int]]:
    """Counts by queue, outcome and reason."""
    found: Counter[tuple[str, int, int]] = Counter()
    for bucket in buckets:
        found[bucket.queue, bucket.outcome, bucket.reason] += bucket.count
    return found


def work(session: Session, name: str = QUEUE, succeed: int = 5, fail: int = 3, retry: int = 2) -> Holder:
    """That many outcomes of each kind."""
    holder = Holder(session, name)
    session.enqueue_jobs(new_jobs(succeed + fail + retry, queue=name))
    held = holder.take_all(succeed + fail + retry)
    holder.succeed(held[:succeed])
    failing, retrying = held[succeed : succeed + fail], held[succeed + fail :]
    session.archive_failed(
        holder.worker, [Failure(h.id, h.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR, ERROR) for h in failing]
    )
    session.reschedule_for_retry(holder.worker, [Retry(h.id, h.lease, HOUR, ERROR) for h in retrying])
    return holder


def test_each_outcome_is_counted_once_by_queue_and_reason(session: Session, lab: Lab) -> None:
    holder = work(session)
    work(session, "other", 1, 0, 1)

    assert totals(session) == (5, 3, 2)
    assert totals(session, "other") == (1, 0, 1)
    assert +sums(session.list_buckets(QUEUE, HOUR)) == Counter(
        {
            (QUEUE, Outcome.SUCCEEDED, row_reason(lab, Outcome.SUCCEEDED)): 5,
            (QUEUE, Outcome.FAILED, FailureReason.FATAL_ERROR): 3,
            (QUEUE, Outcome.RETRIED, FailureReason.TRANSIENT): 2,
        }
    )
    assert {bucket.queue for bucket in session.list_buckets(None, HOUR)} == {QUEUE, "other"}
    assert {row["Slot"] for row in lab.rows("MetricBuckets") if row["Queue"] == QUEUE} == {holder.worker.slot}


def row_reason(lab: Lab, outcome: Outcome) -> int:
    """The design leaves open which reason a success carries; it must be one and the same."""
    [reason] = {row["FailureReason"] for row in lab.rows("MetricBuckets") if row["Outcome"] == outcome}
    return int(reason)


def test_every_way_into_the_dlq_is_a_failure_with_its_reason(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(7))
    holder, by = Holder(session), Holder(session, "")
    held = holder.take(6)
    lab.put(held[0].id, CrashCount=2)
    session.archive_failed(
        holder.worker, [Failure(held[1].id, held[1].lease, JobStatus.CANCELLED, FailureReason.CANCELLED)]
    )
    session.reschedule_for_retry(holder.worker, [Retry(held[2].id, held[2].lease, HOUR, ERROR, max_age_ms=1)])
    waiting = next(row["Id"] for row in lab.rows("JobsHot") if row["Status"] == 0)
    session.cancel_jobs([waiting], "ann")
    session.cancel_jobs([held[3].id], "ann")
    session.release_worker(by.worker, death(holder.id, "crash"), CrashPolicies())

    assert totals(session) == (0, 7, 0)
    counted = {(outcome, reason): n for (_, outcome, reason), n in sums(session.list_buckets(QUEUE, HOUR)).items()}
    assert counted == {
        (Outcome.FAILED, FailureReason.POISON): 1,
        (Outcome.FAILED, FailureReason.CANCELLED): 3,
        (Outcome.FAILED, FailureReason.RETRY_LIFETIME_EXPIRED): 1,
        (Outcome.FAILED, FailureReason.ZOMBIE): 2,
    }
    assert Counter(row["FailureReason"] for row in lab.rows("JobsDLQ")) == Counter(
        {reason: n for (_, reason), n in counted.items()}
    )


def test_a_crash_that_returns_its_job_is_a_retry(session: Session) -> None:
    """A charged failure that goes back to Pending, exactly like one that the handler reported."""
    session.enqueue_jobs(new_jobs(2))
    holder = Holder(session)
    holder.take(2)
    policies = CrashPolicies(default=CrashPolicy(on_crash="retry"))
    session.release_worker(Holder(session, "").worker, death(holder.id, "crash"), policies)

    assert totals(session) == (0, 0, 2)


def test_what_is_not_charged_is_not_counted(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(4))
    holder = Holder(session)
    held = holder.take(2) + holder.claim(1)
    session.release_jobs(holder.worker, [Release(held[0].id, held[0].lease)])
    session.release_jobs(holder.worker, [Release(held[2].id, held[2].lease, 9_000)])
    session.release_worker(Holder(session, "").worker, death(holder.id, "shutdown"), CrashPolicies())

    assert lab.rows("MetricBuckets") == []
    assert totals(session) == (0, 0, 0)


@pytest.mark.parametrize(
    ("lag_ms", "bin_"),
    LAGS,
)
def test_the_pickup_lag_falls_into_its_class(session: Session, lab: Lab, lag_ms: int, bin_: int) -> None:
    """Start minus due: at most 1, 4, 16, … 1048576 ms, and more; 30 days do not overflow it."""
    session.enqueue_jobs([new_job()])
    holder = Holder(session)
    held = holder.take_one()
    lab.set_time(held.id, "DueAtUtc", lab.row(held.id)["StartedAtUtc"] - lag_ms)
    holder.succeed([held])

    [bucket] = session.list_buckets(QUEUE, HOUR)

    assert bucket.lag == tuple(int(n == bin_) for n in range(12))


def test_run_times_are_summed_and_the_longest_kept(session: Session, lab: Lab) -> None:
    session.enqueue_jobs(new_jobs(3))
    holder = Holder(session)
    held = holder.take(3)
    for job, age in zip(held, (1_000, 50_000, 40 * DAY), strict=True):
        lab.age(job.id, "StartedAtUtc", age)
    holder.succeed(held)
    durations = [row["DurationMs"] for row in lab.rows("JobsArchive")]

    [bucket] = session.list_buckets(QUEUE, HOUR)

    assert (bucket.count, bucket.duration_ms, bucket.max_duration_ms) == (3, sum(durations), max(durations))
    assert max(durations) >= 40 * DAY


def test_buckets_are_seconds_and_come_oldest_first(session: Session, lab: Lab) -> None:
    work(session, succeed=1, fail=0, retry=0)
    lab.age_all("MetricBuckets", "StartUtc", 600_000)
    work(session, succeed=2, fail=0, retry=0)

    buckets = session.list_buckets(QUEUE, HOUR)

    assert [bucket.count for bucket in buckets] == [1, 2]
    assert {bucket.seconds for bucket in buckets} == {1}
    assert all(bucket.start.microsecond == 0 for bucket in buckets)
    assert [bucket.count for bucket in session.list_buckets(QUEUE, 300_000)] == [2]


def test_buckets_of_several_slots_are_summed(session: Session, lab: Lab) -> None:
    work(session, succeed=1, fail=0, retry=0)
    work(session, succeed=2, fail=0, retry=0)
    same = lab.rows("MetricBuckets")[0]["StartUtc"]
    for row in lab.rows("MetricBuckets"):
        lab.age_all("MetricBuckets", "StartUtc", row["StartUtc"] - same, f"Slot = {row['Slot']}")

    [bucket] = session.list_buckets(QUEUE, HOUR)

    assert (bucket.count, sum(bucket.lag)) == (3, 3)


def test_the_roll_up_is_exact_and_may_be_repeated(session: Session, lab: Lab) -> None:
    """Seconds older than 2 h become minutes of slot 0 and lifetime totals; nothing is lost or counted twice."""
    for age in (3 * HOUR, 3 * HOUR + 60_000, 30 * HOUR):
        work(session)
        work(session, "other", 1, 1, 0)
        lab.age_all("MetricBuckets", "StartUtc", age)
    work(session, succeed=7, fail=0, retry=0)
    before = sums(session.list_buckets(None, EVER))
    durations = sum(bucket.duration_ms for bucket in session.list_buckets(None, EVER))
    lags = sum(sum(bucket.lag) for bucket in session.list_buckets(None, EVER))
    assert totals(session) == (22, 9, 6)

    assert session.roll_up() > 0

    for _ in range(2):
        buckets = session.list_buckets(None, EVER)
        assert sums(buckets) == before
        assert sum(bucket.duration_ms for bucket in buckets) == durations
        assert sum(sum(bucket.lag) for bucket in buckets) == lags
        assert totals(session) == (22, 9, 6)
        assert totals(session, "other") == (3, 3, 0)
        assert session.roll_up() == 0
    minutes = [row for row in lab.rows("MetricBuckets") if row["Seconds"] == 60]
    assert {row["Slot"] for row in minutes} == {0}
    assert all(row["StartUtc"] % 60_000 == 0 for row in minutes)
    assert [row["JobCount"] for row in lab.rows("MetricBuckets") if row["Seconds"] == 1] == [7]
    assert lab.count("QueueTotals") == 2


def test_a_second_roll_up_into_the_same_minute_adds_to_it(session: Session, lab: Lab) -> None:
    instant = None
    for _ in range(2):
        work(session, succeed=3, fail=0, retry=0)
        [row] = [row for row in lab.rows("MetricBuckets") if row["Seconds"] == 1]
        instant = instant or row["StartUtc"] // 60_000 * 60_000 - 3 * HOUR + 5_000
        lab.age_all("MetricBuckets", "StartUtc", row["StartUtc"] - instant, "Seconds = 1")
        session.roll_up()

    [bucket] = session.list_buckets(QUEUE, EVER)

    assert (bucket.seconds, bucket.count, sum(bucket.lag)) == (60, 6, 6)
    assert totals(session) == (6, 0, 0)


def test_totals_never_shrink_when_jobs_and_buckets_are_purged(session: Session, lab: Lab) -> None:
    work(session)
    lab.age_all("MetricBuckets", "StartUtc", 3 * HOUR)
    session.roll_up()
    work(session, succeed=1, fail=1, retry=0)
    lab.age_all("JobsArchive", "FinishedAtUtc", 40 * DAY)
    lab.age_all("JobsDLQ", "FailedAtUtc", 40 * DAY)
    lab.age_all("MetricBuckets", "StartUtc", 40 * DAY)
    assert totals(session) == (6, 4, 2)

    assert session.purge_archive(QUEUE, DAY) == 6
    assert session.purge_dlq(QUEUE, DAY) == 4
    assert session.purge_leftovers() > 0

    assert totals(session) == (6, 4, 2), "what was not rolled up yet must not be purged before it is"
    session.roll_up()
    session.purge_leftovers()
    assert totals(session) == (6, 4, 2)
    assert session.list_buckets(None, EVER) == []


def test_counters_equal_totals_under_concurrency(sessions: Sessions, lab: Lab) -> None:
    several = sessions.many(4)

    together([partial(work, session, QUEUE, 20, 10, 5) for session in several])
    together([partial(work, session, QUEUE, 1, 1, 1) for session in several])

    [session] = several[:1]
    assert totals(session) == (
        lab.count("JobsArchive"),
        lab.count("JobsDLQ"),
        lab.count("JobAttempts") - lab.count("JobsDLQ"),
    )
    assert sum(totals(session)) == 4 * 38


def test_a_queue_without_outcomes_has_zeros(session: Session) -> None:
    session.enqueue_jobs([new_job()])

    assert totals(session) == (0, 0, 0)
    assert session.list_buckets(QUEUE, HOUR) == []
