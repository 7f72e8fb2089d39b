"""The typed settings of a worker: what chokaq.yaml means once it is read, checked and completed with defaults.

Durations are seconds (float), sizes are bytes. The defaults here are the documented ones; chokaq.config.load overlays the YAML.
"""

from pathlib import Path
from typing import Literal

import msgspec

from chokaq.observe.metrics.options import MetricsSettings
from chokaq.store.options import DatabaseSettings

MAIN = "main"
"""The name of the database that a queue without a `database:` of its own lives in, where one is called so; else it is the first."""
_LARGEST_BUFFER = 500
"""Half of what one call may carry: larger sets gain nothing, and a death would leave more to hand back."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How one job is run and what becomes of its failures (design §8). Settable for all, per queue and per type."""

    max_attempts: int = 3
    """Executions started, crashes included, before a job is exhausted."""
    retry_base_delay: float = 3.0
    """Delay before the first retry; each further one is retry_multiplier times longer."""
    retry_max_delay: float = 3600.0
    """Hard ceiling of a retry delay, jitter included."""
    retry_multiplier: float = 2.0
    """How much longer each retry delay is than the one before it."""
    retry_jitter: float = 1.0
    """A retry delay gets up to this much on top, inside the ceiling."""
    max_job_age: float | None = 86_400.0
    """A job that would be due later than this after its first due time stops (RetryLifetimeExpired). None: no limit."""
    execution_timeout: float | None = 900.0
    """A handler running longer is cancelled. None: no limit."""
    on_timeout: Literal["dead_letter", "retry"] = "dead_letter"
    """What becomes of a job whose handler ran into execution_timeout: `dead_letter` or `retry`."""
    hard_limit_grace: float = 30.0
    """A handler that ignores its cancellation for this long costs its child process."""
    on_crash: Literal["dead_letter", "retry"] = "dead_letter"
    """What becomes of a running job whose process died: `dead_letter` (as Zombie) or `retry`."""
    crash_limit: int = 3
    """A job whose process died unexpectedly this many times stops as Poison."""
    unknown_type_delay: float = 30.0
    """A job of a type this child does not know is handed back for that long (a rolling deploy)."""
    unknown_type_grace: float = 900.0
    """A job of an unknown type stops as FatalError once it has been due for that long."""
    circuit: bool = True
    """Whether failures open the circuit of a job type (one per type and child). False: only an operator can open it."""
    circuit_failures: int = 5
    """So many failures in a row (transient or throttled) open the circuit; fatal ones and timeouts do not count."""
    circuit_window: float = 60.0
    """Failures in a row count together when they lie within this time."""
    circuit_open: float = 30.0
    """An open circuit starts no job of its type for so long; then it tries one."""
    circuit_probes: int = 1
    """Jobs tried at most after that; when so many succeed the circuit closes, when one fails it opens again."""
    circuit_probe_timeout: float = 30.0
    """A tried job that has not ended by then makes room for the next one, which gets twice the time."""
    circuit_delay: float = 5.0
    """A job that an open circuit denies is due again after this, uncharged, within its max_job_age.

    Later when very many are denied: a child lets no more than a hundred of a type come back per second.
    """


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One queue of a worker: its processes, its concurrency, its limits."""

    name: str
    database: str | None = None
    """The database it lives in, one of `databases:`. None: the one called main, else the first.

    Moving a queue needs a restart, and moves none of its jobs.
    """
    max_workers: int = 50
    """Concurrent handlers inside one child: as many as its handlers may hold of what is scarce (connections, memory, threads)."""
    processes: int = 1
    """Child processes forked for this queue by one supervisor."""
    prefetch: int | None = None
    """Jobs a child may buffer beyond those running. 0: none.

    None: as many as max_workers, at least 20, and while jobs pass quickly what is started within a quarter of a second, at most
    500. Behind slow handlers a child buffers less: about what it starts within a second.
    """
    fleet_max_workers: int | None = None
    """Exact cap on leases held in this queue by all workers everywhere. None: no cap."""
    poll_min: float = 0.05
    """Idle polling begins at this interval and backs off, with jitter; the doorbell wakes it at once."""
    poll_max: float = 1.0
    """Idle polling backs off up to this interval."""
    heartbeat: float = 10.0
    """Leases are renewed this often."""
    heartbeat_failure_threshold: int = 10
    """So many renewals in a row that the store did not answer are reported, and may end the handlers (see below)."""
    cancel_on_heartbeat_failure: bool = False
    """True: at that many the running handlers are cancelled, and their jobs stop as HeartbeatFailure once the store answers."""
    fetched_timeout: float = 600.0
    """A buffered job whose lease was not renewed for this long returns to Pending."""
    zombie_timeout: float = 600.0
    """A running job whose lease was not renewed for this long: the crash policy applies."""
    stall_limit: float = 60.0
    """A child whose event loop has not turned for this long is killed."""
    max_jobs: int | None = None
    """Recycle a child after that many jobs."""
    max_memory: int | None = None
    """Recycle a child whose resident memory exceeds this (bytes)."""
    archive_retention: float | None = 7 * 86_400.0
    """Archive rows are deleted after this. None: never."""
    dlq_retention: float | None = None
    """DLQ rows are deleted after this. None: kept until someone says otherwise."""
    policy: Policy = Policy()
    """The policy of the queue's jobs: in the YAML its fields stand beside the ones above."""

    @property
    def buffer_size(self) -> int:
        """Jobs a child may hold beyond those running, to begin with."""
        return max(20, min(_LARGEST_BUFFER, self.max_workers)) if self.prefetch is None else self.prefetch

    @property
    def largest_buffer(self) -> int:
        """Jobs a child may hold beyond those running while they pass quickly."""
        return _LARGEST_BUFFER if self.prefetch is None else self.prefetch


class MaintenanceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The maintenance process."""

    rescue_interval: float = 60.0
    """The leader looks for abandoned and zombie jobs this often."""
    retention_interval: float = 300.0
    """What is past its retention is deleted this often, by the maintenance of every supervisor for its own queues."""
    rollup_interval: float = 60.0
    """The leader folds per-second figures into minutes and totals this often."""
    batch_size: int = 1_000
    """Rows deleted in one call."""


class SupervisorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The parent process."""

    shutdown_grace: float = 30.0
    """Whole budget of a drain: 5 s before its end handlers are cancelled, at its end what is left is killed."""
    respawn_min: float = 0.5
    """A child that died is replaced after this delay, which doubles with every death in a row, with jitter."""
    respawn_max: float = 30.0
    """The delay before a replacement doubles up to this."""
    boot_timeout: float = 60.0
    """A booting child that has taken no step for this long (import, connection, warm-up) is killed: a boot failure."""


class EnvelopeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of what may be enqueued."""

    max_payload_bytes: int = 1_000_000
    """A larger payload is refused at enqueue."""


class IdempotencySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The idempotency middleware (chokaq.idempotent), where the code that uses it does not say otherwise."""

    in_progress_ttl: float = 1_800.0
    """A run that was lost with its process keeps other jobs of its key away for this long; while it lives it is renewed."""
    result_ttl: float | None = 7 * 86_400.0
    """A completed run is remembered for this long: until then its duplicates are skipped. None: for ever."""
    min_result_ttl: float | None = None
    """Least time that code may ask a completed run to be remembered. None: no bound."""
    max_result_ttl: float | None = None
    """Most time that code may ask a completed run to be remembered. None: no bound."""
    busy_delay: float = 15.0
    """A duplicate of an unfinished run is put off for about this long, uncharged, again and again within max_job_age."""


class TracingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Spans for OpenTelemetry (extra `chokaq[otel]`)."""

    enabled: bool = False
    """Whether enqueues and executions are recorded as spans, and the trace context travels in a job's headers."""
    relation: Literal["link", "child"] = "link"
    """How an execution's span refers to its enqueue's: `link` (each attempt is a trace of its own) or `child` (of that span)."""


class DeckUser(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who may sign in to The Deck."""

    password_hash: str
    """An argon2 hash, as `chokaq deck --hash-password` prints it. Never the password. Holds secrets: never printed as it is."""
    role: Literal["viewer", "operator"] = "viewer"
    """`viewer`: looks at everything; `operator`: changes it, too."""


class DeckSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The Deck, the web dashboard (extra `chokaq[deck]`)."""

    enabled: bool = False
    """Whether `chokaq worker` runs The Deck in a process of its own. `chokaq deck` runs it alone, whatever stands here."""
    host: str = "127.0.0.1"
    """The address it listens on. One beyond loopback needs users, a token or a proxy's header."""
    port: int = 8420
    """The port it listens on; 0: a free one, which is logged."""
    database: str | None = None
    """Of several databases the only one to show. None: all, each with a Deck of its own and a switch in the header."""
    title: str = "chokaq"
    """Stands in the header of every page, so that several Decks can be told apart."""
    users: dict[str, DeckUser] = {}
    """Who may sign in, by name. Nobody, and no token and no header either: everybody on this host is an operator."""
    token: str | None = None
    """A bearer token for automation, of 32 characters or more. Holds secrets: never printed as it is."""
    token_role: Literal["viewer", "operator"] = "viewer"
    """What the bearer of the token may do."""
    proxy_header: str | None = None
    """Name of the header in which a trusted proxy says who somebody is, e.g. X-Forwarded-User."""
    proxy_peers: tuple[str, ...] = ("127.0.0.1", "::1")
    """Addresses or networks that proxy_header is believed from; from any other it is refused."""
    proxy_operators: tuple[str, ...] = ()
    """Who of those a proxy names is an operator; the others are viewers."""
    secret: str | None = None
    """Signs sessions, 32 characters or more; the same for all replicas. None: a new one at every start, which signs everybody out.
    Holds secrets: never printed as it is."""
    session: float = 12 * 3_600.0
    """A sign-in lasts for this long."""
    origins: tuple[str, ...] = ()
    """Further origins it is reached under (`https://deck.example.com`), where a proxy changes the Host header."""
    lag_warning: float = 5.0
    """A queue whose oldest due job waits for this long is shown as a warning."""
    lag_critical: float = 10.0
    """… and as critical."""

    @property
    def has_authentication(self) -> bool:
        """Whether anybody has to say who they are."""
        return bool(self.users) or self.token is not None or self.proxy_header is not None


class ProbesSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker answers to probes (/livez, /readyz, /healthz) and to Prometheus (/metrics)."""

    host: str = "127.0.0.1"
    """The address it listens on; 0.0.0.0 (or ::) for a kubelet or a Prometheus. Nobody has to sign in: it tells no job data."""
    port: int | None = None
    """The port it listens on; 0: a free one, which is logged. None: no probes."""
    supervisor_timeout: float = 15.0
    """A supervisor that has not looked after its children for this long is not live (it looks every second)."""
    heartbeat_timeout: float = 30.0
    """A child whose event loop has not turned for this long takes no work (it turns several times a second)."""
    loop_stalled: float = 5.0
    """… and for this long is told of: degraded."""
    database_timeout: float = 2.0
    """A database that has not answered the question of /healthz for this long is unhealthy; nobody waits longer for the answer."""
    lag_degraded: float | None = 5.0
    """A queue of this worker whose oldest due job waits for longer is degraded, unless paused or inactive. None: never."""
    lag_unhealthy: float | None = 10.0
    """… and for longer than this is unhealthy. None: never."""
    lag_exempt: tuple[str, ...] = ()
    """Queues whose lag is told and not judged: those that are meant to wait."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a worker, a client or a command needs to know."""

    app: str | None = None
    """`package.module:attribute` of the ChokaQ application object."""
    database: DatabaseSettings = DatabaseSettings()
    """Where the jobs live; of several databases the default one, or the one that `at` chose."""
    databases: dict[str, DatabaseSettings] = {}
    """The databases by name, when the YAML names them (`databases:` instead of `database:`); a queue lives in one of them."""
    places: dict[str, str] = {}
    """Queue → the name of its database, for every queue of the YAML, also those that this worker does not serve. Empty: no
    `databases:` are named."""
    production: bool = False
    """True refuses SQLite and asks twice before destruction."""
    queues: dict[str, QueueSettings] = {}
    """The queues a worker serves, by name. Empty: every queue the application uses (chokaq.config.settings_for_app)."""
    defaults: Policy = Policy()
    """The policy where neither the queue nor the type says otherwise."""
    queue_defaults: dict[str, object] = {}
    """The QueueSettings fields given under `defaults:`, already checked: what a queue that names none of them gets."""
    types: dict[str, dict[str, object]] = {}
    """Per type key (lower case): the Policy fields that differ, already checked."""
    registered: dict[str, dict[str, object]] = {}
    """Per type key (lower case): the Policy fields that the application's code gives it; `types` wins over them.

    Only a worker's supervisor and maintenance need them: whoever has the application at hand asks it.
    """
    supervisor: SupervisorSettings = SupervisorSettings()
    """The parent process."""
    maintenance: MaintenanceSettings = MaintenanceSettings()
    """The maintenance process."""
    envelope: EnvelopeSettings = EnvelopeSettings()
    """Limits of what may be enqueued."""
    idempotency: IdempotencySettings = IdempotencySettings()
    """The idempotency middleware."""
    metrics: MetricsSettings = MetricsSettings()
    """What is counted for Prometheus."""
    deck: DeckSettings = DeckSettings()
    """The web dashboard."""
    tracing: TracingSettings = TracingSettings()
    """Spans of enqueues and executions."""
    probes: ProbesSettings = ProbesSettings()
    """What a worker answers to probes."""
    redact: tuple[str, ...] = ()
    """Regular expressions of secrets: what they match in a handler's errors becomes *** before it is stored, and in every log
    line. (Passwords in URLs and connection strings always do.)"""
    log_level: str = "info"
    """Least level that is logged."""
    log_format: Literal["console", "json"] = "console"
    """`console` for people, `json` for machines: one line per event, on stderr."""
    log_repeats: int | None = 20
    """So many lines a minute of one event that are alike are written; one more tells how many there were. None: all are written."""
    source: Path | None = None
    """The YAML file these settings came from."""

    @property
    def several(self) -> bool:
        """True when there is more than one database."""
        return len(self.databases) > 1

    @property
    def named_databases(self) -> dict[str, DatabaseSettings]:
        """Every database by its name, in the order of the YAML; the only one of `database:` is called main."""
        return self.databases or {MAIN: self.database}

    @property
    def default_database(self) -> str:
        """The name of the database of queues that name none."""
        return MAIN if MAIN in self.databases or not self.databases else next(iter(self.databases))

    @property
    def here(self) -> str:
        """The name of `database`."""
        return next((name for name, one in self.databases.items() if one == self.database), self.default_database)

    def database_name(self, queue: str) -> str:
        """The name of the database that a queue lives in."""
        return self.places.get(queue) or self.default_database

    def database_of(self, queue: str) -> DatabaseSettings:
        """The database that a queue lives in."""
        return self.databases[self.database_name(queue)] if self.databases else self.database

    def database_path(self, name: str) -> tuple[str, ...]:
        """Where a database stands in the YAML."""
        return ("databases", name) if self.databases else ("database",)

    def at(self, name: str) -> "Settings":
        """These settings for whoever works on one database alone: it is their `database`."""
        return msgspec.structs.replace(self, database=self.databases[name]) if self.databases else self

    def only(self, database: DatabaseSettings) -> "Settings":
        """These settings with one database for every queue, instead of those they name."""
        deck = msgspec.structs.replace(self.deck, database=None)
        return msgspec.structs.replace(self, database=database, databases={}, places={}, deck=deck)

    def queue(self, name: str) -> QueueSettings:
        """The settings of a queue: its own, or what `defaults:` make of one that the YAML does not name."""
        own = self.queues.get(name)
        if own is not None:
            return own
        return msgspec.structs.replace(QueueSettings(name=name, policy=self.defaults), **self.queue_defaults)

    def policy(self, queue: str, type_key: str) -> Policy:
        """The policy of a type in a queue: the type's own fields, here and in code, over the queue's over the defaults."""
        settings = self.queues.get(queue)
        base = settings.policy if settings is not None else self.defaults
        own = {**self.registered.get(type_key.lower(), {}), **self.types.get(type_key.lower(), {})}
        return msgspec.structs.replace(base, **own) if own else base
