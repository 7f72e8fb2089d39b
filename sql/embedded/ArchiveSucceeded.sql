-- ArchiveSucceeded: Processing -> Archive, with its counters. Called by the settle lane.
-- :jobs is a document of [id, lease], :rows one of row ids.
-- Results: `match` what moves now, a row per queue; `shown` what stands in the Archive under its lease, moved by this call or by an
-- earlier one.
-- Table order: JobsHot, JobsArchive, CancelRequests, MetricBuckets (Moves.sql).

-- name: match
-- Documents of row ids, of durations and of lags (start minus due), in milliseconds.
SELECT Queue, json_group_array(JobsHot.rowid), json_group_array(MAX(:now - StartedAtUtc, 0)),
       json_group_array(StartedAtUtc - DueAtUtc)
FROM (SELECT value ->> 0 AS JobId, value ->> 1 AS Lease FROM json_each(:jobs)) AS g
CROSS JOIN JobsHot ON Id = g.JobId AND LeaseNumber = g.Lease
WHERE Status = 2
GROUP BY Queue;

-- name: move
-- An older row of the same id, which a manual repair left in the Archive, gives way to this success.
INSERT OR REPLACE INTO JobsArchive
      (Id, Queue, Type, Priority, DueAtUtc, LeaseNumber, AttemptCount, CrashCount, WorkerId, StartedAtUtc,
       FinishedAtUtc, DurationMs, Progress, CreatedAtUtc, ScheduledAtUtc, AgeFromUtc, KeyScope, PayloadHash,
       IdempotencyKey, OwnerLogin, CreatedBy, Tags, Headers, Payload)
SELECT Id, Queue, Type, Priority, DueAtUtc, LeaseNumber, AttemptCount, CrashCount, WorkerId, StartedAtUtc,
       :now, MAX(:now - StartedAtUtc, 0), Progress, CreatedAtUtc, ScheduledAtUtc, AgeFromUtc, KeyScope, PayloadHash,
       IdempotencyKey, OwnerLogin, CreatedBy, Tags, Headers, Payload
FROM JobsHot WHERE rowid IN (SELECT value FROM json_each(:rows));

-- name: leave_hot
DELETE FROM JobsHot WHERE rowid IN (SELECT value FROM json_each(:rows));

-- name: shown
SELECT Id, LeaseNumber
FROM (SELECT value ->> 0 AS JobId, value ->> 1 AS Lease FROM json_each(:jobs)) AS g
CROSS JOIN JobsArchive ON Id = g.JobId AND LeaseNumber = g.Lease;
