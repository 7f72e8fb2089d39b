"""Every metric chokaq exports: its name, kind, unit, labels, meaning, and which processes count it.

Dashboards, alerts and docs/metrics.md are written against these names: a change of one is a change of an interface. Durations are
seconds, sizes bytes.
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
    """The maintenance process that leads the fleet. Other workers do not show them: a sum over all is the fleet's figure."""
    APPLICATION = "application"
    """The process that holds the ChokaQ object: a web application's own registry; in a worker, handlers that enqueue."""


class Instrument(msgspec.Struct, frozen=True, kw_only=True):
    """One metric."""

    name: str
    """As Prometheus sees it."""
    kind: Kind
    unit: str
    """For people; a physical one stands in the name as well."""
    labels: tuple[str, ...]
    help: str
    sources: tuple[Source, ...]
    bounds: tuple[float, ...] = ()
    """Upper bounds of a histogram's buckets, without infinity."""
    largest: bool = False
    """Of a gauge that several processes of a worker write: the largest counts, not the sum."""

    @property
    def cells(self) -> int:
        """Numbers that one set of label values takes: of a histogram its buckets, the last one unbounded, and the sum."""
        return len(self.bounds) + 2 if self.kind is Kind.HISTOGRAM else 1


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
"""How long jobs wait; 5 s and 10 s are the limits that health and alarms are about."""
CALL_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""How long calls of the store take."""
BATCH_JOBS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
"""Jobs in one call, which carries at most a thousand."""
LAG_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""How late an event loop turns."""

MOST_ATTEMPTS = 20
"""The label `attempt` goes up to here; what is above becomes the overflow value."""

_CHILD, _MAINTENANCE, _SUPERVISOR = (Source.CHILD,), (Source.MAINTENANCE,), (Source.SUPERVISOR,)
_LEADER, _APPLICATION = (Source.LEADER,), (Source.APPLICATION,)
_STORE = (Source.CHILD, Source.MAINTENANCE, Source.APPLICATION)
_JOB = ("queue", "type")


def _counter(name: str, unit: str, labels: tuple[str, ...], sources: tuple[Source, ...], text: str) -> Instrument:
    return Instrument(name=name, kind=Kind.COUNTER, unit=unit, labels=labels, help=text, sources=sources)


def _gauge(
    name: str, unit: str, labels: tuple[str, ...], sources: tuple[Source, ...], text: str, *, largest: bool = False
) -> Instrument:
    return Instrument(name=name, kind=Kind.GAUGE, unit=unit, labels=labels, help=text, sources=sources, largest=largest)


def _histogram(
    name: str, bounds: tuple[float, ...], labels: tuple[str, ...], sources: tuple[Source, ...], text: str
) -> Instrument:
    unit = "jobs" if bounds is BATCH_JOBS else "seconds"
    return Instrument(
        name=name, kind=Kind.HISTOGRAM, unit=unit, labels=labels, help=text, sources=sources, bounds=bounds
    )


CATALOGUE: Final[tuple[Instrument, ...]] = (
    # ── jobs ──────────────────────────────────────────────────────────────────────────────────────────────────────────
    _counter("chokaq_jobs_enqueued_total", "jobs", _JOB, _APPLICATION, "Jobs that an enqueue created."),
    _counter(
        "chokaq_jobs_duplicates_total", "jobs", _JOB, _APPLICATION,
        "Enqueues answered by the job that holds their idempotency key already.",
    ),
    _counter(
        "chokaq_jobs_refused_total", "jobs", (*_JOB, "error"), _APPLICATION,
        "Enqueues that raised, by the class of the error: before anything was stored, or since the store did not answer.",
    ),
    _histogram(
        "chokaq_enqueue_seconds", CALL_SECONDS, ("method",), _APPLICATION,
        "How long a call took; method: enqueue, enqueue_many, enqueue_in or enqueue_many_in. The last two are part of their "
        "caller's transaction: its commit is not in it.",
    ),
    _counter("chokaq_jobs_completed_total", "jobs", _JOB, _CHILD, "Jobs that succeeded and are archived."),
    _counter(
        "chokaq_jobs_failed_total", "executions", (*_JOB, "error"), (Source.CHILD, Source.MAINTENANCE),
        "Executions that failed, whether another attempt follows or not, by the class of the error. Cancellations are not among "
        "them; a crash after which the job waits again is in chokaq_rescued_jobs_total alone.",
    ),
    _counter(
        "chokaq_jobs_retried_total", "executions", (*_JOB, "attempt"), _CHILD,
        "Failed executions after which the job returned to Pending; attempt: the number of the one that failed, up to "
        f"{MOST_ATTEMPTS}.",
    ),
    _counter(
        "chokaq_jobs_dlq_total", "jobs", (*_JOB, "reason"), (Source.CHILD, Source.MAINTENANCE, Source.LEADER),
        "Jobs that came into the DLQ, whoever moved them: a child, the rescue, an operator; reason: why they stopped, as the store "
        "names it (FatalError, Timeout, Zombie, …).",
    ),
    _counter(
        "chokaq_jobs_released_total", "jobs", (*_JOB, "cause"), _CHILD,
        "Jobs that a child handed back uncharged; cause: circuit, snooze, unknown_type or returned (shutdown, a full buffer).",
    ),
    _histogram(
        "chokaq_jobs_processing_seconds", RUN_SECONDS, _JOB, _CHILD, "How long handlers ran, whatever came of it."
    ),
    _histogram(
        "chokaq_jobs_queue_lag_seconds", WAIT_SECONDS, _JOB, _CHILD,
        "From the moment a job was due until its handler began.",
    ),
    _histogram(
        "chokaq_jobs_pickup_seconds", WAIT_SECONDS, ("queue",), _CHILD,
        "From the moment a job was due until a child had claimed it.",
    ),
    _histogram(
        "chokaq_jobs_settle_delay_seconds", CALL_SECONDS, ("queue",), _CHILD,
        "From the end of a handler until the store had answered its outcome.",
    ),
    _counter(
        "chokaq_jobs_heartbeat_failures_total", "renewals", _JOB, _CHILD,
        "Lease renewals that the store did not take, one per job and try; each is tried again.",
    ),
    _counter(
        "chokaq_jobs_state_transition_conflicts_total", "transitions", (*_JOB, "transition"), _CHILD,
        "Transitions that the store answered with `stale`, since the job was somebody else's by then; transition: the "
        "procedure's name.",
    ),
    _counter(
        "chokaq_jobs_lease_losses_total", "jobs", _JOB, _CHILD,
        "Jobs that a child took for its own and that were somebody else's by then, however it learnt of it; each counts once.",
    ),
    _counter(
        "chokaq_idempotency_claims_total", "claims", ("outcome",), _CHILD,
        "What became of idempotency keys; outcome: claimed, completed, completed_duplicate, in_progress_duplicate, released or "
        "complete_conflict.",
    ),
    _counter(
        "chokaq_circuits_events_total", "events", ("type", "state", "event"), _CHILD,
        "Events of circuit breakers; state: closed, open or half_open, as it is after the event.",
    ),
    # ── inside a child ────────────────────────────────────────────────────────────────────────────────────────────────
    _counter(
        "chokaq_lane_round_trips_total", "calls", ("queue", "lane", "call"), _CHILD,
        "Calls of the store that were answered, by lane (claim, settle, pulse) and procedure.",
    ),
    _histogram(
        "chokaq_lane_round_trip_seconds", CALL_SECONDS, ("lane", "call"), _CHILD,
        "How long those calls took, tries before them left out.",
    ),
    _histogram(
        "chokaq_lane_batch_jobs", BATCH_JOBS, ("lane", "call"), _CHILD,
        "Jobs that one call carried: claimed, started, settled or renewed. A call without any is left out.",
    ),
    _histogram(
        "chokaq_loop_lag_seconds", LAG_SECONDS, ("queue",), _CHILD,
        "How late the event loop of a child turned, looked at four times a second.",
    ),
    _gauge(
        "chokaq_child_running_jobs", "jobs", ("queue",), _CHILD,
        "Handlers at work, or being started, in the children of this worker.",
    ),
    _gauge(
        "chokaq_child_buffered_jobs", "jobs", ("queue",), _CHILD,
        "Jobs claimed and not started in the children of this worker.",
    ),
    _gauge(
        "chokaq_child_capacity", "jobs", ("queue",), _CHILD,
        "Handlers that the children of this worker may run at once, overrides included.",
    ),
    _gauge(
        "chokaq_child_memory_bytes", "bytes", ("queue",), _CHILD, "Resident memory of the largest child.", largest=True
    ),
    # ── the store, as the processes see it ────────────────────────────────────────────────────────────────────────────
    _counter(
        "chokaq_sql_errors_total", "errors", ("number",), _STORE,
        "Errors of the database, by its number, else the SQLSTATE; of SQLite the name of the code.",
    ),
    _counter(
        "chokaq_sql_retries_total", "calls", ("number",), _STORE, "Calls that were made again because of such an error."
    ),
    _counter(
        "chokaq_store_outage_seconds_total", "seconds", ("lane",), (Source.CHILD, Source.MAINTENANCE),
        "Time during which the store did not answer, by lane (claim, settle, pulse, maintenance), summed over processes.",
    ),
    # ── the worker ────────────────────────────────────────────────────────────────────────────────────────────────────
    _gauge(
        "chokaq_children", "processes", ("queue", "state"), _SUPERVISOR,
        "Children of this worker; state: wanted (configured) or ready (claiming).",
    ),
    _gauge(
        "chokaq_ready", "", (), _SUPERVISOR,
        "1 while every queue of this worker has a live child that reaches the store, else 0.",
    ),
    _counter(
        "chokaq_child_restarts_total", "processes", ("queue", "cause"), _SUPERVISOR,
        "Children that ended and are replaced; cause: crash, limit (the hard limit), stall, boot (never ready), retired, recycle, "
        "reload, rolling_restart or exit (drained, though not by its supervisor's word).",
    ),
    _counter(
        "chokaq_service_restarts_total", "processes", ("process", "cause"), _SUPERVISOR,
        "The same of the other processes of a worker (maintenance, web, probes); cause: crash, stall, boot, exit or reload.",
    ),
    _gauge(
        "chokaq_build_info", "", ("version", "python", "store"), _SUPERVISOR,
        "Always 1; the versions of chokaq and of Python, and the kind of store: sqlserver or sqlite.",
    ),
    _counter(
        "chokaq_metrics_overflows_total", "values", ("label",), _STORE,
        "How often a label value was replaced because its label had used up its budget (metrics.max_…).",
    ),
    # ── rescue and care ───────────────────────────────────────────────────────────────────────────────────────────────
    _counter(
        "chokaq_rescued_jobs_total", "jobs", ("queue", "operation", "outcome"), _MAINTENANCE,
        "Jobs taken from workers that had died or fallen silent; operation: ReleaseWorker, RecoverAbandoned or ArchiveZombies; "
        "outcome: pending, zombie, poison, failed or cancelled.",
    ),
    _counter(
        "chokaq_purged_rows_total", "rows", ("table",), _MAINTENANCE,
        "Rows deleted after their retention; table: archive, dlq or leftovers (keys, ended workers, old figures).",
    ),
    _counter(
        "chokaq_operator_actions_total", "actions", ("action",), _LEADER,
        "Entries of the audit log by action, one per job or queue: what was done through the CLI, The Deck or app.cancel.",
    ),
    # ── the fleet, by its leader ──────────────────────────────────────────────────────────────────────────────────────
    _gauge(
        "chokaq_leader", "", ("database",), _MAINTENANCE,
        "1 in the worker whose maintenance process leads the fleet, else 0; database: its name in chokaq.yaml, or main.",
    ),
    _gauge(
        "chokaq_workers_active", "processes", ("queue",), _LEADER,
        "Children in the whole fleet whose heartbeat is younger than a minute.",
    ),
    _gauge(
        "chokaq_queue_capacity", "jobs", ("queue",), _LEADER,
        "Handlers that those children may run at once: what they registered with, or an operator's override; the fleet-wide cap "
        "where an operator has set a lower one.",
    ),
    _gauge(
        "chokaq_queue_jobs", "jobs", ("queue", "state"), _LEADER,
        "Jobs in Hot; state: pending (due), scheduled (due later), fetched or processing. Counts stop at 100,000.",
    ),
    _gauge(
        "chokaq_queue_lag_seconds", "seconds", ("queue",), _LEADER,
        "How long the oldest due job has waited; 0 when none waits, and while the queue is paused or inactive.",
    ),
    _gauge(
        "chokaq_queue_oldest_due_seconds", "seconds", ("queue",), _LEADER,
        "How long the oldest due job has waited, in paused queues, too; absent when none waits.",
    ),
    _gauge(
        "chokaq_queue_oldest_running_seconds", "seconds", ("queue",), _LEADER,
        "For how long the job that has run longest has been running; absent when none runs.",
    ),
    _gauge("chokaq_queue_paused", "", ("queue",), _LEADER, "1 while the queue is paused or inactive, else 0."),
)  # fmt: skip

BY_NAME: Final = {instrument.name: instrument for instrument in CATALOGUE}
