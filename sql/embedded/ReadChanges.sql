-- ReadChanges: marks to compare with those of the time before, and the jobs that somebody looks at. Called by The Deck, once a second per
-- process.
-- Results: `marks` one row; `newest` the 50 newest jobs of Hot; `buckets` the outcomes of the last 10 s; `leases` held per queue;
-- `watched` the jobs of :ids; `signed_out` the sessions that were ended before their time, since :since.
-- Table order: AuditLog, CircuitOrders, Circuits, Workers, JobsHot, MetricBuckets, JobNotes, JobsArchive, JobsDLQ, SignOuts.

-- name: marks
SELECT (SELECT COALESCE(MAX(AuditId), 0) FROM AuditLog),
       (SELECT COALESCE(MAX(OrderNumber), 0) FROM CircuitOrders WHERE TypeKey = ''),
       c.Told, c.Failures, c.Changed, w.Live, w.Draining, w.Beat
FROM (SELECT COUNT(*) AS Told, COALESCE(SUM(Failures), 0) AS Failures, MAX(ChangedAtUtc) AS Changed FROM Circuits) AS c
CROSS JOIN (SELECT COUNT(*) AS Live, COUNT(DrainAtUtc) AS Draining, MAX(HeartbeatUtc) AS Beat
            FROM Workers WHERE EndedAtUtc IS NULL) AS w;

-- name: newest
SELECT Id, Queue FROM JobsHot ORDER BY Id DESC LIMIT 50;

-- name: buckets
SELECT (StartUtc - 1577836800000) / 1000, Queue, Outcome, SUM(JobCount)
FROM MetricBuckets INDEXED BY IX_MetricBuckets_Start
WHERE Seconds = 1 AND StartUtc >= :since
GROUP BY StartUtc, Queue, Outcome ORDER BY StartUtc DESC, Queue, Outcome LIMIT 5000;

-- name: leases
SELECT Queue, COUNT(*) FROM (
    SELECT Queue FROM JobsHot INDEXED BY IX_JobsHot_Lease WHERE WorkerId IS NOT NULL LIMIT 100000
) GROUP BY Queue ORDER BY Queue;

-- name: watched
SELECT j.Id, j.Pillar, j.Status, j.LeaseNumber, j.AttemptCount, j.Priority, j.Progress, j.Cancelled,
       (SELECT n.NotedAtUtc FROM JobNotes AS n WHERE n.JobId = j.Id)
FROM (
    SELECT Id, 'hot' AS Pillar, Status, LeaseNumber, AttemptCount, Priority, Progress, CancelRequestedAtUtc IS NOT NULL AS Cancelled
    FROM JobsHot WHERE Id IN (SELECT value FROM json_each(:ids))
    UNION ALL
    SELECT Id, 'archive', 3, LeaseNumber, AttemptCount, Priority, Progress, 0
    FROM JobsArchive WHERE Id IN (SELECT value FROM json_each(:ids))
    UNION ALL
    SELECT Id, 'dlq', Status, LeaseNumber, AttemptCount, Priority, Progress, CancelRequestedAtUtc IS NOT NULL
    FROM JobsDLQ WHERE Id IN (SELECT value FROM json_each(:ids))
) AS j
ORDER BY j.Id;

-- name: signed_out
SELECT SessionId, UntilUtc - :now FROM SignOuts WHERE EndedAtUtc >= :since AND UntilUtc > :now ORDER BY EndedAtUtc DESC LIMIT 1000;
