-- ReleaseJobs: hand jobs back uncharged (Fetched -> Pending, or Processing -> Pending with the attempt refunded). A job whose
-- cancellation was requested ends Cancelled instead, a delayed one that has become too old ends Failed. Called by the settle lane.
-- :jobs is a document of [id, lease]. Results: `match` what may move now; `shown` what an earlier call made of the others.
-- Table order: JobsHot, JobsDLQ, CancelRequests, MetricBuckets (Moves.sql).

-- name: match
SELECT Id, Queue, Type, Status, LeaseNumber, AttemptCount, CrashCount, WorkerId, DueAtUtc, StartedAtUtc, AgeFromUtc,
       CancelRequestedAtUtc, HeartbeatUtc
FROM (SELECT value ->> 0 AS JobId, value ->> 1 AS Lease FROM json_each(:jobs)) AS g
CROSS JOIN JobsHot ON Id = g.JobId AND LeaseNumber = g.Lease
WHERE Status IN (1, 2);

-- name: shown
SELECT g.JobId, g.Lease,
       CASE WHEN h.Status = 0 AND g.Lease > 0 THEN 1
            WHEN d.Status = 5 AND d.FailureReason = 1 THEN 2
            WHEN d.Status = 4 AND d.FailureReason = 10 THEN 3
            ELSE 0 END
FROM (SELECT value ->> 0 AS JobId, value ->> 1 AS Lease FROM json_each(:jobs)) AS g
LEFT JOIN JobsHot AS h ON h.Id = g.JobId AND h.LeaseNumber = g.Lease
LEFT JOIN JobsDLQ AS d ON d.Id = g.JobId AND d.LeaseNumber = g.Lease;
