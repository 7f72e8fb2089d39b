-- ListClaims: the keys that a job's runs hold or have completed. Called by operators and readers, for the view of one job.
-- Result: at most 100 rows, by key.
-- Table order: RunClaims.

-- name: list
SELECT ClaimKey, JobId, LeaseNumber, WorkerId, State, ClaimedAtUtc, DoneAtUtc, ExpiresAtUtc, Result
FROM RunClaims WHERE JobId = :id ORDER BY ClaimKey LIMIT 100;
