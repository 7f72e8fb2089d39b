-- FetchJobs: claim ready jobs of a queue for one worker (Pending -> Fetched). Called by the claim lane of a child.
-- `state` is also the probe: nothing waits, or size zero, and the request unused -> nothing is written.
-- Results: `state` one row; `ready` and `again` the jobs, in the order they are served; `cancellations` those meant for this worker.
-- Table order: Queues, Workers, JobsHot, CancelRequests.

-- name: state
-- The worker, the operators' overrides, whether ready rows wait, the earliest due time of those that wait for theirs, whether
-- cancellations wait, whether an operator asked the worker to end, the number of the latest order to circuits.
SELECT w.LastRequest, w.EndedAtUtc, q.MaxWorkers, q.FleetMaxWorkers, q.ExecutionTimeoutMs, q.ZombieTimeoutMs,
       COALESCE(q.IsPaused, 0), COALESCE(q.IsActive, 1),
       EXISTS (SELECT 1 FROM JobsHot INDEXED BY IX_JobsHot_Ready WHERE Queue = :queue AND Status = 0 AND IsReady = 1),
       (SELECT DueAtUtc FROM JobsHot INDEXED BY IX_JobsHot_Due WHERE Queue = :queue AND Status = 0 AND IsReady = 0
        ORDER BY DueAtUtc LIMIT 1),
       EXISTS (SELECT 1 FROM CancelRequests WHERE WorkerId = :worker),
       w.DrainAtUtc IS NOT NULL,
       COALESCE((SELECT OrderNumber FROM CircuitOrders WHERE TypeKey = ''), 0)
FROM (SELECT 1) LEFT JOIN Workers AS w ON w.WorkerId = :worker LEFT JOIN Queues AS q ON q.Name = :queue;

-- name: ticket
-- Capped queues only. The write lock excludes other fetches already; the ticket is what the other store does, and shows the pace.
UPDATE Queues SET Ticket = Ticket + 1 WHERE Name = :queue;

-- name: raise
UPDATE Workers SET LastRequest = :request WHERE WorkerId = :worker AND LastRequest < :request AND EndedAtUtc IS NULL;

-- name: again
-- The request was used before: its answer was lost. What was claimed under it and is still buffered goes out again.
SELECT rowid, Id, Type, Payload, LeaseNumber, Priority, AttemptCount, CrashCount, CreatedAtUtc, DueAtUtc, :now - AgeFromUtc, Tags,
       CreatedBy, Headers
FROM JobsHot INDEXED BY IX_JobsHot_Lease
WHERE Queue = :queue AND WorkerId = :worker AND Status = 1 AND FetchRequest = :request
ORDER BY Priority DESC, DueAtUtc, Id;

-- name: promote
UPDATE JobsHot SET IsReady = 1
WHERE Id IN (SELECT Id FROM JobsHot INDEXED BY IX_JobsHot_Due
             WHERE Queue = :queue AND Status = 0 AND IsReady = 0 AND DueAtUtc <= :now
             ORDER BY DueAtUtc, Id LIMIT 1000);

-- name: leases
-- How many leases are held in the queue, counted no further than the cap.
SELECT COUNT(*) FROM (SELECT 1 FROM JobsHot INDEXED BY IX_JobsHot_Lease
                      WHERE Queue = :queue AND WorkerId IS NOT NULL LIMIT :cap);

-- name: ready
-- What will be claimed, in the order it is served; the lease number is already the new one.
SELECT rowid, Id, Type, Payload, LeaseNumber + 1, Priority, AttemptCount, CrashCount, CreatedAtUtc, DueAtUtc, :now - AgeFromUtc,
       Tags, CreatedBy, Headers
FROM JobsHot INDEXED BY IX_JobsHot_Ready
WHERE Queue = :queue AND Status = 0 AND IsReady = 1
ORDER BY Priority DESC, DueAtUtc, Id LIMIT :size;

-- name: claim
-- :rows is a document of the row ids just read; the write transaction keeps everyone else away from them.
UPDATE JobsHot
SET Status = 1, LeaseNumber = LeaseNumber + 1, WorkerId = :worker, FetchRequest = :request, HeartbeatUtc = :now
WHERE rowid IN (SELECT value FROM json_each(:rows));

-- name: cancellations
SELECT JobId, LeaseNumber, Actor, Reason FROM CancelRequests WHERE WorkerId = :worker ORDER BY JobId;
