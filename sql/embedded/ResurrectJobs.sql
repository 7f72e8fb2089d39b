-- ResurrectJobs: DLQ (Failed, Cancelled, Zombie) -> Pending, due at once, as a new life: attempts and crashes 0, a fresh age; the lease
-- number, priority, key, headers, tags, creator and owner are carried on, save for the edits. Called by operators.
-- Results: `stopped` those that may be resurrected, in Id order; `holders` the live jobs that hold any of their keys; `waiting` the
-- queues of those that are Pending in the end. An earlier try of the call, the audit rows and where everything stands in the end: see
-- Repairs.sql.
-- Table order: JobsDLQ, JobsHot, JobKeys, AuditLog.

-- name: stopped
SELECT Id, Status, Queue, Type, Priority, Tags, IdempotencyKey, AttemptCount, CrashCount, FailureReason, PayloadHash,
       LENGTH(Payload)
FROM JobsDLQ WHERE Id IN (SELECT value FROM json_each(:ids)) AND Status IN (4, 5, 6) ORDER BY Id;

-- name: holders
SELECT IdempotencyKey, Id
FROM JobsHot INDEXED BY UX_JobsHot_Key
WHERE IdempotencyKey IN (SELECT value FROM json_each(:keys)) AND IdempotencyKey IS NOT NULL
UNION ALL
SELECT k.IdempotencyKey, k.JobId
FROM JobKeys AS k
WHERE k.IdempotencyKey IN (SELECT value FROM json_each(:keys)) AND EXISTS (SELECT 1 FROM JobsHot AS h WHERE h.Id = k.JobId);

-- name: move
-- The edits are the same for all: :payload and :priority null leave theirs, :retag says whether :tags is meant.
INSERT INTO JobsHot (Id, Queue, Type, Status, IsReady, Priority, DueAtUtc, LeaseNumber, AttemptCount, CrashCount, Progress,
                     CreatedAtUtc, ScheduledAtUtc, AgeFromUtc, KeyScope, PayloadHash, IdempotencyKey, OwnerLogin, CreatedBy, Tags,
                     Headers, Payload)
SELECT Id, Queue, Type, 0, 1, COALESCE(:priority, Priority), :now, LeaseNumber, 0, 0, Progress, CreatedAtUtc, ScheduledAtUtc, :now,
       CASE WHEN :without_key THEN 0 ELSE KeyScope END, COALESCE(:payload_hash, PayloadHash),
       CASE WHEN :without_key THEN NULL ELSE IdempotencyKey END, OwnerLogin, CreatedBy,
       CASE WHEN :retag THEN :tags ELSE Tags END, Headers, COALESCE(:payload, Payload)
FROM JobsDLQ WHERE Id IN (SELECT value FROM json_each(:ids));

-- name: leave_dlq
DELETE FROM JobsDLQ WHERE Id IN (SELECT value FROM json_each(:ids));

-- name: give_up_keys
DELETE FROM JobKeys WHERE JobId IN (SELECT value FROM json_each(:ids));

-- name: waiting
SELECT Id, Queue FROM JobsHot WHERE Id IN (SELECT value FROM json_each(:ids)) AND Status = 0;
