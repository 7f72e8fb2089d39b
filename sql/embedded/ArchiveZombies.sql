-- ArchiveZombies: Processing jobs of a queue whose lease was not renewed in time: their owner is taken for dead, and the crash
-- policy applies. Called by the maintenance leader; safe with two leaders. Pages like RecoverAbandoned.
-- Results: `page` (worker, id) of at most 1,000 leases; `match` those of them that are zombies.
-- Table order: Queues, JobsHot, JobsDLQ, CancelRequests, JobAttempts, MetricBuckets (Moves.sql).

-- name: page
SELECT WorkerId, Id FROM JobsHot INDEXED BY IX_JobsHot_Lease
WHERE Queue = :queue AND WorkerId IS NOT NULL AND (WorkerId, Id) > (:worker, :id)
ORDER BY WorkerId, Id LIMIT :size;

-- name: match
-- The operators' override of the timeout wins.
SELECT Id, Queue, Type, Status, LeaseNumber, AttemptCount, CrashCount, WorkerId, DueAtUtc, StartedAtUtc, AgeFromUtc,
       CancelRequestedAtUtc, HeartbeatUtc
FROM JobsHot
WHERE Id IN (SELECT value FROM json_each(:jobs)) AND Status = 2
  AND HeartbeatUtc < :now - COALESCE((SELECT ZombieTimeoutMs FROM Queues WHERE Name = :queue), :timeout);
