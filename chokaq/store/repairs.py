"""What goes into the operators' repairs and comes out of them."""

from datetime import datetime

import msgspec
from msgspec import UNSET, UnsetType

from chokaq.lifecycle.states import FailureReason, JobStatus


class Edits(msgspec.Struct, frozen=True, kw_only=True):
    """Changes to a job. UNSET leaves a field alone."""

    payload: str | UnsetType = UNSET
    """ASCII JSON text, already checked."""
    tags: str | UnsetType | None = UNSET
    """None clears them."""
    priority: int | UnsetType = UNSET


class RepairAnswer(msgspec.Struct, frozen=True):
    """What an operator's action did with one job (or one worker)."""

    id: str
    result: str
    """`accepted`, `wrong_state` (unchanged: it does not stand where the action needs it), `unknown` (no such job), or
    `key_conflict` (unchanged: another live job holds its idempotency key)."""
    status: JobStatus | None = None
    """The job's state now; None where there is none (unknown, purged, a worker)."""
    holder: str | None = None
    """With `key_conflict`: the live job that holds the key."""


class DlqFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs of the DLQ an action means. None: any."""

    queue: str | None = None
    type_key: str | None = None
    reason: FailureReason | None = None
    status: JobStatus | None = None
    tag: str | None = None
    """Text contained in the tags; wildcards stand for themselves."""
    failed_from: datetime | None = None
    failed_until: datetime | None = None
    search: str | None = None
    """Literal substring (wildcards mean themselves) of id, type key, tags or error; covers the newest 10,000."""


class DlqPreview(msgspec.Struct, frozen=True):
    """How many jobs a filter means at this moment, and the newest of them."""

    matched: int
    """Counted up to 10,000."""
    more: bool
    """True when there are more than were counted."""
    ids: list[str]
    """Newest first, up to the limit asked for."""
