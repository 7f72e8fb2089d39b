"""What the dashboard shows, row by row. Every panel says in its description what it is for; alerts stand in deploy/prometheus."""

from collections.abc import Sequence

from tools.dashboard.panels import DEAD, GREEN, LAG, RED, YELLOW, Panel, heat, lines, stat, table
from tools.dashboard.queries import JOB, QUEUE, SPACE, per_second, quantile, quantiles, share_within

Row = tuple[str, Sequence[tuple[int, int, Panel]]]
"""A title, and panels with their width and height on the grid."""

_DEAD = f"sum(increase(chokaq_jobs_dlq_total{{{QUEUE}, reason!=\"Cancelled\"}}[5m]))"
_ENDED = f"({_DEAD} + sum(increase(chokaq_jobs_completed_total{{{QUEUE}}}[5m])))"
_DEAD_BY = f"sum by (queue) (rate(chokaq_jobs_dlq_total{{{QUEUE}, reason!=\"Cancelled\"}}[$__rate_interval]))"
_DONE_BY = f"sum by (queue) (rate(chokaq_jobs_completed_total{{{QUEUE}}}[$__rate_interval]))"


def _most(metric: str, more: str = "") -> str:
    """By queue; two workers may tell the same while the lead changes hands."""
    return f"max by (queue) ({metric}{{{QUEUE}{more}}})"


def _depth(state: str) -> str:
    return _most("chokaq_queue_jobs", f', state="{state}"')


ROWS: Sequence[Row] = (
    (
        "Overview",
        (
            (4, 4, stat("Workers ready", "Workers whose queues all have a live child that reaches the database.",
                f"sum(chokaq_ready{{{JOB}}})", unit="none", steps=((None, RED), (1, GREEN)))),
            (4, 4, stat("Longest wait", "How long the oldest due job waits. Paused queues do not count.",
                f"max(chokaq_queue_lag_seconds{{{QUEUE}}})", unit="s", steps=LAG, decimals=1)),
            (4, 4, stat("Due jobs", "Jobs that could start now. The counts of a queue stop at 100,000.",
                f"sum({_depth('pending')})", unit="short")),
            (4, 4, stat("Completed", "Jobs that succeed, per second.",
                f"sum(rate(chokaq_jobs_completed_total{{{QUEUE}}}[5m]))", unit="ops", decimals=1)),
            (4, 4, stat("To the DLQ", "Of the jobs that ended within 5 minutes; the objective is below 0.1 %. Cancelled ones do not count.",
                f"{_DEAD} / ({_ENDED} > 0) or vector(0)", unit="percentunit", steps=DEAD, decimals=2)),
            (4, 4, stat("Alerts", "Alerts of chokaq that fire now.",
                'count(ALERTS{alertname=~"Chokaq.*", alertstate="firing", job=~"$job|"}) or vector(0)',
                unit="none", steps=((None, GREEN), (1, RED)))),
            (24, 8, table("Queues", "Each queue as the leader of the fleet sees it.",
                {
                    "Wait": _most("chokaq_queue_lag_seconds"),
                    "Due": _depth("pending"),
                    "Scheduled": _depth("scheduled"),
                    "Claimed": _depth("fetched"),
                    "Running": _depth("processing"),
                    "Capacity": _most("chokaq_queue_capacity"),
                    "Children": _most("chokaq_workers_active"),
                    "Paused": _most("chokaq_queue_paused"),
                    "Longest run": _most("chokaq_queue_oldest_running_seconds"),
                },
                by=("queue",), units={"Wait": "s", "Longest run": "s"})),
        ),
    ),
    (
        "Lag",
        (
            (12, 8, lines("Longest wait", "How long the oldest due job of each queue waits. The alert comes at 10 s for 5 minutes.",
                (_most("chokaq_queue_lag_seconds"), "{{queue}}"), unit="s", steps=LAG)),
            (12, 8, lines("Started within 5 s", "The objective is 99 %.",
                (share_within("chokaq_jobs_queue_lag_seconds", "5.0"), "{{queue}}"), unit="percentunit",
                steps=((None, RED), (0.99, GREEN)))),
            (12, 8, lines("Due until started", "How long jobs that start have waited.",
                *quantiles("chokaq_jobs_queue_lag_seconds"), unit="s")),
            (12, 8, lines("Due until claimed, p95", "The first part of it: until a child has the job in its buffer.",
                (quantile(0.95, "chokaq_jobs_pickup_seconds", "queue"), "{{queue}}"), unit="s")),
            (12, 8, lines("Jobs by state", "Due, scheduled for later, claimed and running. The counts of a queue stop at 100,000.",
                (f"sum by (state) (max by (queue, state) (chokaq_queue_jobs{{{QUEUE}}}))", "{{state}}"), unit="short", stacked=True)),
            (12, 8, lines("Oldest due job, paused queues too", "A queue that was forgotten keeps rising.",
                (_most("chokaq_queue_oldest_due_seconds"), "{{queue}}"), unit="s")),
        ),
    ),
    (
        "Throughput and failures",
        (
            (12, 8, lines("Enqueued", "By the applications that count their enqueues, whatever job they are scraped as.",
                (f"sum by (queue) (rate(chokaq_jobs_enqueued_total{{{SPACE}}}[$__rate_interval]))", "{{queue}}"),
                (f"sum by (queue) (rate(chokaq_jobs_duplicates_total{{{SPACE}}}[$__rate_interval]))", "{{queue}} duplicates"),
                unit="ops")),
            (12, 8, lines("Completed", "Jobs that succeed.", (per_second("chokaq_jobs_completed_total", "queue"), "{{queue}}"),
                unit="ops", stacked=True)),
            (12, 8, lines("To the DLQ by reason", "Whoever moved them: a child, the rescue, an operator.",
                (per_second("chokaq_jobs_dlq_total", "reason"), "{{reason}}"), unit="ops", stacked=True)),
            (12, 8, lines("Share to the DLQ", "Of the jobs that end. The objective is below 0.1 %, the alert comes at 1 % for 5 minutes.",
                (f"{_DEAD_BY} / (({_DEAD_BY} + {_DONE_BY}) > 0)", "{{queue}}"), unit="percentunit", steps=DEAD)),
            (12, 8, lines("Failed executions by error", "The ten most frequent, whether they are tried again or not.",
                (f"topk(10, {per_second('chokaq_jobs_failed_total', 'error')})", "{{error}}"), unit="ops", stacked=True)),
            (12, 8, lines("Refused enqueues", "Work that chokaq never saw, by the error that the application got.",
                (f"sum by (queue, error) (rate(chokaq_jobs_refused_total{{{SPACE}}}[$__rate_interval]))", "{{queue}} {{error}}"),
                unit="ops")),
            (12, 8, lines("Enqueue calls, p95", "How long the applications wait for them.",
                ('histogram_quantile(0.95, sum by (method, le) (rate(chokaq_enqueue_seconds_bucket{namespace=~"$namespace"}'
                 "[$__rate_interval])))", "{{method}}"), unit="s")),
            (12, 8, lines("Operators", "Entries of the audit log: what people, or app.cancel, did.",
                (f"sum by (action) (increase(chokaq_operator_actions_total{{{JOB}}}[$__rate_interval]))", "{{action}}"), unit="short")),
        ),
    ),
    (
        "Retries",
        (
            (8, 8, lines("Retried by attempt", "Executions after which the job waits for another; the number of the one that failed.",
                (per_second("chokaq_jobs_retried_total", "attempt"), "{{attempt}}"), unit="ops", stacked=True)),
            (8, 8, lines("Share of executions retried", "The first sign of a dependency that is unwell.",
                (f"{per_second('chokaq_jobs_retried_total', 'queue')} / "
                 f"({per_second('chokaq_jobs_processing_seconds_count', 'queue')} > 0)", "{{queue}}"), unit="percentunit")),
            (8, 8, lines("Handed back, by cause", "Uncharged: an open circuit, a snooze, an unknown type, a drain or a full buffer.",
                (per_second("chokaq_jobs_released_total", "cause"), "{{cause}}"), unit="ops", stacked=True)),
            (24, 7, lines("Idempotency keys", "What became of them.",
                (f"sum by (outcome) (rate(chokaq_idempotency_claims_total{{{JOB}}}[$__rate_interval]))", "{{outcome}}"), unit="ops")),
        ),
    ),
    (
        "Durations",
        (
            (12, 8, lines("Handlers", "How long they run, whatever comes of it.", *quantiles("chokaq_jobs_processing_seconds"), unit="s")),
            (12, 8, lines("Handlers, p95 by queue", "Which queue became slow.",
                (quantile(0.95, "chokaq_jobs_processing_seconds", "queue"), "{{queue}}"), unit="s")),
            (12, 8, lines("Handlers, p95 by type", "The ten slowest types.",
                (f"topk(10, {quantile(0.95, 'chokaq_jobs_processing_seconds', 'type')})", "{{type}}"), unit="s")),
            (12, 8, heat("Handlers, all", "Two humps are two kinds of jobs.",
                f"sum by (le) (increase(chokaq_jobs_processing_seconds_bucket{{{QUEUE}}}[$__rate_interval]))", unit="s")),
            (12, 8, lines("Longest running job", "By queue; a job that hangs keeps rising.",
                (_most("chokaq_queue_oldest_running_seconds"), "{{queue}}"), unit="s")),
            (12, 8, lines("Outcome until stored, p95", "From the end of a handler until the database has answered.",
                (quantile(0.95, "chokaq_jobs_settle_delay_seconds", "queue"), "{{queue}}"), unit="s")),
        ),
    ),
    (
        "Workers and restarts",
        (
            (8, 8, lines("Live children", "In the whole fleet, by their heartbeats in the database.",
                (_most("chokaq_workers_active"), "{{queue}}"), unit="none")),
            (8, 8, lines("Children not ready", "Wanted and not there, or not claiming yet.",
                (f'sum by (queue) (chokaq_children{{{QUEUE}, state="wanted"}}) '
                 f'- sum by (queue) (chokaq_children{{{QUEUE}, state="ready"}})', "{{queue}}"), unit="none",
                steps=((None, GREEN), (1, YELLOW)))),
            (8, 8, lines("Places taken", "Running handlers against what the children may run at once.",
                (f"sum by (queue) (chokaq_child_running_jobs{{{QUEUE}}}) / (sum by (queue) (chokaq_child_capacity{{{QUEUE}}}) > 0)",
                 "{{queue}}"), unit="percentunit")),
            (8, 8, lines("Child restarts by cause", "crash, stall, limit and boot are deaths; the others are as they should be.",
                (f"sum by (cause) (increase(chokaq_child_restarts_total{{{QUEUE}}}[$__rate_interval]))", "{{cause}}"), unit="short")),
            (8, 8, lines("Maintenance and web restarts", "Jobs run on without them.",
                (f"sum by (process, cause) (increase(chokaq_service_restarts_total{{{JOB}}}[$__rate_interval]))",
                 "{{process}} {{cause}}"), unit="short")),
            (8, 8, lines("Jobs rescued", "Taken from workers that had died or fallen silent.",
                (f"sum by (operation, outcome) (increase(chokaq_rescued_jobs_total{{{QUEUE}}}[$__rate_interval]))",
                 "{{operation}} {{outcome}}"), unit="short")),
            (8, 8, lines("Leases", "Renewals that failed, jobs lost to others, transitions refused as stale.",
                (f"sum(rate(chokaq_jobs_heartbeat_failures_total{{{QUEUE}}}[$__rate_interval]))", "renewals failed"),
                (f"sum(rate(chokaq_jobs_lease_losses_total{{{QUEUE}}}[$__rate_interval]))", "leases lost"),
                (f"sum by (transition) (rate(chokaq_jobs_state_transition_conflicts_total{{{QUEUE}}}[$__rate_interval]))",
                 "stale: {{transition}}"), unit="ops")),
            (8, 8, lines("Who leads", "The worker whose maintenance process leads the fleet.",
                (f"chokaq_leader{{{JOB}}} > 0", "{{instance}}"), unit="none")),
            (8, 8, table("Versions", "What runs where.", {"Workers": f"count by (version, python, store) (chokaq_build_info{{{JOB}}})"},
                by=("version", "python", "store"))),
        ),
    ),
    (
        "Store",
        (
            (12, 8, lines("Calls", "Round trips that were answered, by procedure.",
                (per_second("chokaq_lane_round_trips_total", "call"), "{{call}}"), unit="ops", stacked=True)),
            (12, 8, lines("Calls, p95", "How long one takes; tries that failed are left out.",
                ("histogram_quantile(0.95, sum by (call, le) "
                 f"(rate(chokaq_lane_round_trip_seconds_bucket{{{JOB}}}[$__rate_interval])))", "{{call}}"), unit="s")),
            (12, 8, lines("Jobs in one call", "On average; large sets are cheap.",
                (f"sum by (call) (rate(chokaq_lane_batch_jobs_sum{{{JOB}}}[$__rate_interval])) / "
                 f"(sum by (call) (rate(chokaq_lane_batch_jobs_count{{{JOB}}}[$__rate_interval])) > 0)", "{{call}}"), unit="short")),
            (12, 8, lines("Calls per completed job", "Idle polls are among them, so it rises when there is little to do.",
                (f"{per_second('chokaq_lane_round_trips_total', 'queue')} / ({_DONE_BY} > 0)", "{{queue}}"), unit="short")),
            (8, 8, lines("SQL errors", "By the database's number: 1205 is a deadlock, 1222 a lock timeout, 9002 a full log.",
                (f"sum by (number) (increase(chokaq_sql_errors_total{{{JOB}}}[$__rate_interval]))", "{{number}}"), unit="short")),
            (8, 8, lines("Calls made again", "Because of such an error.",
                (f"sum by (number) (increase(chokaq_sql_retries_total{{{JOB}}}[$__rate_interval]))", "{{number}}"), unit="short")),
            (8, 8, lines("Outage", "Seconds per second without an answer, by lane, summed over processes.",
                (f"sum by (lane) (rate(chokaq_store_outage_seconds_total{{{JOB}}}[$__rate_interval]))", "{{lane}}"), unit="none")),
            (24, 7, lines("Rows deleted after their retention", "By table.",
                (f"sum by (table) (rate(chokaq_purged_rows_total{{{JOB}}}[$__rate_interval]))", "{{table}}"), unit="ops")),
        ),
    ),
    (
        "Circuits",
        (
            (12, 8, lines("Events", "opened: a type's jobs failed in a row; closed: one succeeded again; forced: an operator's order.",
                (f"sum by (type, event) (increase(chokaq_circuits_events_total{{{JOB}}}[$__rate_interval]))", "{{type}} {{event}}"),
                unit="short")),
            (12, 8, lines("Jobs denied", "Put off, uncharged, while the circuit of their type is open.",
                (f'sum by (type) (rate(chokaq_jobs_released_total{{{QUEUE}, cause="circuit"}}[$__rate_interval]))', "{{type}}"),
                unit="ops")),
        ),
    ),
    (
        "Process health",
        (
            (8, 8, lines("Event loop, p99", "How late it turns. Above a second something blocks it.",
                (quantile(0.99, "chokaq_loop_lag_seconds", "queue"), "{{queue}}"), unit="s", steps=((None, GREEN), (1, RED)))),
            (8, 8, lines("Memory of the largest child", "max_memory recycles it.",
                (f"max by (queue) (chokaq_child_memory_bytes{{{QUEUE}}})", "{{queue}}"), unit="bytes")),
            (8, 8, lines("Buffered jobs", "Claimed and not started.",
                (f"sum by (queue) (chokaq_child_buffered_jobs{{{QUEUE}}})", "{{queue}}"), unit="short")),
            (12, 7, lines("Targets", "Workers that answer Prometheus, and those that do not.",
                (f"count by (job) (up{{{JOB}}} == 1)", "{{job}} up"), (f"count by (job) (up{{{JOB}}} == 0)", "{{job}} down"), unit="none")),
            (12, 7, lines("Label values merged", "Above 0: a label has more values than its budget, and alerts do not tell them apart.",
                (f"sum by (label) (chokaq_metrics_overflows_total{{{JOB}}})", "{{label}}"), unit="short")),
        ),
    ),
)  # fmt: skip
