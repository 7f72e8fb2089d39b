-- RollUp: fold per-second buckets older than two hours into minutes (Slot 0) and into lifetime totals. Called by the maintenance
-- leader. What is folded is deleted in the same transaction, so it is counted once and the totals never shrink.
-- Result: `oldest` the start of the oldest second that waits; `seconds` says how many rows went.
-- Table order: MetricBuckets, QueueTotals.

-- name: oldest
SELECT StartUtc FROM MetricBuckets INDEXED BY IX_MetricBuckets_Start
WHERE Seconds = 1 AND StartUtc < :before ORDER BY StartUtc LIMIT 1;

-- name: minutes
INSERT INTO MetricBuckets
      (Slot, Seconds, StartUtc, Queue, Outcome, FailureReason, JobCount, DurationMs, MaxDurationMs,
       Lag0, Lag1, Lag2, Lag3, Lag4, Lag5,
       Lag6, Lag7, Lag8, Lag9, Lag10, Lag11)
SELECT 0, 60, StartUtc - StartUtc % 60000, Queue, Outcome, FailureReason, SUM(JobCount), SUM(DurationMs), MAX(MaxDurationMs),
       SUM(Lag0), SUM(Lag1), SUM(Lag2), SUM(Lag3), SUM(Lag4), SUM(Lag5),
       SUM(Lag6), SUM(Lag7), SUM(Lag8), SUM(Lag9), SUM(Lag10), SUM(Lag11)
FROM MetricBuckets INDEXED BY IX_MetricBuckets_Start
WHERE Seconds = 1 AND StartUtc < :before
GROUP BY 3, 4, 5, 6
ON CONFLICT (Slot, Seconds, StartUtc, Queue, Outcome, FailureReason) DO UPDATE
SET JobCount = JobCount + excluded.JobCount, DurationMs = DurationMs + excluded.DurationMs,
    MaxDurationMs = MAX(MaxDurationMs, excluded.MaxDurationMs),
    Lag0 = Lag0 + excluded.Lag0, Lag1 = Lag1 + excluded.Lag1, Lag2  = Lag2  + excluded.Lag2,  Lag3  = Lag3  + excluded.Lag3,
    Lag4 = Lag4 + excluded.Lag4, Lag5 = Lag5 + excluded.Lag5, Lag6  = Lag6  + excluded.Lag6,  Lag7  = Lag7  + excluded.Lag7,
    Lag8 = Lag8 + excluded.Lag8, Lag9 = Lag9 + excluded.Lag9, Lag10 = Lag10 + excluded.Lag10, Lag11 = Lag11 + excluded.Lag11;

-- name: totals
INSERT INTO QueueTotals (Queue, SucceededTotal, FailedTotal, RetriedTotal)
SELECT Queue,
       SUM(CASE Outcome WHEN 0 THEN JobCount ELSE 0 END),
       SUM(CASE Outcome WHEN 1 THEN JobCount ELSE 0 END),
       SUM(CASE Outcome WHEN 2 THEN JobCount ELSE 0 END)
FROM MetricBuckets INDEXED BY IX_MetricBuckets_Start
WHERE Seconds = 1 AND StartUtc < :before
GROUP BY Queue
ON CONFLICT (Queue) DO UPDATE
SET SucceededTotal = SucceededTotal + excluded.SucceededTotal, FailedTotal = FailedTotal + excluded.FailedTotal,
    RetriedTotal = RetriedTotal + excluded.RetriedTotal;

-- name: seconds
DELETE FROM MetricBuckets WHERE Seconds = 1 AND StartUtc < :before;
