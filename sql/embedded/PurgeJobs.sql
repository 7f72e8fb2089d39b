-- PurgeJobs: delete jobs of Archive or DLQ with their keys, notes and attempts; AuditLog keeps what they were. Called by operators.
-- Results: `ended` those that may be purged, in Id order. The rest: see Repairs.sql.
-- Table order: JobsArchive, JobsDLQ, JobKeys, JobNotes, JobAttempts, AuditLog.

-- name: ended
SELECT Id, 3 AS Status, Queue, Type, Priority, Tags, IdempotencyKey, AttemptCount, CrashCount, NULL AS FailureReason, PayloadHash,
       LENGTH(Payload)
FROM JobsArchive WHERE Id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT Id, Status, Queue, Type, Priority, Tags, IdempotencyKey, AttemptCount, CrashCount, FailureReason, PayloadHash,
       LENGTH(Payload)
FROM JobsDLQ WHERE Id IN (SELECT value FROM json_each(:ids))
ORDER BY 1;

-- name: archive
DELETE FROM JobsArchive WHERE Id IN (SELECT value FROM json_each(:ids));

-- name: dlq
DELETE FROM JobsDLQ WHERE Id IN (SELECT value FROM json_each(:ids));

-- name: keys
DELETE FROM JobKeys WHERE JobId IN (SELECT value FROM json_each(:ids));

-- name: notes
DELETE FROM JobNotes WHERE JobId IN (SELECT value FROM json_each(:ids));

-- name: attempts
DELETE FROM JobAttempts WHERE JobId IN (SELECT value FROM json_each(:ids));
