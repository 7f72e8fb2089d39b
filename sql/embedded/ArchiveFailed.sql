-- ArchiveFailed: a job stops (Fetched or Processing -> DLQ), with its JobAttempts row when an error is given. Called by the settle
-- lane. :jobs is a document of [id, lease]. Results: `match` what may move now; `shown` the DLQ rows under the same lease.
-- Table order: JobsHot, JobsDLQ, CancelRequests, JobAttempts, MetricBuckets (Moves.sql).

-- name: match
SELECT Id, Queue, Type, Status, LeaseNumber, AttemptCount, CrashCount, WorkerId, DueAtUtc, StartedAtUtc, AgeFromUtc,
       CancelRequestedAtUtc, HeartbeatUtc
FROM (SELECT value ->> 0 AS JobId, value ->> 1 AS Lease FROM json_each(:jobs)) AS g
CROSS JOIN JobsHot ON Id = g.JobId AND LeaseNumber = g.Lease
WHERE Status IN (1, 2);

-- name: shown
SELECT Id, LeaseNumber, Status, FailureReason
FROM (SELECT value ->> 0 AS JobId, value ->> 1 AS Lease FROM json_each(:jobs)) AS g
CROSS JOIN JobsDLQ ON Id = g.JobId AND LeaseNumber = g.Lease;
