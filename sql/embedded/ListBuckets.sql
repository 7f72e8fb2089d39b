-- ListBuckets: outcome counters since an instant, summed over slots, oldest first. Called by operators and readers.
-- Result: one row per (start, seconds, queue, outcome, reason).
-- Table order: MetricBuckets.

-- name: list
SELECT StartUtc, Seconds, Queue, Outcome, FailureReason, SUM(JobCount), SUM(DurationMs), MAX(MaxDurationMs),
       SUM(Lag0), SUM(Lag1), SUM(Lag2), SUM(Lag3), SUM(Lag4), SUM(Lag5),
       SUM(Lag6), SUM(Lag7), SUM(Lag8), SUM(Lag9), SUM(Lag10), SUM(Lag11)
FROM MetricBuckets INDEXED BY IX_MetricBuckets_Start
WHERE Seconds IN (1, 60) AND StartUtc >= :since AND (:queue IS NULL OR Queue = :queue)
GROUP BY StartUtc, Seconds, Queue, Outcome, FailureReason
ORDER BY StartUtc, Seconds, Queue, Outcome, FailureReason;
