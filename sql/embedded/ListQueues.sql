-- ListQueues: every queue that has a row in Queues or live jobs, with its figures. Counts stop at 100,000 per state. Called by
-- operators, and by the maintenance leader for the overrides. :queues is a document of names, from ListHotQueues.
-- Results: `list` one row per name, sorted; `unrolled` and `oldest` complete it.
-- Table order: Queues, Workers, JobsHot, MetricBuckets, QueueTotals.

-- name: list
SELECT n.value, q.MaxWorkers, q.FleetMaxWorkers, q.ExecutionTimeoutMs, q.ZombieTimeoutMs,
       COALESCE(q.IsPaused, 0), COALESCE(q.IsActive, 1),
       (SELECT COUNT(*) FROM (SELECT 1 FROM JobsHot INDEXED BY IX_JobsHot_Ready
                              WHERE Queue = n.value AND Status = 0 AND IsReady = 1 LIMIT 100000)),
       (SELECT COUNT(*) FROM (SELECT 1 FROM JobsHot INDEXED BY IX_JobsHot_Due
                              WHERE Queue = n.value AND Status = 0 AND IsReady = 0 AND DueAtUtc <= :now LIMIT 100000)),
       (SELECT COUNT(*) FROM (SELECT 1 FROM JobsHot INDEXED BY IX_JobsHot_Due
                              WHERE Queue = n.value AND Status = 0 AND IsReady = 0 AND DueAtUtc > :now LIMIT 100000)),
       (SELECT COUNT(*) FROM (SELECT 1 FROM JobsHot INDEXED BY IX_JobsHot_Lease
                              WHERE Queue = n.value AND WorkerId IS NOT NULL AND Status = 1 LIMIT 100000)),
       (SELECT COUNT(*) FROM (SELECT 1 FROM JobsHot INDEXED BY IX_JobsHot_Lease
                              WHERE Queue = n.value AND WorkerId IS NOT NULL AND Status = 2 LIMIT 100000)),
       (SELECT COUNT(*) FROM Workers
        WHERE Queue = n.value AND EndedAtUtc IS NULL AND HeartbeatUtc > :now - 60000),
       q.Name IS NOT NULL, q.UpdatedAtUtc, q.UpdatedBy,
       COALESCE(t.SucceededTotal, 0), COALESCE(t.FailedTotal, 0), COALESCE(t.RetriedTotal, 0),
       (SELECT MIN(StartedAtUtc) FROM (SELECT StartedAtUtc FROM JobsHot INDEXED BY IX_JobsHot_Lease
                                       WHERE Queue = n.value AND WorkerId IS NOT NULL AND Status = 2 LIMIT 100000))
FROM json_each(:queues) AS n
LEFT JOIN Queues AS q ON q.Name = n.value
LEFT JOIN QueueTotals AS t ON t.Queue = n.value
ORDER BY n.value;

-- name: unrolled
-- What the totals lack until RollUp has folded it in.
SELECT Queue, Outcome, SUM(JobCount) FROM MetricBuckets WHERE Seconds = 1 GROUP BY Queue, Outcome;

-- name: oldest
-- The earliest due time of a queue's ready rows: one look per priority in use.
WITH RECURSIVE Used (Priority) AS (
    SELECT MAX(Priority) FROM JobsHot INDEXED BY IX_JobsHot_Ready WHERE Queue = :queue AND Status = 0 AND IsReady = 1
    UNION ALL
    SELECT (SELECT MAX(h.Priority) FROM JobsHot AS h INDEXED BY IX_JobsHot_Ready
            WHERE h.Queue = :queue AND h.Status = 0 AND h.IsReady = 1 AND h.Priority < Used.Priority)
    FROM Used WHERE Used.Priority IS NOT NULL
    LIMIT 1000
)
SELECT MIN(Due) FROM (
    SELECT (SELECT h.DueAtUtc FROM JobsHot AS h INDEXED BY IX_JobsHot_Ready
            WHERE h.Queue = :queue AND h.Status = 0 AND h.IsReady = 1 AND h.Priority = u.Priority
            ORDER BY h.DueAtUtc LIMIT 1) AS Due
    FROM Used AS u
    UNION ALL
    SELECT (SELECT DueAtUtc FROM JobsHot INDEXED BY IX_JobsHot_Due
            WHERE Queue = :queue AND Status = 0 AND IsReady = 0 AND DueAtUtc <= :now ORDER BY DueAtUtc LIMIT 1)
);
