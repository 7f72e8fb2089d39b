"""What a child has counted since it booted; plain integers, written by the event loop, read from anywhere."""


class Counts:
    """Counters of one child. Reads from other threads may lag by an instant."""

    __slots__ = (
        "conflicts",
        "denied",
        "failed",
        "fetched",
        "fetches",
        "keys_busy",
        "keys_hit",
        "keys_lost",
        "keys_missed",
        "keys_released",
        "released",
        "retried",
        "started",
        "store_errors",
        "succeeded",
        "timeouts",
        "unknown_types",
    )

    def __init__(self) -> None:
        self.fetches = 0
        """Calls of FetchJobs that were answered."""
        self.fetched = 0
        """Jobs claimed."""
        self.started = 0
        self.succeeded = 0
        self.retried = 0
        self.failed = 0
        """Jobs that stopped, cancelled ones included."""
        self.released = 0
        """Jobs handed back without charge."""
        self.denied = 0
        """Jobs handed back because their type's circuit is open; they are not among those released."""
        self.conflicts = 0
        """Transitions the store answered `stale`: somebody else owned the job by then."""
        self.timeouts = 0
        """Handlers asked to stop because of their execution timeout."""
        self.unknown_types = 0
        self.keys_hit = 0
        """Duplicates of a completed run, skipped."""
        self.keys_missed = 0
        """Idempotency keys claimed: the work was done here."""
        self.keys_busy = 0
        """Duplicates of an unfinished run, put off."""
        self.keys_released = 0
        """Keys given up because their run did not complete. (This and the next one: written by the settle lane.)"""
        self.keys_lost = 0
        """Runs that completed when their key was another job's by then."""
        self.store_errors = 0
        """Calls of the lanes that failed; every one was repeated or split."""

    @property
    def completed(self) -> int:
        """Jobs settled since boot, one way or another."""
        return self.succeeded + self.retried + self.failed + self.released
