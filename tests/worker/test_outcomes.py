"""The table from how an execution ended to what becomes of its job."""

import asyncio
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chokaq.config.settings import Policy
from chokaq.lifecycle.errors import FatalError, Snooze, Throttled
from chokaq.lifecycle.states import CancelReason, FailureReason, JobStatus
from chokaq.store.records import Cancellation, Failure, FetchedJob, Release, Retry
from chokaq.worker.claims import Operation
from chokaq.worker.outcomes import after_error, hand_back, refused, unknown_type

POLICY = Policy()
NOW = datetime(2030, 1, 1, tzinfo=UTC)
CANCELLED = asyncio.CancelledError()


def job(attempts: int = 0, age_ms: int = 0) -> FetchedJob:
    return FetchedJob("J" * 26, "t.v1", "{}", 4, 10, attempts, 0, NOW, NOW, age_ms)


def failure(outcome: object) -> Failure:
    assert isinstance(outcome, tuple)
    operation, change = outcome
    assert operation is Operation.FAIL
    assert isinstance(change, Failure)
    return change


def retry(outcome: object) -> Retry:
    assert isinstance(outcome, tuple)
    operation, change = outcome
    assert operation is Operation.RETRY
    assert isinstance(change, Retry)
    return change


def test_a_passing_failure_waits_by_the_backoff() -> None:
    assert retry(after_error(job(0), POLICY, OSError("x"))).delay_ms == 3_000
    again = retry(after_error(job(1), POLICY, OSError("x"), chance=0.5))
    assert (again.delay_ms, again.max_age_ms, again.reason) == (6_500, 86_400_000, FailureReason.TRANSIENT)
    assert again.lease == 4


def test_a_throttled_job_waits_as_long_as_it_was_told_but_not_beyond_the_ceiling() -> None:
    assert retry(after_error(job(), POLICY, Throttled(77))).delay_ms == 77_000
    assert retry(after_error(job(), POLICY, Throttled(float("inf")))).delay_ms == 3_600_000
    assert retry(after_error(job(), POLICY, Throttled())).delay_ms == 3_000
    assert retry(after_error(job(), POLICY, Throttled(1))).reason is FailureReason.THROTTLED


@pytest.mark.parametrize(
    ("error", "reason"), [(OSError(), FailureReason.TRANSIENT), (Throttled(1), FailureReason.THROTTLED)]
)
def test_the_last_attempt_stops_the_job(error: Exception, reason: FailureReason) -> None:
    assert failure(after_error(job(2), POLICY, error)).reason is reason


def test_a_crash_in_between_counts_as_an_attempt() -> None:
    assert failure(after_error(job(7), POLICY, OSError())).reason is FailureReason.TRANSIENT


@pytest.mark.parametrize("error", [CANCELLED, RuntimeError("while cleaning up")])
def test_whatever_ends_a_handler_that_was_told_to_stop_is_put_down_to_that(error: BaseException) -> None:
    by = Cancellation("J" * 26, 4, "ann", None)
    assert failure(after_error(job(), POLICY, error, CancelReason.ADMIN, by)).status is JobStatus.CANCELLED
    assert failure(after_error(job(), POLICY, error, CancelReason.TIMEOUT)).reason is FailureReason.TIMEOUT
    assert failure(after_error(job(), POLICY, error, CancelReason.HEARTBEAT)).reason is FailureReason.HEARTBEAT_FAILURE
    assert after_error(job(), POLICY, error, CancelReason.SHUTDOWN) == (
        Operation.RELEASE,
        Release("J" * 26, 4),
    )
    assert after_error(job(), POLICY, error, CancelReason.LOST_LEASE) is None


@pytest.mark.parametrize("reason", [CancelReason.TIMEOUT, CancelReason.SHUTDOWN, CancelReason.HEARTBEAT])
def test_a_verdict_that_the_handler_names_outright_stands(reason: CancelReason) -> None:
    assert failure(after_error(job(), POLICY, FatalError("x"), reason)).reason is FailureReason.FATAL_ERROR
    assert retry(after_error(job(), POLICY, Throttled(9), reason)).delay_ms == 9_000
    assert after_error(job(), POLICY, Snooze(2), reason) == (
        Operation.RELEASE,
        Release("J" * 26, 4, 2_000, 86_400_000),
    )


def test_a_cancelled_job_ends_cancelled_whatever_its_handler_says() -> None:
    for error in (FatalError("x"), Throttled(1), Snooze(1), CANCELLED):
        assert failure(after_error(job(), POLICY, error, CancelReason.ADMIN)).reason is FailureReason.CANCELLED


def test_a_timeout_is_retried_when_the_policy_says_so() -> None:
    policy = Policy(on_timeout="retry")
    assert retry(after_error(job(), policy, CANCELLED, CancelReason.TIMEOUT)).reason is FailureReason.TIMEOUT
    assert failure(after_error(job(2), policy, CANCELLED, CancelReason.TIMEOUT)).reason is FailureReason.TIMEOUT


def test_a_job_without_age_limit_is_retried_without_one() -> None:
    assert retry(after_error(job(), Policy(max_job_age=None), OSError())).max_age_ms is None


def test_a_snooze_of_centuries_fits_the_database() -> None:
    outcome = after_error(job(), POLICY, Snooze(1e18))
    assert outcome is not None
    assert isinstance(outcome[1], Release)
    assert outcome[1].delay_ms == 315_360_000_000


def test_an_unknown_type_is_patient_for_its_grace() -> None:
    assert unknown_type(job(age_ms=899_999), POLICY, "q") == (
        Operation.RELEASE,
        Release("J" * 26, 4, 30_000, 86_400_000),
    )
    assert failure(unknown_type(job(age_ms=900_000), POLICY, "q")).reason is FailureReason.FATAL_ERROR


def test_handing_back_keeps_the_jobs_place() -> None:
    assert hand_back(job()) == (Operation.RELEASE, Release("J" * 26, 4, None, None))


def test_the_last_resort_is_plain_ascii() -> None:
    record = refused(job(), RuntimeError("\ud800 é \0")).error
    assert record is not None
    assert record.message.isascii() or "\u2400" in record.message


@given(st.floats(0, 4_000_000))
def test_a_delay_in_milliseconds_is_never_early_and_less_than_one_late(seconds: float) -> None:
    policy = Policy(retry_max_delay=4_000_000.0)
    delay = retry(after_error(job(), policy, Throttled(seconds))).delay_ms
    # A float of seconds is itself only exact to some 1e-9 at this size.
    assert -1e-5 <= delay - seconds * 1000 < 1


@given(st.integers(0, 4_000_000_000))
def test_whole_milliseconds_stay_what_they_are(milliseconds: int) -> None:
    policy = Policy(retry_max_delay=4_000_000.0)
    assert retry(after_error(job(), policy, Throttled(milliseconds / 1000))).delay_ms == milliseconds


@given(st.integers(0, 30), st.floats(0, 0.999))
def test_a_backoff_stays_under_the_policys_ceiling_in_milliseconds_too(attempts: int, chance: float) -> None:
    policy = Policy(max_attempts=100)
    delay = retry(after_error(job(attempts), policy, OSError("x"), chance=chance)).delay_ms
    assert min(3_000 * 2**attempts, 3_600_000) <= delay <= min(3_000 * 2**attempts + 1_000, 3_600_000)
