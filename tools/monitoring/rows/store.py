"""The database as the workers see it, and what handlers depend on."""

from tools.monitoring.panels import lines
from tools.monitoring.queries import JOB, QUEUE, quantile, rate, ratio, rise

STORE = (
    (
        12,
        8,
        lines(
            "Calls",
            "Round trips that were answered, by procedure.",
            (rate("chokaq_lane_round_trips_total", "call"), "{{call}}"),
            unit="ops",
            stacked=True,
        ),
    ),
    (
        12,
        8,
        lines(
            "Calls, p95",
            "How long one takes; tries that failed are left out.",
            (quantile(0.95, "chokaq_lane_round_trip_seconds", "call", within=JOB), "{{call}}"),
            unit="s",
        ),
    ),
    (
        12,
        8,
        lines(
            "Jobs in one call",
            "On average; large sets are cheap.",
            (
                ratio(
                    rate("chokaq_lane_batch_jobs_sum", "call", within=JOB),
                    rate("chokaq_lane_batch_jobs_count", "call", within=JOB),
                ),
                "{{call}}",
            ),
            unit="short",
        ),
    ),
    (
        12,
        8,
        lines(
            "Calls per completed job",
            "Idle polls are among them, so it rises when there is little to do.",
            (
                ratio(rate("chokaq_lane_round_trips_total", "queue"), rate("chokaq_jobs_completed_total", "queue")),
                "{{queue}}",
            ),
            unit="short",
        ),
    ),
    (
        12,
        8,
        lines(
            "SQL errors",
            "By the database's number: 1205 is a deadlock, 1222 a lock timeout, 9002 a full log.",
            (rise("chokaq_sql_errors_total", "number", within=JOB), "{{number}}"),
            unit="short",
        ),
    ),
    (
        12,
        8,
        lines(
            "Calls made again",
            "Because of such an error.",
            (rise("chokaq_sql_retries_total", "number", within=JOB), "{{number}}"),
            unit="short",
        ),
    ),
    (
        12,
        8,
        lines(
            "Outage",
            "Seconds per second without an answer, by lane, summed over processes.",
            (rate("chokaq_store_outage_seconds_total", "lane", within=JOB), "{{lane}}"),
            unit="none",
        ),
    ),
    (
        12,
        8,
        lines(
            "Rows deleted after their retention",
            "By table.",
            (rate("chokaq_purged_rows_total", "table", within=JOB), "{{table}}"),
            unit="ops",
        ),
    ),
)

CIRCUITS = (
    (
        12,
        8,
        lines(
            "Events",
            "opened: a type's jobs failed in a row; closed: one succeeded again; forced: an operator's order.",
            (rise("chokaq_circuits_events_total", "type", "event", within=JOB), "{{type}} {{event}}"),
            unit="short",
        ),
    ),
    (
        12,
        8,
        lines(
            "Jobs denied",
            "Put off, uncharged, while the circuit of their type is open.",
            (rate("chokaq_jobs_released_total", "type", within=f'{QUEUE}, cause="circuit"'), "{{type}}"),
            unit="ops",
        ),
    ),
)
