-- EnqueueJobs: accept a set of jobs (what keys need beside it: EnqueueKeyedJobs). Called by clients, in a transaction of its own or
-- inside the caller's.
-- Every time is the clock read after the transaction began; the caller of these statements computes the due time from it.
-- Result: `pillars` one row per id found.
-- Table order: JobsHot, JobsArchive, JobsDLQ. No shared row (Queues, counters) is written.

-- name: begin
-- Changes nothing: makes sure that the transaction may write, or says now that it may not.
UPDATE JobKeys SET JobId = JobId WHERE 0;

-- name: insert
-- An id that stands in a pillar already is the repeat of an earlier call: not inserted again.
INSERT INTO JobsHot (Id, Queue, Type, Status, IsReady, Priority, DueAtUtc, LeaseNumber, AttemptCount, CrashCount, CreatedAtUtc,
                     ScheduledAtUtc, AgeFromUtc, KeyScope, PayloadHash, IdempotencyKey, OwnerLogin, CreatedBy, Tags, Headers,
                     Payload)
SELECT ?1, ?2, ?3, 0, ?4, ?5, ?6, 0, 0, 0, ?7, ?8, ?6, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16
WHERE NOT EXISTS (SELECT 1 FROM JobsArchive WHERE Id = ?1) AND NOT EXISTS (SELECT 1 FROM JobsDLQ WHERE Id = ?1)
ON CONFLICT (Id) DO NOTHING;

-- name: pillars
SELECT Id, Status, PayloadHash FROM JobsHot WHERE Id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT Id, 3, PayloadHash FROM JobsArchive WHERE Id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT Id, Status, PayloadHash FROM JobsDLQ WHERE Id IN (SELECT value FROM json_each(:ids));
