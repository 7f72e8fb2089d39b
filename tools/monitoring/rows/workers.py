"""Processes: how many, how busy, how they end."""

from tools.monitoring.panels import GREEN, RED, YELLOW, lines, table
from tools.monitoring.queries import JOB, QUEUE, fleet, quantile, rate, ratio, rise, total

_WANTED, _READY = (f'{QUEUE}, state="{state}"' for state in ("wanted", "ready"))
_MISSING = f"{total('chokaq_children', 'queue', within=_WANTED)} - {total('chokaq_children', 'queue', within=_READY)}"

WORKERS = (
    (
        8,
        8,
        lines(
            "Live children",
            "In the whole fleet, by their heartbeats in the database.",
            (fleet("chokaq_workers_active"), "{{queue}}"),
            unit="none",
        ),
    ),
    (
        8,
        8,
        lines(
            "Children not ready",
            "Wanted and not there, or not claiming yet.",
            (_MISSING, "{{queue}}"),
            unit="none",
            steps=((None, GREEN), (1, YELLOW)),
        ),
    ),
    (
        8,
        8,
        lines(
            "Places taken",
            "Running handlers against what the children may run at once.",
            (ratio(total("chokaq_child_running_jobs", "queue"), total("chokaq_child_capacity", "queue")), "{{queue}}"),
            unit="percentunit",
        ),
    ),
    (
        8,
        8,
        lines(
            "Child restarts by cause",
            "crash, stall, limit and boot are deaths; the others are as they should be.",
            (rise("chokaq_child_restarts_total", "cause"), "{{cause}}"),
            unit="short",
        ),
    ),
    (
        8,
        8,
        lines(
            "Maintenance and web restarts",
            "Jobs run on without them.",
            (rise("chokaq_service_restarts_total", "process", "cause", within=JOB), "{{process}} {{cause}}"),
            unit="short",
        ),
    ),
    (
        8,
        8,
        lines(
            "Jobs rescued",
            "Taken from workers that had died or fallen silent.",
            (rise("chokaq_rescued_jobs_total", "operation", "outcome"), "{{operation}} {{outcome}}"),
            unit="short",
        ),
    ),
    (
        8,
        8,
        lines(
            "Leases",
            "Renewals that failed, jobs lost to others, transitions refused as stale.",
            (rate("chokaq_jobs_heartbeat_failures_total"), "renewals failed"),
            (rate("chokaq_jobs_lease_losses_total"), "leases lost"),
            (rate("chokaq_jobs_state_transition_conflicts_total", "transition"), "stale: {{transition}}"),
            unit="ops",
        ),
    ),
    (
        8,
        8,
        lines(
            "Who leads",
            "The worker whose maintenance process leads the fleet, for each database.",
            (f"chokaq_leader{{{JOB}}} > 0", "{{database}}: {{instance}}"),
            unit="none",
        ),
    ),
    (
        8,
        8,
        table(
            "Versions",
            "What runs where.",
            {"Workers": f"count by (version, python, store) (chokaq_build_info{{{JOB}}})"},
            by=("version", "python", "store"),
        ),
    ),
)

PROCESSES = (
    (
        8,
        8,
        lines(
            "Event loop, p99",
            "How late it turns. Above a second something blocks it.",
            (quantile(0.99, "chokaq_loop_lag_seconds", "queue"), "{{queue}}"),
            unit="s",
            steps=((None, GREEN), (1, RED)),
        ),
    ),
    (
        8,
        8,
        lines(
            "Memory of the largest child",
            "max_memory recycles it.",
            (f"max by (queue) (chokaq_child_memory_bytes{{{QUEUE}}})", "{{queue}}"),
            unit="bytes",
        ),
    ),
    (
        8,
        8,
        lines(
            "Buffered jobs",
            "Claimed and not started.",
            (total("chokaq_child_buffered_jobs", "queue"), "{{queue}}"),
            unit="short",
        ),
    ),
    (
        12,
        7,
        lines(
            "Targets",
            "Workers that answer Prometheus, and those that do not.",
            (f"count by (job) (up{{{JOB}}} == 1)", "{{job}} up"),
            (f"count by (job) (up{{{JOB}}} == 0)", "{{job}} down"),
            unit="none",
        ),
    ),
    (
        12,
        7,
        lines(
            "Label values merged",
            "Above 0: a label has more values than its budget, and alerts do not tell them apart.",
            (total("chokaq_metrics_overflows_total", "label", within=JOB), "{{label}}"),
            unit="short",
        ),
    ),
)
