-- ListAttempts: the failed attempts of one job, oldest first, at most 1,000. Called by operators and readers.
-- Result: one row per attempt.
-- Table order: JobAttempts.

-- name: list
SELECT JobId, LeaseNumber, AtUtc, WorkerId, FailureReason, ErrorType, ErrorMessage, Trace
FROM JobAttempts WHERE JobId = :id ORDER BY LeaseNumber LIMIT 1000;
