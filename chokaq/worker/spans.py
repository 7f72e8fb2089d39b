"""What an attempt's span says of how it ended."""

from typing import TYPE_CHECKING

from chokaq.lifecycle.states import JobStatus
from chokaq.store.records import AttemptError, Failure
from chokaq.worker.claims import Operation
from chokaq.worker.outcomes import Outcome

if TYPE_CHECKING:
    from chokaq.observe.tracing import Attempt

_FAILED = (Operation.RETRY, Operation.FAIL)


def end_attempt(span: "Attempt", outcome: Outcome | None) -> None:
    """End it with the outcome: succeeded, retried, failed, cancelled, released (snoozed or handed back), lost (with its lease).

    Retried and failed are errors; a cancellation is what somebody wanted.
    """
    if outcome is None:
        span.end("lost", None, failed=False)
        return
    operation, change = outcome
    error: AttemptError | None = getattr(change, "error", None)
    cancelled = isinstance(change, Failure) and change.status is JobStatus.CANCELLED
    word = "cancelled" if cancelled else _WORDS[operation]
    told = None if error is None or cancelled else (error.type, error.message, error.trace)
    span.end(word, told, failed=operation in _FAILED and not cancelled)


_WORDS = {
    Operation.SUCCEED: "succeeded",
    Operation.RETRY: "retried",
    Operation.FAIL: "failed",
    Operation.RELEASE: "released",
    Operation.LEAVE: "lost",
}
