"""What The Deck asks a store: what changed, charts, ordered lists, families of errors. All bounded, none reads payloads."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from chokaq.lifecycle.states import FailureReason, JobStatus, Pillar
from chokaq.store.errors import StoreRefused
from chokaq.store.records import JobView

MAX_WATCHED = 500
EVER = 2_000_000_000
"""Seconds ago that nobody signed out before."""
LONGEST_SESSION_MS = 400 * 86_400_000
LOOK = 100_000
"""Rows that one page of a filtered list looks at, at most."""
LOOK_FOR_TEXT = 10_000
"""The same when a text is searched for."""
LOOK_BY_END, LOOK_OF_EACH = 10_000, 2_000
"""The same in the order of ends, where every row is a look-up of its own: of one queue, and of each when none is named."""


class BucketMark(msgspec.Struct, frozen=True):
    """How many outcomes one second of a queue counts so far."""

    second: int
    """Since 2020-01-01 UTC."""
    queue: str
    outcome: int
    count: int


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """What can change about a job while somebody looks at it."""

    id: str
    pillar: Pillar
    status: JobStatus
    lease: int
    attempt_count: int
    priority: int
    progress: int | None
    cancel_requested: bool
    noted_at: datetime | None
    """When its last progress note was written."""


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """Marks to compare with those of the time before: where one differs, something changed."""

    now: datetime
    audit: int
    """The newest audit entry; 0: none."""
    order: int
    """The latest order to circuits."""
    circuits: tuple[int, int, datetime | None]
    """Rows, failures in all, and the latest change of the circuits that were told."""
    workers: tuple[int, int, datetime | None]
    """Workers that have not ended, those asked to end, and the newest heartbeat."""
    newest: list[tuple[str, str]]
    """The 50 newest jobs of Hot: id and queue, newest first."""
    buckets: list[BucketMark]
    """Outcomes of the last 10 s, at most 5,000."""
    leases: dict[str, int]
    """Leases held, by queue; counted up to 100,000."""
    watched: list[Watched]
    """The jobs asked for, as far as they exist."""
    signed_out: dict[str, int] = {}
    """Sessions of The Deck ended before their time, and the milliseconds they would still go on: at most the newest 1,000."""


class SeriesRow(msgspec.Struct, frozen=True, kw_only=True):
    """Outcomes of one queue within one step of a chart."""

    start: datetime
    queue: str
    outcome: int
    reason: int
    count: int
    duration_ms: int
    lag: tuple[int, ...]
    """As `Bucket.lag`."""


class Series(msgspec.Struct, frozen=True):
    """Outcome counters in steps of equal length, empty ones left out, oldest first."""

    now: datetime
    current: datetime
    """Where the step that is under way began: the last one."""
    rows: list[SeriesRow]


class Browse(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs of one pillar a list shows, and in which order. None: any."""

    pillar: Pillar = Pillar.HOT
    queue: str | None = None
    status: JobStatus | None = None
    type_key: str | None = None
    reason: FailureReason | None = None
    error_type: str | None = None
    """Exactly this one."""
    tag: str | None = None
    """Text contained in the tags; `%`, `_` and `[` stand for themselves."""
    text: str | None = None
    """Text contained in id, type, tags, error type or error message: no wildcards, ASCII letters in either case."""
    ended_from: datetime | None = None
    """Succeeded or stopped at this instant or later; no job of Hot has."""
    ended_until: datetime | None = None
    """Succeeded or stopped before this instant."""
    by_end: bool = False
    """In the order of their ends, by (instant, id), instead of by id; not for Hot."""
    descending: bool = True

    @property
    def look(self) -> int:
        """How many rows a page looks at, at most (of each queue, in the order of ends without a queue)."""
        if self.by_end:
            return LOOK_OF_EACH if self.queue is None else LOOK_BY_END
        return LOOK if self.text is None else LOOK_FOR_TEXT

    @property
    def leased(self) -> bool:
        """Whether the leases alone are looked at."""
        return self.pillar is Pillar.HOT and self.status in (JobStatus.FETCHED, JobStatus.PROCESSING)

    @property
    def impossible(self) -> bool:
        """True when the pillar never holds such a job: jobs of Hot have no end, and only those of the DLQ a reason."""
        ranged = self.ended_from is not None or self.ended_until is not None
        failed = self.reason is not None or self.error_type is not None
        return (self.pillar is Pillar.HOT and (ranged or self.by_end)) or (self.pillar is not Pillar.DLQ and failed)


class Place(msgspec.Struct, frozen=True):
    """Where a list goes on: behind this job."""

    id: str
    ended_ms: int = 0
    """Milliseconds since 1970; in the order of ends only."""


class BrowsePage(msgspec.Struct, frozen=True):
    """One page."""

    jobs: list[JobView]
    after: Place | None
    """Where the next one begins; None at the end."""
    partial: bool
    """True: it ended because enough rows were looked at, though not all of them."""


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of the DLQ that stopped for one reason with one type of error."""

    reason: FailureReason
    error_type: str | None
    count: int
    latest: datetime
    message: str
    """Of the newest one (by id), at most 200 characters."""


def check_session(name: str) -> str:
    """What names a sign-in to The Deck. Raises StoreRefused."""
    if not (0 < len(name) <= 64 and name.isascii() and name.isprintable()):
        raise StoreRefused("the name of a session is 1 to 64 printable ASCII characters")
    return name


class LookingSession(Protocol):
    """The part of a session that only The Deck calls."""

    def read_changes(self, watched: Sequence[str] = (), signed_out_since: int | None = None) -> Changes:
        """Marks of everything that can change, and the jobs looked at: at most 500.

        `signed_out_since`: also who has signed out within the last so many seconds (0 to `EVER`); None: not asked.
        """
        ...

    def sign_out(self, session: str, remaining_ms: int) -> None:
        """End a session of The Deck for all of its processes. `remaining_ms`: for how long it would have gone on, at most 400 days.

        Raises StoreRefused for a name that is not 1 to 64 printable ASCII characters.
        """
        ...

    def read_series(self, queue: str | None, step_seconds: int, steps: int) -> Series:
        """Outcome counters of the last `steps` steps (the one under way included), summed over slots. 1 ≤ steps ≤ 1,440."""
        ...

    def browse_jobs(self, where: Browse, limit: int = 50, after: Place | None = None) -> BrowsePage:
        """One page of a list. 1 ≤ limit ≤ 500."""
        ...

    def list_families(self, queue: str | None = None, limit: int = 5) -> list[Family]:
        """The largest families of errors among the newest 10,000 jobs of the DLQ (by id), Dropped ones left out."""
        ...
