-- FetchJobs: claim ready jobs of a queue for one worker (Pending -> Fetched). Called by the claim lane of a child.
-- `state` is also the probe: nothing waits, or size zero, and the request unused -> nothing is written.
-- Results: `state` one row; `ready` and `again` the jobs as one document (see there); `cancellations` those meant for this worker.
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
-- The request was used before: its answer was lost. What was claimed under it and is still buffered goes out again, as `ready`
-- gave it.
SELECT json_group_array(json_array(rowid, Id, Type, CASE WHEN length(Payload) <= 4000 THEN Payload END, LeaseNumber, Priority,
                                   AttemptCount, CrashCount, CreatedAtUtc, DueAtUtc, MAX(:now - AgeFromUtc, 0), Tags, CreatedBy,
                                   Headers))
FROM (SELECT rowid, * FROM JobsHot INDEXED BY IX_JobsHot_Lease
      WHERE Queue = :queue AND WorkerId = :worker AND Status = 1 AND FetchRequest = :request
      ORDER BY Priority DESC, DueAtUtc, Id);

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
-- What will be claimed, in the order it is served; the lease number is already the new one. One document, since each row that is
-- handed to Python costs the claiming thread a turn of the interpreter's lock. Large payloads stay out of it (see `payloads`).
-- The second column are the row ids, for `claim`.
SELECT json_group_array(json_array(rowid, Id, Type, CASE WHEN length(Payload) <= 4000 THEN Payload END, LeaseNumber + 1, Priority,
                                   AttemptCount, CrashCount, CreatedAtUtc, DueAtUtc, MAX(:now - AgeFromUtc, 0), Tags, CreatedBy,
                                   Headers)),
       json_group_array(rowid)
FROM (SELECT rowid, * FROM JobsHot INDEXED BY IX_JobsHot_Ready
      WHERE Queue = :queue AND Status = 0 AND IsReady = 1
      ORDER BY Priority DESC, DueAtUtc, Id LIMIT :size);

-- name: payloads
-- Those of the rows in :rows that are too large for a document of many.
SELECT rowid, Payload FROM JobsHot WHERE rowid IN (SELECT value FROM json_each(:rows));

-- name: claim
-- :rows is a document of the row ids just read; the write transaction keeps everyone else away from them.
UPDATE JobsHot
SET Status = 1, LeaseNumber = LeaseNumber + 1, WorkerId = :worker, FetchRequest = :request, HeartbeatUtc = :now
WHERE rowid IN (SELECT value FROM json_each(:rows));

-- name: cancellations
SELECT JobId, LeaseNumber, Actor, Reason FROM CancelRequests WHERE WorkerId = :worker ORDER BY JobId;
