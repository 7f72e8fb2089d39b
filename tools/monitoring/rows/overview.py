"""The first look: is anything wrong, and in which queue?"""

from tools.monitoring.panels import DEAD, GREEN, LAG, RED, stat, table
from tools.monitoring.queries import JOB, QUEUE, dead_share, fleet, rate, total

_FIRING = 'count(ALERTS{alertname=~"Chokaq.*", alertstate="firing", job=~"$job|"}) or vector(0)'

OVERVIEW = (
    (
        4,
        4,
        stat(
            "Workers ready",
            "Workers whose queues all have a live child that reaches the database.",
            total("chokaq_ready", within=JOB),
            unit="none",
            steps=((None, RED), (1, GREEN)),
        ),
    ),
    (
        4,
        4,
        stat(
            "Longest wait now",
            "How long the oldest due job waits. Paused queues do not count.",
            f"max(chokaq_queue_lag_seconds{{{QUEUE}}})",
            unit="s",
            steps=LAG,
            decimals=1,
        ),
    ),
    (
        4,
        4,
        stat(
            "Due jobs",
            "Jobs that could start now. The counts of a queue stop at 100,000.",
            f"sum({fleet('chokaq_queue_jobs', 'pending')})",
            unit="short",
        ),
    ),
    (
        4,
        4,
        stat(
            "Completed per second",
            "Jobs that succeed.",
            rate("chokaq_jobs_completed_total"),
            unit="ops",
            decimals=1,
        ),
    ),
    (
        4,
        4,
        stat(
            "To the DLQ",
            "Of the jobs that end; the objective is below 0.1 %. Cancelled ones do not count.",
            f"{dead_share()} or vector(0)",
            unit="percentunit",
            steps=DEAD,
            decimals=2,
        ),
    ),
    (
        4,
        4,
        stat("Alerts", "Alerts of chokaq that fire now.", _FIRING, unit="none", steps=((None, GREEN), (1, RED))),
    ),
    (
        24,
        8,
        table(
            "Queues",
            "Each queue as the leader of the fleet sees it.",
            {
                "Wait": fleet("chokaq_queue_lag_seconds"),
                "Due": fleet("chokaq_queue_jobs", "pending"),
                "Scheduled": fleet("chokaq_queue_jobs", "scheduled"),
                "Claimed": fleet("chokaq_queue_jobs", "fetched"),
                "Running": fleet("chokaq_queue_jobs", "processing"),
                "Capacity": fleet("chokaq_queue_capacity"),
                "Children": fleet("chokaq_workers_active"),
                "Paused": fleet("chokaq_queue_paused"),
                "Longest run": fleet("chokaq_queue_oldest_running_seconds"),
            },
            by=("queue",),
            units={"Wait": "s", "Longest run": "s"},
        ),
    ),
)
