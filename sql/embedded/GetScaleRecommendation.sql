-- GetScaleRecommendation: what a queue's scale recommendation is made from; the rule itself is chokaq/lifecycle/scale.py. Called by
-- operators. :process is 1 when children are counted instead of hosts; :earliest is the oldest heartbeat that still counts.
-- Results, one row each: `queue` (none for an unknown one), `heard`, `units`, `last`, `circuits`, `buckets`, `jobs`, `oldest`. Counts
-- of jobs stop at 100,000.
-- Table order: Queues, Workers, Circuits, MetricBuckets, JobsHot.

-- name: queue
SELECT IsPaused, IsActive, MaxWorkers, FleetMaxWorkers FROM Queues WHERE Name = :queue;

-- name: heard
SELECT MAX(HeartbeatUtc) FROM Workers WHERE EndedAtUtc IS NULL;

-- name: units
SELECT COUNT(*), COALESCE(SUM(Settled), 0), COALESCE(SUM(Handlers), 0)
FROM (SELECT MAX(StartedAtUtc <= :now - 60000) AS Settled, SUM(COALESCE(:max_workers, MaxWorkers)) AS Handlers
      FROM Workers
      WHERE Queue = :queue AND EndedAtUtc IS NULL AND DrainAtUtc IS NULL AND DrainingAtUtc IS NULL AND HeartbeatUtc >= :earliest
      GROUP BY CASE WHEN :process THEN WorkerId ELSE Host END);

-- name: last
-- What the child that came last runs at a time.
SELECT MaxWorkers FROM Workers WHERE Queue = :queue ORDER BY StartedAtUtc DESC, WorkerId DESC LIMIT 1;

-- name: circuits
SELECT COUNT(DISTINCT c.TypeKey)
FROM Circuits AS c JOIN Workers AS w ON w.WorkerId = c.WorkerId
WHERE c.Queue = :queue AND w.EndedAtUtc IS NULL AND w.HeartbeatUtc >= :earliest
  AND ((c.State = 1 AND (c.NextProbeUtc IS NULL OR c.NextProbeUtc > :now - 120000))
       OR (c.State = 2 AND c.ChangedAtUtc > :now - 600000));

-- name: buckets
SELECT COALESCE(SUM(DurationMs), 0),
       COALESCE(SUM(CASE WHEN Outcome = 0 THEN DurationMs END), 0),
       COALESCE(SUM(CASE WHEN Outcome = 0 THEN JobCount END), 0),
       COALESCE(SUM((:target < 1) * Lag0 + (:target < 4) * Lag1 + (:target < 16) * Lag2 + (:target < 64) * Lag3
                    + (:target < 256) * Lag4 + (:target < 1024) * Lag5 + (:target < 4096) * Lag6 + (:target < 16384) * Lag7
                    + (:target < 65536) * Lag8 + (:target < 262144) * Lag9 + (:target < 1048576) * Lag10 + Lag11), 0)
FROM MetricBuckets INDEXED BY IX_MetricBuckets_Start
WHERE Seconds = 1 AND StartUtc >= :now - 300000 AND Queue = :queue;

-- name: jobs
SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM JobsHot INDEXED BY IX_JobsHot_Ready
                              WHERE Queue = :queue AND Status = 0 AND IsReady = 1 LIMIT 100000))
       + (SELECT COUNT(*) FROM (SELECT 1 FROM JobsHot INDEXED BY IX_JobsHot_Due
                                WHERE Queue = :queue AND Status = 0 AND IsReady = 0 AND DueAtUtc <= :now LIMIT 100000)),
       COALESCE(SUM(Status = 1), 0), COALESCE(SUM(Status = 2), 0)
FROM (SELECT Status FROM JobsHot INDEXED BY IX_JobsHot_Lease WHERE Queue = :queue AND WorkerId IS NOT NULL LIMIT 100000);

-- name: oldest
-- The earliest due time of the ready rows: one look per priority in use; and of those that are due and not promoted yet.
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
