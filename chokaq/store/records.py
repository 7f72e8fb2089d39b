"""What goes into a store and comes out of it. Times are aware UTC datetimes; durations are whole milliseconds.

Free text (errors, notes, reasons, tags) is any Unicode text without NUL; names (queue, type key, worker) are printable
ASCII; payloads and headers are ASCII JSON text.
"""

from datetime import datetime

import msgspec

from chokaq.lifecycle.states import FailureReason, JobStatus, KeyScope, Pillar


class NewJob(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A job to enqueue; already validated against the envelope limits (chokaq.jobs.envelope)."""

    id: str
    """ULID, 26 characters, minted before the first try."""
    queue: str
    type_key: str
    payload: str
    """ASCII JSON text, at most 1,000,000 bytes."""
    priority: int = 10
    """0 … 1,000,000; higher is served first."""
    delay_ms: int = 0
    due_at: datetime | None = None
    """An instant the application names, stored as given; wins over delay_ms."""
    tags: str | None = None
    created_by: str | None = None
    headers: str | None = None
    """ASCII JSON object of strings (trace context and the like), at most 4,000 bytes."""
    idempotency_key: str | None = None
    """Trimmed, at most 255 characters."""
    key_scope: KeyScope = KeyScope.ACTIVE
    key_window_ms: int | None = None
    """Only with KeyScope.WINDOW."""


class Enqueued(msgspec.Struct, frozen=True, gc=False):
    """The answer to one enqueue."""

    id: str
    """The job that stands for this enqueue: the new one, or the one that holds the idempotency key."""
    created: bool
    """True also when a repeat of the same call finds its own job, in any pillar."""
    status: JobStatus
    """The job's state now: Pending when created by this call."""
    payload_differs: bool = False
    """True when an existing job answers and its payload bytes are not the ones offered."""


class FetchedJob(msgspec.Struct, frozen=True, gc=False):
    """A claimed job, as a child needs it to run."""

    id: str
    type_key: str
    payload: str
    lease: int
    """Lease number of this claim: the fence on every later write."""
    priority: int
    attempt_count: int
    """Executions started before this one."""
    crash_count: int
    created_at: datetime
    due_at: datetime
    age_ms: int
    """Milliseconds since AgeFromUtc (the first due time; resurrection restarts it), by the database's clock."""
    tags: str | None = None
    created_by: str | None = None
    headers: str | None = None


class LiveQueue(msgspec.Struct, frozen=True, gc=False):
    """The operators' overrides of a queue. None: the YAML rules."""

    max_workers: int | None = None
    fleet_max_workers: int | None = None
    execution_timeout_ms: int | None = None
    zombie_timeout_ms: int | None = None
    paused: bool = False
    active: bool = True


class Cancellation(msgspec.Struct, frozen=True, gc=False):
    """A cancellation meant for a job this worker is processing."""

    id: str
    lease: int
    actor: str | None
    reason: str | None


class Fetch(msgspec.Struct, frozen=True):
    """The answer to FetchJobs."""

    retired: bool
    """True when the worker has been ended by maintenance: it must stop and boot again under a new id."""
    jobs: list[FetchedJob]
    """Sorted by priority (higher first), due time, id."""
    live: LiveQueue
    cancellations: list[Cancellation]
    next_due_ms: int | None
    """Milliseconds to the next due job of the queue; 0 when ready jobs wait; None when nothing waits."""
    draining: bool = False
    """An operator asked this worker to end: it goes on until its replacement is there."""
    circuit_order: int = 0
    """Number of the latest order to circuits (`Session.read_circuit_orders`); 0: there never was one."""


class Registration(msgspec.Struct, frozen=True):
    """A worker known to the store. Settling calls carry it."""

    worker_id: str
    queue: str
    """Empty for a maintenance process."""
    slot: int
    """Its own row of the outcome counters; unique among live workers."""


class WorkerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a process tells about itself when it registers."""

    worker_id: str
    """A new ULID at every boot."""
    queue: str
    host: str
    pid: int
    version: str
    max_workers: int = 0


class Figures(msgspec.Struct, frozen=True, gc=False):
    """A worker's live figures, sent with every KeepAlive."""

    running: int = 0
    buffered: int = 0
    loop_lag_ms: int = 0
    memory_kb: int = 0
    draining: bool = False
    """It claims no more, and will end."""


class Held(msgspec.Struct, frozen=True, gc=False):
    """A job under a lease."""

    id: str
    lease: int


class Beat(msgspec.Struct, frozen=True, gc=False):
    """One lease to renew, with the progress its handler reported since the last call (None: nothing new)."""

    id: str
    lease: int
    progress: int | None = None
    note: str | None = None


class AttemptError(msgspec.Struct, frozen=True, gc=False):
    """What a failed attempt leaves behind in JobAttempts; cut by the caller to the limits of chokaq.lifecycle.failures."""

    type: str
    """≤ 255 characters."""
    message: str
    """≤ 4,000 characters."""
    trace: str | None = None
    """≤ 16,000 characters."""


class Retry(msgspec.Struct, frozen=True, gc=False):
    """A charged failure that returns its job to Pending (Processing → Pending)."""

    id: str
    lease: int
    delay_ms: int
    error: AttemptError
    reason: FailureReason = FailureReason.TRANSIENT
    max_age_ms: int | None = None
    """When the job would be due later than this after AgeFromUtc it ends Failed / RetryLifetimeExpired instead."""


class Failure(msgspec.Struct, frozen=True, gc=False):
    """A job that stops: to the DLQ, from Processing or (never started) from Fetched."""

    id: str
    lease: int
    status: JobStatus
    """FAILED or CANCELLED."""
    reason: FailureReason
    error: AttemptError | None = None


class Release(msgspec.Struct, frozen=True, gc=False):
    """A job handed back without charge: Fetched → Pending, or Processing → Pending with the attempt refunded."""

    id: str
    lease: int
    delay_ms: int | None = None
    """None: due as before (it keeps its place). Otherwise due that long from now (snooze, circuit, unknown type)."""
    max_age_ms: int | None = None
    """With a delay: end Failed / RetryLifetimeExpired when it would be due later than this after AgeFromUtc."""


class CrashPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a Processing job whose owner died unexpectedly (design §4)."""

    on_crash: str = "dead_letter"
    """`dead_letter` or `retry`."""
    crash_limit: int = 3
    max_attempts: int = 3
    backoff_ms: tuple[int, ...] = (3_000, 6_000, 12_000)
    """Delay after the 1st, 2nd, … started attempt, jitter included; the last entry repeats."""
    max_age_ms: int | None = 86_400_000


class CrashPolicies(msgspec.Struct, frozen=True, kw_only=True):
    """The crash policy of a queue, with the types that differ."""

    default: CrashPolicy = CrashPolicy()
    types: dict[str, CrashPolicy] = {}


class DeathNotice(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker ended, as its supervisor saw it."""

    worker_id: str
    queue: str
    cause: str
    """A chokaq.lifecycle.states.DeathCause value."""
    exit_code: int | None = None
    signal: int | None = None
    memory_kb: int | None = None
    last_pulse_ms: int | None = None
    """Age of its last pulse on the board when it ended."""
    culprits: list[Held] = []
    """Jobs past their hard limit when it was killed (cause `limit`)."""

    @property
    def text(self) -> str:
        """One line for JobAttempts: signal or exit code, memory, last pulse."""
        parts = [f"cause {self.cause}"]
        if self.signal is not None:
            parts.append(f"signal {self.signal}")
        if self.exit_code is not None:
            parts.append(f"exit code {self.exit_code}")
        if self.memory_kb is not None:
            parts.append(f"memory {self.memory_kb // 1024} MB")
        if self.last_pulse_ms is not None:
            parts.append(f"last pulse {self.last_pulse_ms} ms before")
        return ", ".join(parts)


class Released(msgspec.Struct, frozen=True):
    """How many jobs of an ended or lost worker went where."""

    pending: int = 0
    """Returned to Pending (never started, handed back, or crashed with `on_crash: retry`)."""
    zombies: int = 0
    poisoned: int = 0
    """Zombie with reason Poison."""
    failed: int = 0
    """Timeout or RetryLifetimeExpired."""
    cancelled: int = 0
    done: bool = True
    """False when more remain: call again (a call moves at most 1,000 jobs)."""
    cursor: str | None = None
    """For RecoverAbandoned and ArchiveZombies: where the next page starts; None at the end."""


class Leadership(msgspec.Struct, frozen=True):
    """The answer to TakeLeadership."""

    leading: bool
    holder: str
    term: int
    last_pass_age_ms: int | None
    """Age of the previous pass by the database's clock, whoever made it; None for the very first."""
    now: datetime
    """The database's clock."""


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """A job as GetJob and the lists show it, from whichever pillar it stands in."""

    id: str
    pillar: Pillar
    status: JobStatus
    queue: str
    type_key: str
    priority: int
    attempt_count: int
    crash_count: int
    lease: int
    created_at: datetime
    due_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    """Archive: succeeded; DLQ: stopped."""
    duration_ms: int | None = None
    worker_id: str | None = None
    heartbeat_at: datetime | None = None
    progress: int | None = None
    tags: str | None = None
    created_by: str | None = None
    owner_login: str | None = None
    idempotency_key: str | None = None
    key_scope: KeyScope = KeyScope.ACTIVE
    cancel_requested_at: datetime | None = None
    failure_reason: FailureReason | None = None
    error_type: str | None = None
    error_message: str | None = None
    payload: str | None = None
    """Only from GetJob; lists never read payloads."""
    headers: str | None = None
    """Only from GetJob."""
    note: str | None = None
    """Only from GetJob: the handler's last progress note."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One failed attempt."""

    job_id: str
    lease: int
    at: datetime
    worker_id: str | None
    reason: FailureReason
    error: AttemptError


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs a list shows. None: any."""

    pillar: Pillar = Pillar.HOT
    queue: str | None = None
    status: JobStatus | None = None
    type_key: str | None = None
    reason: FailureReason | None = None
    tag: str | None = None
    """Text contained in the tags; `%`, `_` and `[` stand for themselves."""
    failed_from: datetime | None = None
    """Stopped at this instant or later: the DLQ only, like `reason`."""
    failed_until: datetime | None = None
    """Stopped before this instant: the DLQ only."""
    search: str | None = None
    """Text contained in id, type, tags, error type or error message: no wildcards, ASCII letters in either case. Looks at the
    newest 10,000 jobs (by id) that fit the rest of the filter."""


class Page(msgspec.Struct, frozen=True):
    """One page of a list, newest first (by id)."""

    jobs: list[JobView]
    after: str | None
    """Pass it to get the next page; None at the end."""


class QueueView(msgspec.Struct, frozen=True, kw_only=True):
    """A queue with its figures."""

    name: str
    live: LiveQueue
    pending: int
    """Due and waiting. Counts stop at 100,000 per state."""
    scheduled: int
    """Waiting for a later instant."""
    fetched: int
    processing: int
    succeeded_total: int
    failed_total: int
    retried_total: int
    oldest_due_ms: int | None
    """Age of the oldest due job."""
    live_workers: int
    """Children whose heartbeat is younger than a minute and that have not ended."""
    known: bool
    """True when the queue has a row in Queues (a worker registered or an operator set something)."""
    updated_at: datetime | None = None
    updated_by: str | None = None
    oldest_running_ms: int | None = None
    """How long the job that has run longest has been running; None when none runs."""


class PriorityView(msgspec.Struct, frozen=True):
    """The due jobs of a queue that share a priority."""

    priority: int
    waiting: int
    """Due and waiting; the count stops at 10,000."""
    oldest_due_ms: int
    """How long the oldest of them has been due."""


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the worker registry."""

    worker_id: str
    queue: str
    host: str
    pid: int
    version: str
    slot: int
    max_workers: int
    started_at: datetime
    heartbeat_at: datetime
    heartbeat_age_ms: int
    ended_at: datetime | None
    ended_cause: str | None
    figures: Figures
    drain_at: datetime | None = None
    """When an operator asked it to end."""


class CancelAnswer(msgspec.Struct, frozen=True):
    """What CancelJobs did with one job."""

    id: str
    result: str
    """`cancelled` (it stood in Pending or Fetched and is in the DLQ now), `requested` (it is Processing and will be told),
    `final` (it had already ended; unchanged), `unknown` (no such job, or not the caller's own)."""


class QueueChange(msgspec.Struct, frozen=True, kw_only=True):
    """Overrides to write. UNSET leaves a column alone, None clears it (the YAML rules again)."""

    max_workers: int | msgspec.UnsetType | None = msgspec.UNSET
    fleet_max_workers: int | msgspec.UnsetType | None = msgspec.UNSET
    execution_timeout_ms: int | msgspec.UnsetType | None = msgspec.UNSET
    zombie_timeout_ms: int | msgspec.UnsetType | None = msgspec.UNSET
    paused: bool | msgspec.UnsetType = msgspec.UNSET
    active: bool | msgspec.UnsetType = msgspec.UNSET


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One operator action on one thing."""

    id: int
    at: datetime
    actor: str
    action: str
    target: str
    """A job id or a queue name."""
    reason: str | None
    before: str | None
    """JSON text."""
    after: str | None


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """Outcomes of one queue in one span of time, summed over slots."""

    start: datetime
    seconds: int
    """1 or 60."""
    queue: str
    outcome: int
    reason: int
    count: int
    duration_ms: int
    """Sum of run times of the counted successes."""
    max_duration_ms: int
    lag: tuple[int, ...]
    """Twelve counts of pickup lag (start minus due): ≤ 1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576 ms, more."""
