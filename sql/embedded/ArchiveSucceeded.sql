-- ArchiveSucceeded: Processing -> Archive, with its counters. Called by the settle lane.
-- :jobs is a document of [id, lease], :rows one of row ids.
-- Results: `match` what moves now; `shown` what an earlier call with the same lease moved.
-- Table order: JobsHot, JobsArchive, CancelRequests, MetricBuckets (Moves.sql).

-- name: match
SELECT JobsHot.rowid, Id, LeaseNumber, Queue, StartedAtUtc, DueAtUtc
FROM (SELECT value ->> 0 AS JobId, value ->> 1 AS Lease FROM json_each(:jobs)) AS g
CROSS JOIN JobsHot ON Id = g.JobId AND LeaseNumber = g.Lease
WHERE Status = 2;

-- name: move
INSERT INTO JobsArchive (Id, Queue, Type, Priority, DueAtUtc, LeaseNumber, AttemptCount, CrashCount, WorkerId, StartedAtUtc,
                         FinishedAtUtc, DurationMs, Progress, CreatedAtUtc, ScheduledAtUtc, AgeFromUtc, KeyScope, PayloadHash,
                         IdempotencyKey, OwnerLogin, CreatedBy, Tags, Headers, Payload)
SELECT Id, Queue, Type, Priority, DueAtUtc, LeaseNumber, AttemptCount, CrashCount, WorkerId, StartedAtUtc, :now,
       MAX(:now - StartedAtUtc, 0), Progress, CreatedAtUtc, ScheduledAtUtc, AgeFromUtc, KeyScope, PayloadHash, IdempotencyKey,
       OwnerLogin, CreatedBy, Tags, Headers, Payload
FROM JobsHot WHERE rowid IN (SELECT value FROM json_each(:rows));

-- name: leave_hot
DELETE FROM JobsHot WHERE rowid IN (SELECT value FROM json_each(:rows));

-- name: shown
SELECT Id, LeaseNumber
FROM (SELECT value ->> 0 AS JobId, value ->> 1 AS Lease FROM json_each(:jobs)) AS g
CROSS JOIN JobsArchive ON Id = g.JobId AND LeaseNumber = g.Lease;
