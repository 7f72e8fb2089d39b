-- ReadSeries: outcome counters in steps of equal length, summed over slots, oldest first. Called by The Deck.
-- Result: one row per (step, queue, outcome, reason); a step is a whole number of :step seconds since 2020-01-01.
-- Table order: MetricBuckets.

-- name: rows
SELECT (StartUtc - 1577836800000) / (1000 * :step), Queue, Outcome, FailureReason, SUM(JobCount), SUM(DurationMs), SUM(Lag0), SUM(Lag1),
       SUM(Lag2), SUM(Lag3), SUM(Lag4), SUM(Lag5), SUM(Lag6), SUM(Lag7), SUM(Lag8), SUM(Lag9), SUM(Lag10), SUM(Lag11)
FROM MetricBuckets INDEXED BY IX_MetricBuckets_Start
WHERE Seconds IN (1, 60) AND StartUtc >= :since AND (:queue IS NULL OR Queue = :queue)
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4;
