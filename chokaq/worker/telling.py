"""One log line for what became of each job, once the store has answered. Successes and what merely goes back are told at debug."""

from collections.abc import Sequence
from typing import Any

import structlog

from chokaq.lifecycle.states import Answer, CancelReason, FailureReason, JobStatus
from chokaq.observe.levels import verbose
from chokaq.store.records import AttemptError, Failure, Retry
from chokaq.worker.claims import Claim, Operation

_log = structlog.get_logger("chokaq")


def tell_settled(operation: Operation, claims: Sequence[Claim], answers: Sequence[Answer | None]) -> None:
    """What the store has answered to a set of outcomes; conflicts are told one by one (`tell_conflict`)."""
    if operation is Operation.SUCCEED and not verbose.debug:
        return
    for claim, answer in zip(claims, answers, strict=True):
        if answer is Answer.CANCELLED:
            _cancelled(claim)
        elif answer is Answer.EXPIRED:
            _log.warning("job_expired", **_about(claim), **_error(claim))
        elif answer is Answer.APPLIED:
            _applied(operation, claim)


def tell_conflict(operation: Operation, claim: Claim) -> None:
    """A transition came to nothing: somebody else owns the job."""
    if operation is Operation.START:
        _log.info("lease_rejected", **_about(claim), lease=claim.job.lease)
    else:
        _log.info("transition_not_applied", operation=operation.name, **_about(claim), lease=claim.job.lease)


def _applied(operation: Operation, claim: Claim) -> None:
    if operation is Operation.SUCCEED:
        _log.debug("job_succeeded", **_about(claim))
    elif operation is Operation.RELEASE:
        _released(claim)
    elif isinstance(claim.change, Retry):
        _retried(claim, claim.change)
    elif isinstance(claim.change, Failure):
        _stopped(claim, claim.change)
    # Else its own outcome was refused (transition_refused), and what was applied is its burial.


def _released(claim: Claim) -> None:
    if claim.reason is CancelReason.SHUTDOWN:
        _log.info("job_rescheduled_by_shutdown", **_about(claim))
    elif claim.route is None:
        _log.warning("unknown_type", **_about(claim))
    elif verbose.debug:
        if claim.denied:
            _log.debug("circuit_rejected", **_about(claim))
        elif claim.context is None:
            _log.debug("buffered_job_released", **_about(claim))
        else:
            _log.debug("job_released", **_about(claim), delay=_delay(claim))


def _retried(claim: Claim, retry: Retry) -> None:
    if retry.reason is FailureReason.THROTTLED:
        _log.info("job_throttled", **_about(claim), delay=_delay(claim), **_error(claim))
    else:
        _log.info("job_retried", **_about(claim), reason=retry.reason.label, delay=_delay(claim), **_error(claim))


def _stopped(claim: Claim, failure: Failure) -> None:
    if failure.status is JobStatus.CANCELLED:
        _cancelled(claim)
    elif failure.reason is FailureReason.TIMEOUT:
        _log.warning("job_timed_out", **_about(claim), **_error(claim))
    elif failure.reason is FailureReason.HEARTBEAT_FAILURE:
        _log.warning("job_heartbeat_lost", **_about(claim), **_error(claim))
    elif failure.reason is FailureReason.FATAL_ERROR:
        _log.warning("job_fatal", **_about(claim), **_error(claim))
    else:
        _log.warning("job_exhausted", **_about(claim), reason=failure.reason.label, **_error(claim))


def _cancelled(claim: Claim) -> None:
    by = claim.cancellation
    told = {} if by is None else {"actor": by.actor, "why": by.reason}
    _log.info("job_cancelled", **_about(claim), **told)


def _about(claim: Claim) -> dict[str, Any]:
    """Which job, in the fields that lines inside its handler carry."""
    context = claim.context
    if context is None:
        return {"job": claim.job.id, "type": claim.job.type_key}
    about = {"job": context.id, "type": context.type_key, "queue": context.queue, "attempt": context.attempt}
    if context.trace_id is not None:
        about["trace_id"] = context.trace_id
    return about


def _error(claim: Claim) -> dict[str, str]:
    """What the handler raised, as it is stored: without secrets."""
    error: AttemptError | None = getattr(claim.change, "error", None)
    return {} if error is None else {"error": error.type, "message": error.message}


def _delay(claim: Claim) -> float:
    """Seconds until the job may run again."""
    return (getattr(claim.change, "delay_ms", None) or 0) / 1000
