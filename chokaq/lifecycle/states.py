"""The states of a job, the reasons it can stop for, and what the store may answer to a transition."""

from enum import IntEnum, StrEnum


class JobStatus(IntEnum):
    """Where a job stands. 0-2 live in Hot, 3 in Archive, 4-7 in the DLQ."""

    PENDING = 0
    FETCHED = 1
    PROCESSING = 2
    SUCCEEDED = 3
    FAILED = 4
    CANCELLED = 5
    ZOMBIE = 6
    DROPPED = 7

    @property
    def label(self) -> str:
        """The name shown to people, in the view `chokaq.Jobs` and in the CLI: `Pending`, `Fetched`, …"""
        return self.name.capitalize()

    @property
    def is_final(self) -> bool:
        """True when no worker will touch the job again by itself."""
        return self >= JobStatus.SUCCEEDED


class Pillar(StrEnum):
    """The three tables a job can stand in."""

    HOT = "hot"
    ARCHIVE = "archive"
    DLQ = "dlq"


class FailureReason(IntEnum):
    """Why a job stopped. Stable: stored in the DLQ and in the outcome counters."""

    MAX_RETRIES_EXCEEDED = 0
    CANCELLED = 1
    ZOMBIE = 2
    CIRCUIT_BREAKER_OPEN = 3
    REJECTED = 4
    THROTTLED = 5
    FATAL_ERROR = 6
    TIMEOUT = 7
    TRANSIENT = 8
    HEARTBEAT_FAILURE = 9
    RETRY_LIFETIME_EXPIRED = 10
    POISON = 11

    @property
    def label(self) -> str:
        """The name shown to people: `MaxRetriesExceeded`, `FatalError`, …"""
        return "".join(part.capitalize() for part in self.name.split("_"))


class Answer(IntEnum):
    """What the store says of one job in a transition."""

    STALE = 0
    """Nothing changed: another lease, another state, or no such job. The holder stays silent and counts a conflict."""
    APPLIED = 1
    """Durably done, by this call or by an earlier one with the same (id, lease)."""
    CANCELLED = 2
    """Instead of returning to Pending the job ended Cancelled, since its cancellation had been requested."""
    EXPIRED = 3
    """Instead of returning to Pending the job ended Failed (RetryLifetimeExpired), since it had become too old."""


class KeyScope(IntEnum):
    """How long an idempotency key answers with the job that took it."""

    ACTIVE = 0
    """Until the job leaves Hot."""
    RETAINED = 1
    """As long as the job's row exists in any pillar."""
    WINDOW = 2
    """For a duration from acceptance, and while the job is live."""


class Outcome(IntEnum):
    """What a counter bucket counts."""

    SUCCEEDED = 0
    FAILED = 1
    RETRIED = 2


class DeathCause(StrEnum):
    """Why a worker ended; decides what becomes of the jobs it was processing."""

    CRASH = "crash"
    """Unexpected: signal, exit code, out of memory, or killed for a stalled loop while no handler was past its hard limit (any
    of them may be the one that held it). The queue's crash policy applies to every Processing job."""
    LIMIT = "limit"
    """The supervisor killed it, and some handlers were past their hard limit: these culprits stop as Timeout, the others are
    handed back, uncharged."""
    SHUTDOWN = "shutdown"
    """It was drained or ended deliberately: everything it still held is handed back, uncharged."""


class CancelReason(StrEnum):
    """Why a running handler is asked to stop. The first reason given to a run is the one that counts."""

    SHUTDOWN = "shutdown"
    """The drain is nearly over: the job is handed back, uncharged, unless its handler reached a verdict of its own."""
    TIMEOUT = "timeout"
    """The execution timeout has passed: DLQ Timeout, or a retry by `on_timeout`."""
    ADMIN = "admin"
    """An operator or the application cancelled the job: it ends Cancelled."""
    HEARTBEAT = "heartbeat"
    """Its lease could not be renewed for too long: it stops as HeartbeatFailure."""
    LOST_LEASE = "lost_lease"
    """Someone else owns the job now: nothing is written."""
