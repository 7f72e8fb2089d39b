"""What the operators' repairs of jobs take and answer: resurrect, drop, purge, edit, drain, and the preview of a DLQ filter."""

from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import UNSET, UnsetType

from chokaq.lifecycle.states import FailureReason, JobStatus
from chokaq.store.errors import StoreRefused
from chokaq.store.names import check_ascii

ACCEPTED, WRONG_STATE, UNKNOWN, KEY_CONFLICT = RESULTS = ("accepted", "wrong_state", "unknown", "key_conflict")
MAX_PRIORITY = 1_000_000
MAX_PREVIEW = 1_000
"""Ids that a preview names at most: what one call may carry."""
COUNTED = 10_000
"""A preview counts no further, and a search looks at no more jobs."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Edits(msgspec.Struct, frozen=True, kw_only=True):
    """What to change in a job. UNSET leaves a field as it is."""

    payload: str | UnsetType = UNSET
    """ASCII JSON text, already checked against the envelope's limit."""
    tags: str | UnsetType | None = UNSET
    """None clears them."""
    priority: int | UnsetType = UNSET

    @property
    def is_empty(self) -> bool:
        """True when nothing is to change."""
        return self.payload is UNSET and self.tags is UNSET and self.priority is UNSET


class RepairAnswer(msgspec.Struct, frozen=True):
    """What an operation did with one job (or worker)."""

    id: str
    result: str
    """`accepted` (done, by this call or by an earlier try of the same request), `wrong_state` (it stands where this action is
    not allowed; unchanged), `unknown` (no such job), `key_conflict` (another live job holds its key; unchanged)."""
    status: JobStatus | None = None
    """The state it stands in now, the action included; None when it stands nowhere (unknown, purged) or is a worker."""
    holder: str | None = None
    """Of `key_conflict`: the live job that holds its idempotency key."""
    queue: str | None = None
    """Of an accepted resurrection: the queue in which the job is Pending now; None when it has gone on since."""


class KeyHolder(msgspec.Struct, frozen=True):
    """The live job that holds an idempotency key."""

    id: str
    status: JobStatus


class DlqFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs of the DLQ are meant. None: any."""

    queue: str | None = None
    type_key: str | None = None
    reason: FailureReason | None = None
    status: JobStatus | None = None
    tag: str | None = None
    """Text contained in the tags; `%`, `_` and `[` stand for themselves."""
    failed_from: datetime | None = None
    """Stopped at this instant or later."""
    failed_until: datetime | None = None
    """Stopped before this instant."""
    search: str | None = None
    """Text contained in id, type, tags, error type or error message: no wildcards, ASCII letters in either case. Looks at the
    newest 10,000 jobs that fit the rest of the filter."""


class DlqPreview(msgspec.Struct, frozen=True):
    """What a filter means at this moment."""

    matched: int
    """Counted up to 10,000."""
    more: bool
    """There are more than that; with a search: there are older jobs that it did not look at."""
    ids: list[str]
    """Newest first (by when they stopped, then by id), as many as were asked for."""


def check_edits(edits: Edits | None) -> Edits:
    """The edits, when a store can hold them. Raises StoreRefused, naming the field."""
    if edits is None:
        return Edits()
    if not isinstance(edits.payload, UnsetType):
        check_ascii("payload", edits.payload)
    if not isinstance(edits.priority, UnsetType) and not 0 <= edits.priority <= MAX_PRIORITY:
        raise StoreRefused(f"priority: {edits.priority} is not between 0 and {MAX_PRIORITY:,}")
    return edits


def check_changes(edits: Edits) -> Edits:
    """Like `check_edits`, for an operation that does nothing else."""
    if edits.is_empty:
        raise StoreRefused("an edit names at least one of payload, tags and priority")
    return check_edits(edits)


def check_actor(actor: str) -> str:
    """The actor, when there is one: no change is anonymous. Raises StoreRefused."""
    if not actor.strip():
        raise StoreRefused("actor is empty: every change is recorded under a name")
    return actor


def since_1970(field: str, instant: datetime | None) -> int | None:
    """Milliseconds, rounded up; None stays None. Raises StoreRefused for an instant that does not say its zone."""
    if instant is None:
        return None
    if instant.tzinfo is None:
        raise StoreRefused(f"{field} {instant.isoformat()} has no time zone")
    return max(-((_EPOCH - instant) // _MILLISECOND), 0)


def needle(search: str | None) -> str | None:
    """What to look for; None for nothing but blanks."""
    return search if search is not None and search.strip() else None
