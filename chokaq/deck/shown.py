"""What the reads answer: everything a page or the API shows. Instants are aware UTC; durations say their unit."""

from datetime import datetime
from typing import Literal

import msgspec

from chokaq.lifecycle.circuit import Forced
from chokaq.lifecycle.states import FailureReason, JobStatus, Pillar
from chokaq.operations.circuits import CircuitStatus
from chokaq.operations.jobs import JobDetail
from chokaq.store.records import JobView, PriorityView, QueueView, WorkerView

Lag = Literal["ok", "warning", "critical"]
Health = Literal["ok", "warning", "critical"]


class Counted(msgspec.Struct, frozen=True):
    """A count, with its age when it is not fresh: counts above 10,000 are taken at most every 5 s."""

    value: int
    age_ms: int = 0
    more: bool = False
    """True: there are more than were counted."""


class ErrorFamily(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of the DLQ that stopped for one reason with one type of error (of the newest 10,000)."""

    reason: FailureReason
    error_type: str | None
    count: int
    latest: datetime
    message: str
    """Of the newest one, cut to 200 characters."""


class HealthLine(msgspec.Struct, frozen=True):
    """One thing judged in words."""

    what: Literal["database", "workers", "queues", "circuits"]
    health: Health
    sentence: str


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The first page."""

    pending: Counted
    scheduled: Counted
    fetched: Counted
    processing: Counted
    succeeded_total: int
    """Lifetime totals over all queues; they never shrink."""
    failed_total: int
    retried_total: int
    per_second_1m: float
    """Succeeded jobs per second over the last minute."""
    per_second_5m: float
    failure_rate_5m: float | None
    """Stopped jobs as a share (0 to 1) of all that ended within the last 5 minutes; None: none ended."""
    oldest_due_ms: int | None
    """Lag: how long the oldest due job waits, over all queues."""
    lag: Lag
    capacity: int
    """Handlers that could run at once: live children times their max_workers."""
    health: list[HealthLine]
    families: list[ErrorFamily]
    """The five largest."""
    as_of: datetime
    """When this was read, by the database's clock."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a chart."""

    start: datetime
    succeeded: int = 0
    failed: dict[str, int] = {}
    """By reason label, e.g. `FatalError`."""
    retried: int = 0
    lag_p95_ms: float | None = None
    """Of the jobs that ended in this step: the upper bound of the histogram's step that holds the 95th percentile."""
    running_mean: float = 0.0
    """Jobs running at once on average: run time of what succeeded, over the step's length."""


class Charts(msgspec.Struct, frozen=True, kw_only=True):
    """Series over the last hour (30 s a step) or day (10 min a step), empty steps included, oldest first."""

    span: Literal["hour", "day"]
    step_seconds: int
    points: list[Point]
    capacity: int
    """Handlers that could run at once, now."""


class QueueRow(msgspec.Struct, frozen=True, kw_only=True):
    """A queue as the page of queues shows it."""

    queue: QueueView
    """Counts, overrides (`live`, None: the YAML rules) and who set them."""
    lag: Lag
    lag_mean_ms: float | None
    """Pickup lag of the jobs that ended within the last 5 minutes, from the histogram."""
    lag_max_ms: float | None
    succeeded_1m: int
    failed_1m: int
    retried_1m: int
    max_workers: int | None
    """What holds: the override, else the YAML's when this Deck's YAML names the queue."""
    fleet_max_workers: int | None
    counted_age_ms: int = 0


class PriorityRow(msgspec.Struct, frozen=True):
    """The due jobs of one priority of a queue."""

    priority: PriorityView
    """How many wait, and for how long the oldest has."""
    lag: Lag


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs a list shows, how sorted. Travels in the URL: `to_query()` and `reads.search_of(query)`. None: any."""

    pillar: Pillar | None = None
    """None: all three, newest first by id."""
    queue: str | None = None
    status: JobStatus | None = None
    type_key: str | None = None
    reason: FailureReason | None = None
    error_type: str | None = None
    """Exactly this error type: the link of an error family."""
    tag: str | None = None
    """Text contained in the tags."""
    text: str | None = None
    """Text contained in id, type, tags, error type or message, letters of either case. A whole id finds its job directly."""
    stopped_from: datetime | None = None
    """Ended at this instant or later (Archive, DLQ)."""
    stopped_until: datetime | None = None
    sort: Literal["created", "ended"] = "created"
    """`created`: by id; `ended`: by when it succeeded or stopped (Archive or DLQ only)."""
    descending: bool = True


class JobsPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a list. No payloads."""

    jobs: list[JobView]
    after: str | None
    """Pass it to get the next page; None at the end."""
    examined: int
    """Rows looked at for this page: a filter that no index serves looks at 10,000 at a time."""
    partial: bool
    """True: the page ended because 10,000 rows were looked at; `after` goes on from there. Say so."""


class Claimed(msgspec.Struct, frozen=True):
    """Who works on a job."""

    worker: WorkerView | None
    """None: it is in no registry any more."""
    alive: bool
    sentence: str
    """`heartbeat 2 s ago`, `silent for 75 s`, `ended`."""


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one job."""

    detail: JobDetail
    """The job with payload (cut to what is shown: see `payload`), attempts, audit entries, claims of idempotency keys."""
    payload: str
    """Pretty JSON, at most 200,000 characters."""
    payload_bytes: int
    payload_cut: bool
    """True: it is longer than is shown; it cannot be edited here."""
    headers: dict[str, str]
    owner: Claimed | None
    """None: nobody holds it."""
    risks: list[str]
    """What a resurrection would risk, one sentence each (DLQ)."""
    type_known: bool
    """Whether an edited payload can be checked against the contract of its type."""
    editable: bool
    """Pending, or in the DLQ and not Dropped."""


class Setting(msgspec.Struct, frozen=True):
    """One option as it holds."""

    path: str
    value: str
    """Passwords hidden."""
    origin: str
    """`chokaq.yaml:7`, `$CHOKAQ_DATABASE_URL` or `default`."""


class WorkerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as the page of workers shows it."""

    worker: WorkerView
    alive: bool
    jobs: list[JobView]
    """What it holds now (at most 500 over all workers): `started_at` gives their age."""


class AuditPage(msgspec.Struct, frozen=True):
    """One page of the audit log, newest first."""

    entries: list["AuditLine"]
    after: str | None
    partial: bool = False
    """True: it ended because 2,000 entries were looked at, for more than one filter; `after` goes on from there."""


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """One operator's action on one thing."""

    id: int
    at: datetime
    actor: str
    action: str
    target: str
    reason: str | None
    before: str | None
    """JSON text."""
    after: str | None


class Shut(msgspec.Struct, frozen=True):
    """From an instant on: of so many workers the circuit was not closed."""

    at: datetime
    workers: int


class CircuitOrdered(msgspec.Struct, frozen=True):
    """An order to the circuits of a type."""

    at: datetime
    forced: Forced
    """Forced.NO: it was taken back."""
    actor: str


class CircuitTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """The circuits of one job type over the last 24 h."""

    type_key: str
    start: datetime
    """What it covers: 24 h, or less when more happened than is read (`cut`)."""
    end: datetime
    steps: list[Shut]
    """Oldest first; the first one stands at `start`, each holds until the next, the last one until `end`."""
    orders: list[CircuitOrdered]
    """Oldest first."""
    cut: bool


Circuits = list[CircuitStatus]
