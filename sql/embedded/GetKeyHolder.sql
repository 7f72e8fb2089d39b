-- GetKeyHolder: the live job that holds an idempotency key, by its own row or by the key's retained or windowed entry. Called by
-- operators, to say what a resurrection would meet.
-- Result: id and status; no row: no live job holds it.
-- Table order: JobsHot, JobKeys, JobsHot by id.

-- name: holder
SELECT Id, Status
FROM JobsHot INDEXED BY UX_JobsHot_Key
WHERE IdempotencyKey = :key AND IdempotencyKey IS NOT NULL
UNION ALL
SELECT h.Id, h.Status
FROM JobKeys AS k CROSS JOIN JobsHot AS h ON h.Id = k.JobId
WHERE k.IdempotencyKey = :key
LIMIT 1;
