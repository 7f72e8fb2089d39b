-- EnqueueJobs: accept a set of jobs (what keys need beside it: EnqueueKeyedJobs). Called by clients, in a transaction of its own or
-- inside the caller's.
-- Every time is the clock read after the transaction began; the caller of these statements computes the due time from it.
-- Results: `newest` one id, `pillars` one row per id found.
-- Table order: JobsHot, JobsArchive, JobsDLQ. No shared row (Queues, counters) is written.

-- name: begin
-- Changes nothing: makes sure that the transaction may write, or says now that it may not.
UPDATE JobKeys SET JobId = JobId WHERE 0;

-- name: newest
-- The greatest id that has left Hot. Ids grow with time: what is greater cannot be the repeat of a call whose job has moved on, and
-- so a set of fresh jobs is spared the look into `pillars`.
SELECT MAX(COALESCE((SELECT MAX(Id) FROM JobsArchive), ''), COALESCE((SELECT MAX(Id) FROM JobsDLQ), ''));

-- name: insert
-- None of these ids stands in the Archive or in the DLQ (see `newest` and `pillars`). One that stands in Hot already is the repeat of
-- an earlier call: not inserted again.
INSERT INTO JobsHot (Id, Queue, Type, Status, IsReady, Priority, DueAtUtc, LeaseNumber, AttemptCount, CrashCount, CreatedAtUtc,
                     ScheduledAtUtc, AgeFromUtc, KeyScope, PayloadHash, IdempotencyKey, OwnerLogin, CreatedBy, Tags, Headers,
                     Payload)
VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6, 0, 0, 0, ?7, ?8, ?6, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
ON CONFLICT (Id) DO NOTHING;

-- name: pillars
SELECT Id, Status, PayloadHash FROM JobsHot WHERE Id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT Id, 3, PayloadHash FROM JobsArchive WHERE Id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT Id, Status, PayloadHash FROM JobsDLQ WHERE Id IN (SELECT value FROM json_each(:ids));
