-- EditJob: change payload (with its hash), tags or priority of a job that is Pending, or Failed, Cancelled or Zombie. Called by
-- operators.
-- Results: `editable` the job as it is, and whether it stands in Hot. An earlier try, the audit row and the state: see Repairs.sql.
-- Table order: JobsHot, JobsDLQ, AuditLog.

-- name: editable
SELECT 1, Id, Status, Queue, Type, Priority, Tags, IdempotencyKey, AttemptCount, CrashCount, NULL, PayloadHash, LENGTH(Payload)
FROM JobsHot WHERE Id = :id AND Status = 0
UNION ALL
SELECT 0, Id, Status, Queue, Type, Priority, Tags, IdempotencyKey, AttemptCount, CrashCount, FailureReason, PayloadHash,
       LENGTH(Payload)
FROM JobsDLQ WHERE Id = :id AND Status IN (4, 5, 6);

-- name: hot
-- :payload and :priority null leave theirs, :retag says whether :tags is meant.
UPDATE JobsHot
SET Priority = COALESCE(:priority, Priority), Tags = CASE WHEN :retag THEN :tags ELSE Tags END,
    PayloadHash = COALESCE(:payload_hash, PayloadHash), Payload = COALESCE(:payload, Payload)
WHERE Id = :id;

-- name: dlq
UPDATE JobsDLQ
SET Priority = COALESCE(:priority, Priority), Tags = CASE WHEN :retag THEN :tags ELSE Tags END,
    PayloadHash = COALESCE(:payload_hash, PayloadHash), Payload = COALESCE(:payload, Payload), LastModifiedBy = :actor
WHERE Id = :id;
