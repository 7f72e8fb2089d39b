-- RescheduleForRetry: a charged failure returns its job to Pending (Processing -> Pending), with its JobAttempts row; a job whose
-- cancellation was requested ends Cancelled instead, one that has become too old ends Failed. Called by the settle lane.
-- :jobs is a document of [id, lease]. Results: `match` what may move now; `shown` what an earlier call made of the others.
-- Table order: JobsHot, JobsDLQ, CancelRequests, JobAttempts, MetricBuckets (Moves.sql).

-- name: match
SELECT Id, Queue, Type, Status, LeaseNumber, AttemptCount, CrashCount, WorkerId, DueAtUtc, StartedAtUtc, AgeFromUtc,
       CancelRequestedAtUtc, HeartbeatUtc
FROM (SELECT value ->> 0 AS JobId, value ->> 1 AS Lease FROM json_each(:jobs)) AS g
CROSS JOIN JobsHot ON Id = g.JobId AND LeaseNumber = g.Lease
WHERE Status = 2;

-- name: shown
-- The DLQ row of this lease decides; else the attempt that the reschedule left behind is its evidence.
SELECT g.JobId, g.Lease,
       CASE WHEN d.Status = 5 AND d.FailureReason = 1 THEN 2
            WHEN d.Status = 4 AND d.FailureReason = 10 THEN 3
            WHEN d.Id IS NOT NULL THEN 0
            WHEN a.JobId IS NOT NULL THEN 1
            ELSE 0 END
FROM (SELECT value ->> 0 AS JobId, value ->> 1 AS Lease FROM json_each(:jobs)) AS g
LEFT JOIN JobsDLQ AS d ON d.Id = g.JobId AND d.LeaseNumber = g.Lease
LEFT JOIN JobAttempts AS a ON a.JobId = g.JobId AND a.LeaseNumber = g.Lease;
