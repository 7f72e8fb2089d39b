"""What becomes of jobs: how long they wait and run, how they end."""

from tools.monitoring.panels import DEAD, GREEN, RED, heat, lines
from tools.monitoring.panels import LAG as LIMITS
from tools.monitoring.queries import (
    APPLICATION,
    JOB,
    QUEUE,
    SPACE,
    dead_share,
    fleet,
    quantile,
    quantiles,
    rate,
    ratio,
    rise,
    share_within,
)

LAG = (
    (
        12,
        8,
        lines(
            "Longest wait",
            "How long the oldest due job of each queue waits. The alert comes at 10 s for 5 minutes.",
            (fleet("chokaq_queue_lag_seconds"), "{{queue}}"),
            unit="s",
            steps=LIMITS,
        ),
    ),
    (
        12,
        8,
        lines(
            "Started within 5 s",
            "The objective is 99 %.",
            (share_within("chokaq_jobs_queue_lag_seconds", "5.0"), "{{queue}}"),
            unit="percentunit",
            steps=((None, RED), (0.99, GREEN)),
        ),
    ),
    (
        12,
        8,
        lines(
            "Due until started",
            "How long jobs that start have waited.",
            *quantiles("chokaq_jobs_queue_lag_seconds"),
            unit="s",
        ),
    ),
    (
        12,
        8,
        lines(
            "Due until claimed, p95",
            "The first part of it: until a child has the job in its buffer.",
            (quantile(0.95, "chokaq_jobs_pickup_seconds", "queue"), "{{queue}}"),
            unit="s",
        ),
    ),
    (
        12,
        8,
        lines(
            "Jobs by state",
            "Due, scheduled for later, claimed and running. The counts of a queue stop at 100,000.",
            (f"sum by (state) (max by (queue, state) (chokaq_queue_jobs{{{QUEUE}}}))", "{{state}}"),
            unit="short",
            stacked=True,
        ),
    ),
    (
        12,
        8,
        lines(
            "Oldest due job, paused queues too",
            "A queue that was forgotten keeps rising.",
            (fleet("chokaq_queue_oldest_due_seconds"), "{{queue}}"),
            unit="s",
        ),
    ),
)

THROUGHPUT = (
    (
        12,
        8,
        lines(
            "Enqueued",
            "By the applications that count their enqueues, whatever job they are scraped as.",
            (rate("chokaq_jobs_enqueued_total", "queue", within=APPLICATION), "{{queue}}"),
            (rate("chokaq_jobs_duplicates_total", "queue", within=APPLICATION), "{{queue}} duplicates"),
            unit="ops",
        ),
    ),
    (
        12,
        8,
        lines(
            "Completed",
            "Jobs that succeed.",
            (rate("chokaq_jobs_completed_total", "queue"), "{{queue}}"),
            unit="ops",
            stacked=True,
        ),
    ),
    (
        12,
        8,
        lines(
            "To the DLQ by reason",
            "Whoever moved them: a child, the rescue, an operator.",
            (rate("chokaq_jobs_dlq_total", "reason"), "{{reason}}"),
            unit="ops",
            stacked=True,
        ),
    ),
    (
        12,
        8,
        lines(
            "Share to the DLQ",
            "Of the jobs that end. Objective: below 0.1 %; the alert comes at 1 % for 5 minutes.",
            (dead_share("queue"), "{{queue}}"),
            unit="percentunit",
            steps=DEAD,
        ),
    ),
    (
        12,
        8,
        lines(
            "Failed executions by error",
            "The ten most frequent, whether they are tried again or not.",
            (f"topk(10, {rate('chokaq_jobs_failed_total', 'error')})", "{{error}}"),
            unit="ops",
            stacked=True,
        ),
    ),
    (
        12,
        8,
        lines(
            "Refused enqueues",
            "Work that chokaq never saw, by the error that the application got.",
            (rate("chokaq_jobs_refused_total", "queue", "error", within=APPLICATION), "{{queue}} {{error}}"),
            unit="ops",
        ),
    ),
    (
        12,
        8,
        lines(
            "Enqueue calls, p95",
            "How long the applications wait for them.",
            (quantile(0.95, "chokaq_enqueue_seconds", "method", within=SPACE), "{{method}}"),
            unit="s",
        ),
    ),
    (
        12,
        8,
        lines(
            "Operators",
            "Entries of the audit log: what people, or app.cancel, did.",
            (rise("chokaq_operator_actions_total", "action", within=JOB), "{{action}}"),
            unit="short",
        ),
    ),
)

RETRIES = (
    (
        12,
        8,
        lines(
            "Retried by attempt",
            "Executions after which the job waits for another, by the number of the one that failed.",
            (rate("chokaq_jobs_retried_total", "attempt"), "{{attempt}}"),
            unit="ops",
            stacked=True,
        ),
    ),
    (
        12,
        8,
        lines(
            "Share of executions retried",
            "The first sign of a dependency that is unwell.",
            (
                ratio(
                    rate("chokaq_jobs_retried_total", "queue"), rate("chokaq_jobs_processing_seconds_count", "queue")
                ),
                "{{queue}}",
            ),
            unit="percentunit",
        ),
    ),
    (
        12,
        8,
        lines(
            "Handed back, by cause",
            "Uncharged: an open circuit, a snooze, an unknown type, a drain or a full buffer.",
            (rate("chokaq_jobs_released_total", "cause"), "{{cause}}"),
            unit="ops",
            stacked=True,
        ),
    ),
    (
        12,
        8,
        lines(
            "Idempotency keys",
            "What became of them.",
            (rate("chokaq_idempotency_claims_total", "outcome", within=JOB), "{{outcome}}"),
            unit="ops",
        ),
    ),
)

DURATIONS = (
    (
        12,
        8,
        lines(
            "Handlers",
            "How long they run, whatever comes of it.",
            *quantiles("chokaq_jobs_processing_seconds"),
            unit="s",
        ),
    ),
    (
        12,
        8,
        lines(
            "Handlers, p95 by queue",
            "Which queue became slow.",
            (quantile(0.95, "chokaq_jobs_processing_seconds", "queue"), "{{queue}}"),
            unit="s",
        ),
    ),
    (
        12,
        8,
        lines(
            "Handlers, p95 by type",
            "The ten slowest types.",
            (f"topk(10, {quantile(0.95, 'chokaq_jobs_processing_seconds', 'type')})", "{{type}}"),
            unit="s",
        ),
    ),
    (
        12,
        8,
        heat(
            "Handlers, all",
            "Two humps are two kinds of jobs.",
            rise("chokaq_jobs_processing_seconds_bucket", "le"),
            unit="s",
        ),
    ),
    (
        12,
        8,
        lines(
            "Longest running job",
            "By queue; a job that hangs keeps rising.",
            (fleet("chokaq_queue_oldest_running_seconds"), "{{queue}}"),
            unit="s",
        ),
    ),
    (
        12,
        8,
        lines(
            "Outcome until stored, p95",
            "From the end of a handler until the database has answered.",
            (quantile(0.95, "chokaq_jobs_settle_delay_seconds", "queue"), "{{queue}}"),
            unit="s",
        ),
    ),
)
