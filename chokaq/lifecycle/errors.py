"""The exceptions with which a handler tells chokaq what should become of its job."""

from datetime import timedelta


class FatalError(Exception):
    """Raise it when another attempt can only reach the same answer: the job goes to the DLQ at once."""


class Throttled(Exception):
    """Raise it when a dependency asked for patience: the job is retried after exactly that long (capped by the policy)."""

    def __init__(self, retry_after: float | timedelta | None = None, message: str = "throttled") -> None:
        """`retry_after`: seconds or a timedelta; None: the ordinary backoff."""
        super().__init__(message)
        self.retry_after: float | None = (
            retry_after.total_seconds() if isinstance(retry_after, timedelta) else retry_after
        )


class Snooze(Exception):
    """Raised by `ctx.snooze(delay)`: later, not a failure, not charged."""

    def __init__(self, delay: float) -> None:
        """`delay`: seconds."""
        super().__init__(f"snoozed for {delay} s")
        self.delay = delay


class PayloadError(FatalError):
    """The payload cannot be decoded into the job's contract."""
