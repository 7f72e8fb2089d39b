"""From how an execution ended to what becomes of its job (design §8). Pure: chance comes in as an argument."""

import asyncio
import math
from collections.abc import Callable

from chokaq.config.settings import Policy
from chokaq.lifecycle import failures
from chokaq.lifecycle.errors import FatalError, Snooze, Throttled
from chokaq.lifecycle.failures import Kind, Verdict
from chokaq.lifecycle.retry import backoff, exhausted, throttle
from chokaq.lifecycle.states import CancelReason, FailureReason, JobStatus
from chokaq.observe.redact import redact_text
from chokaq.store.records import AttemptError, Cancellation, Failure, FetchedJob, Release, Retry
from chokaq.worker.claims import Change, Operation

Outcome = tuple[Operation, Change]
Classify = Callable[[BaseException], Verdict]
Redact = Callable[[str], str]

SUCCEEDED: Outcome = (Operation.SUCCEED, None)
_OVERDUE = "the handler ran longer than its execution timeout"
_UNRENEWED = "its lease could not be renewed: the store did not answer for too long"
_COUNTED = (FailureReason.TRANSIENT, FailureReason.THROTTLED)
_OWN_VERDICTS = (FatalError, Throttled)
"""A handler that says so outright knows what it says, also when it was being stopped."""


def after_error(
    job: FetchedJob,
    policy: Policy,
    error: BaseException,
    reason: CancelReason | None = None,
    cancellation: Cancellation | None = None,
    *,
    chance: float = 0.0,
    classify: Classify = failures.classify,
    redact: Redact = redact_text,
) -> Outcome | None:
    """What becomes of a job whose handler raised `error`. None: nothing is written, since the lease is someone else's.

    `reason`: why this child had asked the run to stop (None: it had not; a CancelledError or TimeoutError is then the
    handler's own trouble). Once asked to stop, whatever the handler raises is put down to that, except a verdict it names
    outright: FatalError, Throttled, Snooze. `cancellation`: by whom and why, with reason ADMIN. `chance` in [0, 1): jitter.
    `classify`: the application's rules over the built-in ones; `redact`: takes secrets out of what is stored.
    """
    if reason is CancelReason.LOST_LEASE:
        return None
    if reason is CancelReason.ADMIN:
        return _stop(job, JobStatus.CANCELLED, FailureReason.CANCELLED, _cancelled(cancellation, error, redact))
    if isinstance(error, Snooze):
        return Operation.RELEASE, Release(job.id, job.lease, _ms(error.delay), _max_age_ms(policy))
    if reason is None or isinstance(error, _OWN_VERDICTS):
        return _judged(job, policy, classify(error), _record(error, redact), chance)
    if reason is CancelReason.TIMEOUT:
        return _timed_out(job, policy, _record(error, redact, "ExecutionTimeout", _OVERDUE), chance)
    if reason is CancelReason.HEARTBEAT:
        record = _record(error, redact, "HeartbeatFailure", _UNRENEWED)
        return _stop(job, JobStatus.FAILED, FailureReason.HEARTBEAT_FAILURE, record)
    return hand_back(job)


def before_start(job: FetchedJob, cancellation: Cancellation | None) -> Outcome:
    """What becomes of a started job that was cancelled before its handler began."""
    return _stop(job, JobStatus.CANCELLED, FailureReason.CANCELLED, _cancelled(cancellation, None, redact_text))


def unknown_type(job: FetchedJob, policy: Policy, queue: str) -> Outcome:
    """What becomes of a job whose type this child does not know: handed back for a while, then fatal."""
    if job.age_ms < _ms(policy.unknown_type_grace):
        return Operation.RELEASE, Release(job.id, job.lease, _ms(policy.unknown_type_delay), _max_age_ms(policy))
    error = AttemptError(
        "UnknownJobType",
        failures.cut(f"no worker of queue {queue} has a handler for {job.type_key!r}", failures.MESSAGE_LIMIT),
    )
    return _stop(job, JobStatus.FAILED, FailureReason.FATAL_ERROR, error)


def hand_back(job: FetchedJob, delay_ms: int | None = None) -> Outcome:
    """Return the job without charge; due as before, or `delay_ms` from now."""
    return Operation.RELEASE, Release(job.id, job.lease, delay_ms)


def denied(job: FetchedJob, policy: Policy, delay_ms: int) -> Outcome:
    """What becomes of a job whose type's circuit is open: due again `delay_ms` from now, uncharged, within its age (G13)."""
    return Operation.RELEASE, Release(job.id, job.lease, delay_ms, _max_age_ms(policy))


def verdict(outcome: Outcome | None) -> bool | None:
    """What a run that raised says about its type (chokaq.lifecycle.circuit): False when it failed, None when nothing.

    It failed when its failure is transient or throttled, whether another attempt follows or not. A fatal payload, a timeout, a
    cancellation, a snooze and a lost lease say nothing (G14).
    """
    change = outcome[1] if outcome is not None else None
    return False if isinstance(change, Retry | Failure) and change.reason in _COUNTED else None


def refused(job: FetchedJob, error: BaseException) -> Failure:
    """The last resort for a job whose transition the store refuses: to the DLQ with the storage error, in plain ASCII."""
    text = redact_text(str(error)).encode("ascii", "backslashreplace").decode()
    record = AttemptError("StoreRefused", failures.cut(f"the store refused this job's outcome: {text}", 1_000))
    return Failure(job.id, job.lease, JobStatus.FAILED, FailureReason.FATAL_ERROR, record)


def _judged(job: FetchedJob, policy: Policy, verdict: Verdict, record: AttemptError, chance: float) -> Outcome:
    if verdict.kind is Kind.FATAL:
        return _stop(job, JobStatus.FAILED, FailureReason.FATAL_ERROR, record)
    reason = FailureReason.THROTTLED if verdict.kind is Kind.THROTTLED else FailureReason.TRANSIENT
    return _again(job, policy, reason, record, retry_after=verdict.retry_after, chance=chance)


def _timed_out(job: FetchedJob, policy: Policy, record: AttemptError, chance: float) -> Outcome:
    if policy.on_timeout == "retry":
        return _again(job, policy, FailureReason.TIMEOUT, record, retry_after=None, chance=chance)
    return _stop(job, JobStatus.FAILED, FailureReason.TIMEOUT, record)


def _again(
    job: FetchedJob,
    policy: Policy,
    reason: FailureReason,
    record: AttemptError,
    *,
    retry_after: float | None,
    chance: float,
) -> Outcome:
    attempts = job.attempt_count + 1
    if exhausted(attempts, policy.max_attempts):
        return _stop(job, JobStatus.FAILED, reason, record)
    if retry_after is not None:
        delay = throttle(retry_after, maximum=policy.retry_max_delay)
    else:
        delay = backoff(
            attempts,
            base=policy.retry_base_delay,
            multiplier=policy.retry_multiplier,
            maximum=policy.retry_max_delay,
            jitter=policy.retry_jitter,
            chance=chance,
        )
    return Operation.RETRY, Retry(job.id, job.lease, _ms(delay), record, reason, _max_age_ms(policy))


def _stop(job: FetchedJob, status: JobStatus, reason: FailureReason, record: AttemptError) -> Outcome:
    return Operation.FAIL, Failure(job.id, job.lease, status, reason, record)


def _record(error: BaseException, redact: Redact, kind: str | None = None, message: str | None = None) -> AttemptError:
    """The attempt's record; with `kind`, under that name, the handler's own words after `message`."""
    text = failures.describe(error, redact)
    if kind is None:
        return AttemptError(text.type, text.message, text.trace)
    words = message or ""
    if not isinstance(error, asyncio.CancelledError):
        words = f"{words}; it ended with {text.type}: {text.message}"
    return AttemptError(kind, failures.cut(words, failures.MESSAGE_LIMIT), text.trace)


def _cancelled(cancellation: Cancellation | None, error: BaseException | None, redact: Redact) -> AttemptError:
    actor = cancellation.actor if cancellation is not None and cancellation.actor else "unknown"
    why = f": {cancellation.reason}" if cancellation is not None and cancellation.reason else ""
    message = f"cancelled by {actor}{why}"
    if error is None:
        return AttemptError("Cancelled", failures.cut(message, failures.MESSAGE_LIMIT))
    return _record(error, redact, "Cancelled", message)


def _ms(seconds: float) -> int:
    """Whole milliseconds, rounded up: nobody who asked for patience is asked again early."""
    # Ten years: longer than any job lives, short enough for every engine's date arithmetic.
    milliseconds = max(0.0, min(seconds, 315_360_000.0)) * 1000
    # 1.1 s are 1100 ms, though as a float they are a little more.
    return math.ceil(round(milliseconds, 6))


def _max_age_ms(policy: Policy) -> int | None:
    return None if policy.max_job_age is None else _ms(policy.max_job_age)
