"""Every metric chokaq exports: its name, kind, unit, labels, meaning, and which processes count it.

Dashboards, alerts and docs/metrics.md are written against these names; a change of one is a change of an interface. Durations are
seconds, sizes bytes. A metric without a sample yet is exported all the same when its labels are known beforehand.
"""

from enum import StrEnum
from typing import Final

import msgspec


class Kind(StrEnum):
    """What a metric is to Prometheus."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Source(StrEnum):
    """Where the samples come from."""

    CHILD = "child"
    """The children of a queue; summed over those that live and those that have ended."""
    MAINTENANCE = "maintenance"
    """The maintenance process of each worker."""
    SUPERVISOR = "supervisor"
    """The parent process of each worker."""
    LEADER = "leader"
    """The maintenance process that leads the fleet; absent everywhere else, so that a sum over all workers is the fleet's figure."""
    APPLICATION = "application"
    """The process that holds the ChokaQ object: a web application's own registry; in a worker, handlers that enqueue."""


class Instrument(msgspec.Struct, frozen=True, kw_only=True):
    """One metric."""

    name: str
    """As Prometheus sees it."""
    kind: Kind
    unit: str
    """`jobs`, `seconds`, `bytes`, … for people; stands in the name where it is a physical one."""
    labels: tuple[str, ...] = ()
    help: str
    sources: tuple[Source, ...]
    buckets: tuple[float, ...] = ()
    """Upper bounds of a histogram, without infinity."""
    merge: str = "sum"
    """Of gauges: `sum` or `max` over the processes of a worker."""


RUN_SECONDS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
    900.0,
    3600.0,
)
"""How long handlers run: from a millisecond to an hour."""
WAIT_SECONDS = (
    0.001,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
    900.0,
    3600.0,
    14400.0,
)
"""How long jobs wait; 5 s and 10 s are the limits of the SLO and of the alarm."""
CALL_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""How long calls of the store take."""
BATCH_JOBS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
"""Jobs in one call; a call carries at most a thousand."""
LAG_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""How late an event loop turns."""

_ENDED = "why it stopped: a FailureReason by name, like `FatalError`"

CATALOGUE: Final[tuple[Instrument, ...]] = (
    # ── jobs ──────────────────────────────────────────────────────────────────────────────────────────────────────────
    Instrument(
        name="chokaq_jobs_enqueued_total",
        kind=Kind.COUNTER,
        unit="jobs",
        labels=("queue", "type"),
        help="Jobs that an enqueue created.",
        sources=(Source.APPLICATION,),
    ),
    Instrument(
        name="chokaq_jobs_duplicates_total",
        kind=Kind.COUNTER,
        unit="jobs",
        labels=("queue", "type"),
        help="Enqueues answered by the job that holds their idempotency key already.",
        sources=(Source.APPLICATION,),
    ),
    Instrument(
        name="chokaq_jobs_refused_total",
        kind=Kind.COUNTER,
        unit="jobs",
        labels=("queue", "type", "error"),
        help="Enqueues that raised, by the class of the error: before anything was stored, or since the store did not answer.",
        sources=(Source.APPLICATION,),
    ),
    Instrument(
        name="chokaq_enqueue_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        labels=("method",),
        help="How long a call of enqueue, enqueue_many, enqueue_in or enqueue_many_in took, commit included except for `_in`.",
        sources=(Source.APPLICATION,),
        buckets=CALL_SECONDS,
    ),
    Instrument(
        name="chokaq_jobs_completed_total",
        kind=Kind.COUNTER,
        unit="jobs",
        labels=("queue", "type"),
        help="Jobs that succeeded and are archived.",
        sources=(Source.CHILD,),
    ),
    Instrument(
        name="chokaq_jobs_failed_total",
        kind=Kind.COUNTER,
        unit="executions",
        labels=("queue", "type", "error"),
        help="Executions that failed, whether another attempt follows or not, by the class of the error; cancellations are none.",
        sources=(Source.CHILD, Source.MAINTENANCE),
    ),
    Instrument(
        name="chokaq_jobs_retried_total",
        kind=Kind.COUNTER,
        unit="executions",
        labels=("queue", "type", "attempt"),
        help="Failed executions after which the job returned to Pending; attempt: the number of the one that failed, up to 20.",
        sources=(Source.CHILD,),
    ),
    Instrument(
        name="chokaq_jobs_dlq_total",
        kind=Kind.COUNTER,
        unit="jobs",
        labels=("queue", "type", "reason"),
        help=f"Jobs that came into the DLQ, whoever moved them (a child, the rescue, an operator); reason: {_ENDED}.",
        sources=(Source.CHILD, Source.MAINTENANCE, Source.LEADER),
    ),
    Instrument(
        name="chokaq_jobs_released_total",
        kind=Kind.COUNTER,
        unit="jobs",
        labels=("queue", "type", "cause"),
        help="Jobs a child handed back uncharged; cause: circuit, snooze, unknown_type or returned (shutdown, full buffer).",
        sources=(Source.CHILD,),
    ),
    Instrument(
        name="chokaq_jobs_processing_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        labels=("queue", "type"),
        help="How long handlers ran, whatever came of it.",
        sources=(Source.CHILD,),
        buckets=RUN_SECONDS,
    ),
    Instrument(
        name="chokaq_jobs_queue_lag_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        labels=("queue", "type"),
        help="From the moment a job was due until its handler began.",
        sources=(Source.CHILD,),
        buckets=WAIT_SECONDS,
    ),
    Instrument(
        name="chokaq_jobs_pickup_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        labels=("queue",),
        help="From the moment a job was due until a child had claimed it.",
        sources=(Source.CHILD,),
        buckets=WAIT_SECONDS,
    ),
    Instrument(
        name="chokaq_jobs_settle_delay_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        labels=("queue",),
        help="From the end of a handler until the store had answered its outcome.",
        sources=(Source.CHILD,),
        buckets=CALL_SECONDS,
    ),
    Instrument(
        name="chokaq_jobs_heartbeat_failures_total",
        kind=Kind.COUNTER,
        unit="renewals",
        labels=("queue", "type"),
        help="Lease renewals that the store did not take, one per job and try; each is tried again.",
        sources=(Source.CHILD,),
    ),
    Instrument(
        name="chokaq_jobs_state_transition_conflicts_total",
        kind=Kind.COUNTER,
        unit="transitions",
        labels=("queue", "type", "transition"),
        help="Transitions the store answered `stale`, since the job was somebody else's by then; transition: the procedure's name.",
        sources=(Source.CHILD,),
    ),
    Instrument(
        name="chokaq_jobs_lease_losses_total",
        kind=Kind.COUNTER,
        unit="jobs",
        labels=("queue", "type"),
        help="Jobs a child held, or took to be its own, that turned out to be somebody else's, however it was learnt.",
        sources=(Source.CHILD,),
    ),
    Instrument(
        name="chokaq_idempotency_claims_total",
        kind=Kind.COUNTER,
        unit="claims",
        labels=("outcome",),
        help="What became of idempotency keys: claimed, completed, completed_duplicate, in_progress_duplicate, released, "
        "complete_conflict.",
        sources=(Source.CHILD,),
    ),
    Instrument(
        name="chokaq_circuits_events_total",
        kind=Kind.COUNTER,
        unit="events",
        labels=("type", "state", "event"),
        help="Events of circuit breakers; state: closed, open or half_open, after the event.",
        sources=(Source.CHILD,),
    ),
    # ── inside a child ────────────────────────────────────────────────────────────────────────────────────────────────
    Instrument(
        name="chokaq_lane_round_trips_total",
        kind=Kind.COUNTER,
        unit="calls",
        labels=("queue", "lane", "call"),
        help="Calls of the store that were answered, by lane (claim, settle, pulse) and operation; repeats count one by one.",
        sources=(Source.CHILD,),
    ),
    Instrument(
        name="chokaq_lane_round_trip_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        labels=("lane", "call"),
        help="How long those calls took, each try by itself.",
        sources=(Source.CHILD,),
        buckets=CALL_SECONDS,
    ),
    Instrument(
        name="chokaq_lane_batch_jobs",
        kind=Kind.HISTOGRAM,
        unit="jobs",
        labels=("lane", "call"),
        help="Jobs one call carried: claimed, started, settled or renewed. A fetch that found nothing is left out.",
        sources=(Source.CHILD,),
        buckets=BATCH_JOBS,
    ),
    Instrument(
        name="chokaq_loop_lag_seconds",
        kind=Kind.HISTOGRAM,
        unit="seconds",
        labels=("queue",),
        help="How late the event loop of a child turned, looked at four times a second.",
        sources=(Source.CHILD,),
        buckets=LAG_SECONDS,
    ),
    Instrument(
        name="chokaq_child_running_jobs",
        kind=Kind.GAUGE,
        unit="jobs",
        labels=("queue",),
        help="Handlers at work, or being started, in the children of this worker.",
        sources=(Source.CHILD,),
    ),
    Instrument(
        name="chokaq_child_buffered_jobs",
        kind=Kind.GAUGE,
        unit="jobs",
        labels=("queue",),
        help="Jobs claimed and not started in the children of this worker.",
        sources=(Source.CHILD,),
    ),
    Instrument(
        name="chokaq_child_capacity",
        kind=Kind.GAUGE,
        unit="jobs",
        labels=("queue",),
        help="Handlers the children of this worker may run at once, overrides included.",
        sources=(Source.CHILD,),
    ),
    Instrument(
        name="chokaq_child_memory_bytes",
        kind=Kind.GAUGE,
        unit="bytes",
        labels=("queue",),
        help="Resident memory of the largest child.",
        sources=(Source.CHILD,),
        merge="max",
    ),
    # ── the store, as this worker sees it ─────────────────────────────────────────────────────────────────────────────
    Instrument(
        name="chokaq_sql_errors_total",
        kind=Kind.COUNTER,
        unit="errors",
        labels=("number",),
        help="Errors of the database, by its error number (SQLite: the name of the code; `none`: it told no number).",
        sources=(Source.CHILD, Source.MAINTENANCE, Source.APPLICATION),
    ),
    Instrument(
        name="chokaq_sql_retries_total",
        kind=Kind.COUNTER,
        unit="calls",
        labels=("number",),
        help="Calls made again because of such an error.",
        sources=(Source.CHILD, Source.MAINTENANCE, Source.APPLICATION),
    ),
    Instrument(
        name="chokaq_store_outage_seconds_total",
        kind=Kind.COUNTER,
        unit="seconds",
        labels=("lane",),
        help="Time during which the store did not answer, by lane (claim, settle, pulse, maintenance), summed over processes.",
        sources=(Source.CHILD, Source.MAINTENANCE),
    ),
    # ── the worker ────────────────────────────────────────────────────────────────────────────────────────────────────
    Instrument(
        name="chokaq_children",
        kind=Kind.GAUGE,
        unit="processes",
        labels=("queue", "state"),
        help="Children of this worker; state: wanted (configured) or ready (claiming).",
        sources=(Source.SUPERVISOR,),
    ),
    Instrument(
        name="chokaq_ready",
        kind=Kind.GAUGE,
        unit="",
        help="1 while every queue of this worker has a live child that reaches the store, else 0.",
        sources=(Source.SUPERVISOR,),
    ),
    Instrument(
        name="chokaq_child_restarts_total",
        kind=Kind.COUNTER,
        unit="processes",
        labels=("queue", "cause"),
        help="Children that ended and were, or are to be, replaced; cause: crash, limit (hard limit), stall, boot (before it was "
        "ready), retired, recycle, reload, rolling_restart or exit (drained by somebody else's signal).",
        sources=(Source.SUPERVISOR,),
    ),
    Instrument(
        name="chokaq_service_restarts_total",
        kind=Kind.COUNTER,
        unit="processes",
        labels=("process", "cause"),
        help="The same of the worker's other processes (maintenance, web); cause: crash, stall, boot or reload.",
        sources=(Source.SUPERVISOR,),
    ),
    Instrument(
        name="chokaq_build_info",
        kind=Kind.GAUGE,
        unit="",
        labels=("version", "python", "store"),
        help="Always 1; the version of chokaq, of Python, and the kind of store (sqlserver or sqlite).",
        sources=(Source.SUPERVISOR, Source.APPLICATION),
        merge="max",
    ),
    Instrument(
        name="chokaq_metrics_overflows_total",
        kind=Kind.COUNTER,
        unit="values",
        labels=("label",),
        help="Label values that became `other` because the label had used up its budget (metrics.max_…).",
        sources=(Source.CHILD, Source.MAINTENANCE, Source.APPLICATION),
    ),
    # ── rescue and care ───────────────────────────────────────────────────────────────────────────────────────────────
    Instrument(
        name="chokaq_rescued_jobs_total",
        kind=Kind.COUNTER,
        unit="jobs",
        labels=("queue", "operation", "outcome"),
        help="Jobs taken from workers that had died or fallen silent; operation: ReleaseWorker, RecoverAbandoned or ArchiveZombies; "
        "outcome: pending, zombie, poison, failed or cancelled.",
        sources=(Source.MAINTENANCE,),
    ),
    Instrument(
        name="chokaq_purged_rows_total",
        kind=Kind.COUNTER,
        unit="rows",
        labels=("table",),
        help="Rows deleted after their retention; table: archive, dlq or leftovers (keys, ended workers, old figures).",
        sources=(Source.MAINTENANCE,),
    ),
    Instrument(
        name="chokaq_operator_actions_total",
        kind=Kind.COUNTER,
        unit="actions",
        labels=("action",),
        help="Entries of the audit log, by action: what operators did by any way (CLI, The Deck, app.cancel), one per job or queue.",
        sources=(Source.LEADER,),
    ),
    # ── the fleet, by its leader ──────────────────────────────────────────────────────────────────────────────────────
    Instrument(
        name="chokaq_leader",
        kind=Kind.GAUGE,
        unit="",
        help="1 in the worker whose maintenance process leads the fleet, else 0.",
        sources=(Source.MAINTENANCE,),
    ),
    Instrument(
        name="chokaq_workers_active",
        kind=Kind.GAUGE,
        unit="processes",
        labels=("queue",),
        help="Children in the whole fleet whose heartbeat is younger than a minute.",
        sources=(Source.LEADER,),
    ),
    Instrument(
        name="chokaq_queue_capacity",
        kind=Kind.GAUGE,
        unit="jobs",
        labels=("queue",),
        help="Handlers those children may run at once, by what they registered with, or the operators' override; the fleet-wide cap "
        "where it is lower.",
        sources=(Source.LEADER,),
    ),
    Instrument(
        name="chokaq_queue_jobs",
        kind=Kind.GAUGE,
        unit="jobs",
        labels=("queue", "state"),
        help="Jobs in Hot; state: pending (due), scheduled (due later), fetched or processing. Counting stops at 100,000 per state.",
        sources=(Source.LEADER,),
    ),
    Instrument(
        name="chokaq_queue_lag_seconds",
        kind=Kind.GAUGE,
        unit="seconds",
        labels=("queue",),
        help="How long the oldest due job has been waiting; 0 when none waits, and while the queue is paused or inactive.",
        sources=(Source.LEADER,),
    ),
    Instrument(
        name="chokaq_queue_oldest_due_seconds",
        kind=Kind.GAUGE,
        unit="seconds",
        labels=("queue",),
        help="How long the oldest due job has been waiting, in paused queues as well; absent when none waits.",
        sources=(Source.LEADER,),
    ),
    Instrument(
        name="chokaq_queue_oldest_running_seconds",
        kind=Kind.GAUGE,
        unit="seconds",
        labels=("queue",),
        help="How long the job that has run longest has been running; absent when none runs.",
        sources=(Source.LEADER,),
    ),
    Instrument(
        name="chokaq_queue_paused",
        kind=Kind.GAUGE,
        unit="",
        labels=("queue",),
        help="1 while the queue is paused or inactive, else 0.",
        sources=(Source.LEADER,),
    ),
)

BY_NAME: Final = {instrument.name: instrument for instrument in CATALOGUE}
