-- GetJob: one job with payload, headers and its last note, from whichever pillar it stands in. Called by clients and operators.
-- Result: at most one row. One statement sees one committed state, so a job on its way from pillar to pillar is never missed.
-- Table order: JobsHot, JobsArchive, JobsDLQ, JobNotes.

-- name: get
SELECT j.*, (SELECT Note FROM JobNotes WHERE JobId = :id)
FROM (
    SELECT 'hot' AS Pillar, Id, Status, Queue, Type, Priority, AttemptCount, CrashCount, LeaseNumber,
           CreatedAtUtc, DueAtUtc, StartedAtUtc, NULL AS FinishedAtUtc, NULL AS DurationMs, WorkerId, HeartbeatUtc, Progress,
           Tags, CreatedBy, OwnerLogin, IdempotencyKey, KeyScope,
           CancelRequestedAtUtc, NULL AS FailureReason, NULL AS ErrorType, NULL AS ErrorMessage, Payload, Headers
    FROM JobsHot WHERE Id = :id
    UNION ALL
    SELECT 'archive', Id, 3, Queue, Type, Priority, AttemptCount, CrashCount, LeaseNumber,
           CreatedAtUtc, DueAtUtc, StartedAtUtc, FinishedAtUtc, DurationMs, WorkerId, NULL, Progress,
           Tags, CreatedBy, OwnerLogin, IdempotencyKey, KeyScope,
           NULL, NULL, NULL, NULL, Payload, Headers
    FROM JobsArchive WHERE Id = :id
    UNION ALL
    SELECT 'dlq', Id, Status, Queue, Type, Priority, AttemptCount, CrashCount, LeaseNumber,
           CreatedAtUtc, DueAtUtc, StartedAtUtc, FailedAtUtc, NULL, WorkerId, NULL, Progress,
           Tags, CreatedBy, OwnerLogin, IdempotencyKey, KeyScope,
           CancelRequestedAtUtc, FailureReason, ErrorType, ErrorMessage, Payload, Headers
    FROM JobsDLQ WHERE Id = :id
) AS j;
