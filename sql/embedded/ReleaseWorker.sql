-- ReleaseWorker: a worker has ended; what it held goes where the cause of its death says. Called by the maintenance process that
-- holds the death notice; needs no leadership, safe to repeat and with two callers.
-- Results: `queue` where to look; `held` at most 1,000 jobs under its leases, with everything the decision needs.
-- Table order: Workers, JobsHot, JobsDLQ, CancelRequests, JobAttempts, MetricBuckets (Moves.sql).

-- name: end
-- First of all, so that a fetch of this worker that arrives later claims nothing. The first notice stays.
UPDATE Workers SET EndedAtUtc = :now, EndedCause = :cause WHERE WorkerId = :worker AND EndedAtUtc IS NULL;

-- name: held
SELECT Id, Queue, Type, Status, LeaseNumber, AttemptCount, CrashCount, WorkerId, DueAtUtc, StartedAtUtc, AgeFromUtc,
       CancelRequestedAtUtc, HeartbeatUtc
FROM JobsHot INDEXED BY IX_JobsHot_Lease
WHERE Queue = COALESCE((SELECT Queue FROM Workers WHERE WorkerId = :worker), :queue) AND WorkerId = :worker
ORDER BY Id LIMIT :size;
