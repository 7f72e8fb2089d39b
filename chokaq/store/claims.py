"""Run claims: what the idempotency middleware asks of a store, and how a store does it (part of `chokaq.store.protocol`).

A claim belongs to one execution: (key, job id, lease) is its fence. It is renewed with the lease, becomes a marker when the run
completes, and is given up when it does not. Every operation may be repeated after an ambiguous commit.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import IntEnum
from typing import Protocol

import msgspec

from chokaq.lifecycle.states import Answer
from chokaq.store.errors import StoreRefused
from chokaq.store.names import check_ascii, check_text
from chokaq.store.records import Registration

MAX_KEY = 255
"""UTF-16 code units of a key."""
LONGEST_TTL_MS = 100 * 365 * 86_400_000


class RunClaim(msgspec.Struct, frozen=True, gc=False):
    """The claim of one execution to a key."""

    key: str
    """Trimmed, 1 … 255 characters; unique over all queues and types."""
    id: str
    """The job."""
    lease: int
    ttl_ms: int
    """It expires that long after it was taken or renewed last."""


class Completion(msgspec.Struct, frozen=True, gc=False):
    """A claim whose run has completed: the key answers `done` from now on."""

    key: str
    id: str
    lease: int
    ttl_ms: int | None = None
    """For how long; None: for ever."""
    result: str | None = None
    """ASCII JSON text to keep with it."""


class Claiming(IntEnum):
    """What became of a claim that was asked for."""

    STALE = 0
    """Nothing: the job is not Processing under this lease (any more)."""
    CLAIMED = 1
    """The key is this execution's, by this call, an earlier one, or an earlier execution of the same job."""
    BUSY = 2
    """Another job's run holds the key and has not ended."""
    DONE = 3
    """A run of this key has completed: another job's, or an earlier execution of this one."""


class ClaimAnswer(msgspec.Struct, frozen=True, gc=False):
    """The answer to one claim."""

    state: Claiming
    holder: str | None = None
    """The job whose claim or marker stands there."""
    expires_in_ms: int | None = None
    """Until then; None: for ever (DONE), or nothing stands there."""
    result: str | None = None
    """What the completed run kept, with DONE."""


class ClaimView(msgspec.Struct, frozen=True, kw_only=True):
    """A claim or marker as people see it."""

    key: str
    job_id: str
    lease: int
    worker_id: str
    state: str
    """`running` or `done`."""
    claimed_at: datetime
    done_at: datetime | None = None
    expires_at: datetime | None = None
    """None: never."""
    result: str | None = None
    """ASCII JSON text."""


class ClaimSession(Protocol):
    """The operations on run claims. No key may stand twice in one call."""

    def claim_runs(self, worker: Registration, claims: Sequence[RunClaim]) -> list[ClaimAnswer]:
        """Claim keys for jobs that are Processing under their lease."""
        ...

    def renew_claims(self, worker: Registration, claims: Sequence[RunClaim]) -> list[Answer]:
        """Move the expiry of claims still held; STALE: somebody else's by now, or no claim any more."""
        ...

    def complete_runs(self, worker: Registration, completions: Sequence[Completion]) -> list[Answer]:
        """Turn claims into markers of completed runs; STALE: the claim was lost."""
        ...

    def release_claims(self, worker: Registration, claims: Sequence[RunClaim]) -> list[Answer]:
        """Give up claims whose run has not completed; STALE: the key is not free, since somebody else holds it, or done."""
        ...

    def list_claims(self, job_id: str) -> list[ClaimView]:
        """Claims and markers of one job, by key, at most 100."""
        ...


def check_claims(claims: Sequence[RunClaim | Completion]) -> None:
    """Raises StoreRefused for what no store can hold, naming the field."""
    keys = set()
    for claim in claims:
        check_text("claim key", claim.key)
        if not 0 < len(claim.key.encode("utf-16-le")) // 2 <= MAX_KEY:
            raise StoreRefused(f"a claim key must have 1 to {MAX_KEY} characters: {claim.key[:40]!r}")
        if claim.key in keys:
            raise StoreRefused(f"the claim key {claim.key!r} stands twice in one call")
        keys.add(claim.key)
        if claim.ttl_ms is not None and not 0 <= claim.ttl_ms <= LONGEST_TTL_MS:
            raise StoreRefused(f"a claim's time to live must be 0 to {LONGEST_TTL_MS} ms, not {claim.ttl_ms}")
        if isinstance(claim, Completion):
            check_ascii("result", claim.result)
