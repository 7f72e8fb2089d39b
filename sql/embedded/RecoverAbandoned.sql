-- RecoverAbandoned: Fetched jobs of a queue whose lease was not renewed in time return to Pending, without charge (to Cancelled
-- when that was asked for). Called by the maintenance leader; safe with two leaders. Pages through all leases of the queue by
-- (worker, id), so that no page can be filled by rows it may not touch.
-- Results: `page` (worker, id) of at most 1,000 leases; `match` those of them that are abandoned.
-- Table order: JobsHot, JobsDLQ, CancelRequests, MetricBuckets (Moves.sql).

-- name: page
SELECT WorkerId, Id FROM JobsHot INDEXED BY IX_JobsHot_Lease
WHERE Queue = :queue AND WorkerId IS NOT NULL AND (WorkerId, Id) > (:worker, :id)
ORDER BY WorkerId, Id LIMIT :size;

-- name: match
SELECT Id, Queue, Type, Status, LeaseNumber, AttemptCount, CrashCount, WorkerId, DueAtUtc, StartedAtUtc, AgeFromUtc,
       CancelRequestedAtUtc, HeartbeatUtc
FROM JobsHot
WHERE Id IN (SELECT value FROM json_each(:jobs)) AND Status = 1 AND HeartbeatUtc < :now - :timeout;
