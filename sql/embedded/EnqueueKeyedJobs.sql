-- EnqueueKeyedJobs: what a set of jobs with idempotency keys needs beside EnqueueJobs. Called by clients, in the same transaction.
-- Result: `keys` one row per key that has a live holder.
-- Table order: JobKeys, JobsHot, before the insert; the write transaction keeps everyone else away.

-- name: keys
-- Who holds each key: a retained one as long as its job's row exists (the purge deletes both), a windowed one until it expires and
-- its job is no longer live, and any live job.
SELECT k.IdempotencyKey, k.JobId
FROM JobKeys AS k
WHERE k.IdempotencyKey IN (SELECT value FROM json_each(:keys))
  AND (k.ExpiresAtUtc IS NULL OR k.ExpiresAtUtc > :now OR EXISTS (SELECT 1 FROM JobsHot AS h WHERE h.Id = k.JobId))
UNION
SELECT IdempotencyKey, Id
FROM JobsHot INDEXED BY UX_JobsHot_Key
WHERE IdempotencyKey IN (SELECT value FROM json_each(:keys)) AND IdempotencyKey IS NOT NULL;

-- name: take_key
-- An entry found here has expired and its job is no longer live (see `keys`).
INSERT INTO JobKeys (IdempotencyKey, JobId, KeyScope, ExpiresAtUtc) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (IdempotencyKey) DO UPDATE
SET JobId = excluded.JobId, KeyScope = excluded.KeyScope, ExpiresAtUtc = excluded.ExpiresAtUtc;
