"""What every store does: one method per operation, each one procedure (T-SQL) and one embedded twin (SQLite).

Two objects. A `Store` is a place (a URL and a schema name): cheap, fork-safe, holds no connection. A `Session` is one
connection, used by one thread at a time; a lane opens its own, after the fork.

Rules that hold for every method of a Session (design §3, §7):

* A set goes in, one answer per job comes out, in the order of the input. An empty set is allowed and answers an empty list
  (this is how a lane warms a procedure). At most 1,000 jobs a call.
* It may be called again with the same arguments after any error: an ambiguous commit is settled by the repeat.
* A write by a holder matches (Id, lease number, expected status). Not matching: `Answer.STALE`, nothing changed. Already in the
  requested state under the same (Id, lease): `Answer.APPLIED`.
* Times are the database's clock; no operation takes the time as a parameter.
* Raises `StoreUnavailable` (try again), `StoreRefused` (will not pass by itself), `SchemaMismatch`, `StoreMisconfigured`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from chokaq.lifecycle.states import Answer, JobStatus, Pillar
from chokaq.store.circuits import CircuitSession
from chokaq.store.claims import ClaimSession
from chokaq.store.looking import LookingSession
from chokaq.store.probing import ProbingSession
from chokaq.store.records import (
    Attempt,
    AuditEntry,
    Beat,
    Bucket,
    CancelAnswer,
    Cancellation,
    CrashPolicies,
    DeathNotice,
    Enqueued,
    Failure,
    Fetch,
    Figures,
    Held,
    JobFilter,
    JobView,
    Leadership,
    NewJob,
    Page,
    PriorityView,
    QueueChange,
    QueueView,
    Registration,
    Release,
    Released,
    Retry,
    WorkerInfo,
    WorkerView,
)
from chokaq.store.repairs import DlqFilter, DlqPreview, Edits, KeyHolder, RepairAnswer
from chokaq.store.scale import ScalingSession

MAX_JOBS_PER_CALL = 1_000
MAX_BYTES_PER_CALL = 4_000_000


class Session(ClaimSession, CircuitSession, LookingSession, ProbingSession, ScalingSession, Protocol):
    """One connection to a store; one thread at a time."""

    # ── client ────────────────────────────────────────────────────────────────────────────────────────────────────────
    def enqueue_jobs(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Accept jobs durably, in one transaction of its own (or inside the caller's, see `Store.enqueue_in`)."""
        ...

    def get_job(self, job_id: str) -> JobView | None:
        """The job with payload, headers and note, from Hot, Archive or DLQ; None only when it stands in none of them."""
        ...

    def get_statuses(self, job_ids: Sequence[str]) -> list[JobStatus | None]:
        """The state of each job (for `app.wait`); None for unknown ids."""
        ...

    # ── worker ────────────────────────────────────────────────────────────────────────────────────────────────────────
    def register_worker(self, worker: WorkerInfo) -> Registration:
        """Insert the worker's row, give it a counter slot, insert the queue's row when missing (never an override)."""
        ...

    def fetch_jobs(self, worker: Registration, request: int, size: int, fleet_cap: int | None = None) -> Fetch:
        """Claim up to `size` ready jobs of the worker's queue (Pending → Fetched), raising each one's lease number.

        `request` counts 1, 2, 3 … per worker; a number already used answers the jobs claimed under it that are still Fetched.
        `fleet_cap` is the YAML's fleet_max_workers; the override in Queues wins. Size 0 only syncs settings and cancellations.
        Promotes at most 1,000 due rows first. Claims nothing when the queue is paused or inactive.
        """
        ...

    def start_jobs(self, worker: Registration, jobs: Sequence[Held]) -> list[Answer]:
        """Fetched → Processing; AttemptCount + 1, StartedAtUtc and HeartbeatUtc now."""
        ...

    def keep_alive(
        self, worker: Registration, beats: Sequence[Beat], figures: Figures
    ) -> tuple[list[Answer], list[Cancellation]]:
        """Renew leases (Status 1 or 2), store progress, and the worker's figures and heartbeat; also tells cancellations."""
        ...

    def archive_succeeded(self, worker: Registration, jobs: Sequence[Held]) -> list[Answer]:
        """Processing → Archive; counts the success with its run time and pickup lag.

        A job that a manual repair put back into Hot, its old Archive row left, ends in the Archive: the old row gives way.
        """
        ...

    def reschedule_for_retry(self, worker: Registration, retries: Sequence[Retry]) -> list[Answer]:
        """Processing → Pending after a charged failure, with its JobAttempts row; may answer CANCELLED or EXPIRED."""
        ...

    def archive_failed(self, worker: Registration, failures: Sequence[Failure]) -> list[Answer]:
        """Fetched or Processing → DLQ, with a JobAttempts row when an error is given; counts the failure."""
        ...

    def release_jobs(self, worker: Registration, releases: Sequence[Release]) -> list[Answer]:
        """Fetched → Pending, or Processing → Pending with the attempt refunded; may answer CANCELLED or EXPIRED."""
        ...

    # ── maintenance ───────────────────────────────────────────────────────────────────────────────────────────────────
    def release_worker(self, by: Registration, notice: DeathNotice, policies: CrashPolicies) -> Released:
        """End a worker: its Fetched jobs → Pending; its Processing jobs by the cause of death (design §4).

        Needs no leadership. Marks the worker ended first, so that a fetch of it that arrives later claims nothing. Moves at most
        1,000 jobs a call: `done` False means call again.
        """
        ...

    def recover_abandoned(self, by: Registration, queue: str, timeout_ms: int, cursor: str | None = None) -> Released:
        """Fetched jobs of the queue whose heartbeat is older than the timeout → Pending (or Cancelled). Pages of 1,000."""
        ...

    def archive_zombies(
        self, by: Registration, queue: str, timeout_ms: int, policies: CrashPolicies, cursor: str | None = None
    ) -> Released:
        """Processing jobs whose heartbeat is older than the timeout (Queues.ZombieTimeoutMs wins): the crash policy applies."""
        ...

    def take_leadership(self, by: Registration, interval_ms: int) -> Leadership:
        """Take or renew the maintenance lead. A holder that has not passed for three intervals loses it; the term rises."""
        ...

    def hot_queues(self) -> list[str]:
        """Names of the queues that have rows in Hot or a row in Queues, for the rescue to walk."""
        ...

    def purge_archive(self, queue: str | None, older_than_ms: int, size: int = 1_000) -> int:
        """Delete Archive rows finished longer ago than that, with their keys, notes and attempts; returns how many."""
        ...

    def purge_dlq(self, queue: str | None, older_than_ms: int, size: int = 1_000) -> int:
        """Delete DLQ rows stopped longer ago than that, with their keys, notes and attempts; returns how many."""
        ...

    def purge_leftovers(self, size: int = 1_000) -> int:
        """Delete expired window keys whose job is not live, workers ended and events of circuits over 7 days ago, buckets past
        their keep, expired run claims and sign-outs. How many.

        Of the events of each job type the newest 1,000 tries and the newest 2,000 others stay.
        """
        ...

    def roll_up(self) -> int:
        """Fold per-second buckets older than 2 h into minutes and lifetime totals into QueueTotals; returns rows folded."""
        ...

    # ── operators ─────────────────────────────────────────────────────────────────────────────────────────────────────
    def cancel_jobs(
        self,
        job_ids: Sequence[str],
        actor: str,
        reason: str | None = None,
        *,
        own_only: bool = False,
        request: str | None = None,
    ) -> list[CancelAnswer]:
        """Pending and Fetched → DLQ Cancelled at once; Processing: the holder is told. One AuditLog row per job changed.

        `own_only`: only jobs enqueued under this database login (what a client role may do). `request`: a ULID minted before the
        first try, so that a repeat still answers `cancelled` for what the first try cancelled; None: a repeat answers `final`.
        """
        ...

    def set_queue(self, queue: str, change: QueueChange, actor: str, reason: str | None = None) -> QueueView:
        """Write overrides (inserting the queue's row when missing), with an AuditLog row holding before and after."""
        ...

    def list_jobs(self, where: JobFilter, limit: int = 50, after: str | None = None) -> Page:
        """One page, newest first by id. Never reads payloads. 1 ≤ limit ≤ 500."""
        ...

    def list_queues(self) -> list[QueueView]:
        """Every queue that has a row in Queues or jobs in Hot, by name."""
        ...

    def list_priorities(self, queue: str) -> list[PriorityView]:
        """How long the due jobs of one queue have waited, by priority, the highest first.

        At most 100: the priorities whose oldest job has waited longest. Looks at 1,000 priorities at most, the highest; of the jobs
        whose time has come since the last fetch it sees the oldest 1,000.
        """
        ...

    def list_workers(self, *, ended: bool = False) -> list[WorkerView]:
        """The registry, newest first, at most 1,000; ended workers only when asked."""
        ...

    def list_attempts(self, job_id: str) -> list[Attempt]:
        """The failed attempts of one job, oldest first, at most 1,000."""
        ...

    def list_audit(
        self,
        target: str | None = None,
        limit: int = 50,
        after: int | None = None,
        *,
        actor: str | None = None,
        action: str | None = None,
    ) -> list[AuditEntry]:
        """Audit rows, newest first: all, or those of one target, of one actor or of one action, each by its index.

        Of several that are given the first one counts. `actor`, `action`: ASCII letters in either case.
        """
        ...

    def list_buckets(self, queue: str | None, since_ms: int) -> list[Bucket]:
        """Outcome counters of the last `since_ms` milliseconds, summed over slots, oldest first."""
        ...

    # ── operators: repairs ────────────────────────────────────────────────────────────────────────────────────────────
    # Each needs an actor and writes one AuditLog row per job changed, with before and after, in the same transaction. `request`:
    # a ULID minted before the first try; a repeat answers `accepted` for what the first try did, even if the job moved on since.
    def resurrect_jobs(
        self,
        job_ids: Sequence[str],
        actor: str,
        reason: str | None = None,
        *,
        edits: Edits | None = None,
        without_key: bool = False,
        request: str | None = None,
    ) -> list[RepairAnswer]:
        """DLQ (Failed, Cancelled, Zombie) → Pending, due at once: attempts and crashes 0, a fresh age, the lease number carried on.

        Priority, key, headers, tags, creator and owner stay, save for `edits`. When another live job holds its key a job answers
        `key_conflict` and stays as it is; `without_key` gives the key up instead. Failed attempts stay readable.
        """
        ...

    def drop_jobs(
        self, job_ids: Sequence[str], actor: str, reason: str | None = None, *, request: str | None = None
    ) -> list[RepairAnswer]:
        """DLQ (Failed, Cancelled, Zombie) → Dropped, for good; why it failed stays readable."""
        ...

    def purge_jobs(
        self, job_ids: Sequence[str], actor: str, reason: str | None = None, *, request: str | None = None
    ) -> list[RepairAnswer]:
        """Delete jobs of Archive or DLQ with their keys, notes and attempts. Live ones: `wrong_state`."""
        ...

    def preview_dlq(self, where: DlqFilter, limit: int = 100) -> DlqPreview:
        """What a filter of the DLQ means now. 1 ≤ limit ≤ 1,000 ids. Never reads payloads."""
        ...

    def get_key_holder(self, key: str) -> KeyHolder | None:
        """The live job that holds an idempotency key, by its own row or by a retained or windowed entry; None: nobody."""
        ...

    def edit_job(
        self, job_id: str, edits: Edits, actor: str, reason: str | None = None, *, request: str | None = None
    ) -> RepairAnswer:
        """Change payload (with its hash), tags or priority of a job that is Pending, or Failed, Cancelled or Zombie."""
        ...

    def drain_worker(
        self, worker_id: str, actor: str, reason: str | None = None, *, request: str | None = None
    ) -> RepairAnswer:
        """Ask a worker to end once its replacement is there: its fetches tell it.

        `wrong_state`: it has ended, or is a maintenance process, which fetches nothing.
        """
        ...

    def close(self) -> None:
        """Close the connection; harmless when already closed or broken."""
        ...


class Store(Protocol):
    """A place where jobs live. Holds no connection; may be used before and after a fork."""

    @property
    def url(self) -> str:
        """Where it is, for messages: passwords redacted."""
        ...

    @property
    def identity(self) -> str:
        """A stable name of (server, database, schema) or of the file: names the doorbell's folder."""
        ...

    def session(self) -> Session:
        """Open a connection. Raises StoreUnavailable, StoreMisconfigured or SchemaMismatch."""
        ...

    def enqueue_in(self, cursor: Any, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Enqueue on the caller's own cursor (pyodbc or sqlite3), inside its transaction; an autocommit cursor is refused.

        After an error, a timeout of the client included, the caller rolls back (or closes the connection): whether the rows stand
        in the open transaction is not known.
        """
        ...

    def now(self) -> datetime:
        """The database's clock."""
        ...

    # ── schema ────────────────────────────────────────────────────────────────────────────────────────────────────────
    def apply_schema(self) -> list[str]:
        """Bring schema and procedures to this program's version, safe from many processes at once; names what was applied."""
        ...

    def check_schema(self) -> list[str]:
        """Differences between the live schema and procedures and the package, one sentence each; empty: none."""
        ...

    def schema_version(self) -> int | None:
        """The version in the ledger; None when nothing is installed."""
        ...

    def schema_script(self) -> str:
        """Everything `apply_schema` would run, as a script a DBA can run (sqlcmd, or sqlite3)."""
        ...


__all__ = ["MAX_BYTES_PER_CALL", "MAX_JOBS_PER_CALL", "Pillar", "Session", "Store"]
