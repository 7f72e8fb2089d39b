-- CancelJobs: Pending and Fetched -> DLQ Cancelled at once; Processing: the holder is told. One AuditLog row per job changed. Called
-- by operators, and by clients for their own jobs.
-- Results: `hot` the live ones among the jobs, with their owner; `done_before` those that an earlier try of this call cancelled at
-- once; `ended` the ids of those that ended before, with their owner.
-- Table order: JobsHot, JobsArchive, JobsDLQ, CancelRequests, AuditLog, MetricBuckets (Moves.sql).

-- name: hot
SELECT Id, Queue, Type, Status, LeaseNumber, AttemptCount, CrashCount, WorkerId, DueAtUtc, StartedAtUtc, AgeFromUtc,
       CancelRequestedAtUtc, HeartbeatUtc, OwnerLogin
FROM JobsHot WHERE Id IN (SELECT value FROM json_each(:ids));

-- name: ended
SELECT Id, OwnerLogin FROM JobsArchive WHERE Id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT Id, OwnerLogin FROM JobsDLQ WHERE Id IN (SELECT value FROM json_each(:ids));

-- name: done_before
SELECT Target FROM AuditLog
WHERE Target IN (SELECT value FROM json_each(:ids)) AND RequestId = :request AND AfterState = '{"status":"Cancelled"}';

-- name: mark
UPDATE JobsHot SET CancelRequestedAtUtc = :now
WHERE Id IN (SELECT value FROM json_each(:ids)) AND CancelRequestedAtUtc IS NULL;

-- name: request
INSERT INTO CancelRequests (WorkerId, JobId, LeaseNumber, Actor, Reason, RequestedAtUtc) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (WorkerId, JobId) DO UPDATE
SET LeaseNumber = excluded.LeaseNumber, Actor = excluded.Actor, Reason = excluded.Reason, RequestedAtUtc = excluded.RequestedAtUtc;

-- name: audit
INSERT INTO AuditLog (AtUtc, Actor, Action, Target, Reason, BeforeState, AfterState, RequestId)
VALUES (?1, ?2, 'cancel', ?3, ?4, ?5, ?6, ?7);
