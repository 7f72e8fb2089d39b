-- ClaimRuns: running jobs claim the keys under which their work must be done once. A key is free when nobody holds it or what is
-- there has expired; a job enters its own claim again, under the same lease or a newer one. A job that is not Processing under
-- the lease claims nothing. Called by the claim lane of a child, for handlers behind the idempotency middleware.
-- :claims is a document of [key, job id, lease, time to live in ms], no key twice.
-- Result: `shown` one row per claim: key, answer (0 stale, 1 claimed, 2 busy, 3 done), holder, expiry, result.
-- Table order: JobsHot (read), RunClaims.

-- name: claim
INSERT INTO RunClaims (ClaimKey, JobId, LeaseNumber, WorkerId, State, ClaimedAtUtc, ExpiresAtUtc)
SELECT g.AskedKey, g.AskedId, g.Lease, :worker, 'running', :now, :now + g.TtlMs
FROM (SELECT value ->> 0 AS AskedKey, value ->> 1 AS AskedId, value ->> 2 AS Lease, value ->> 3 AS TtlMs
      FROM json_each(:claims)) AS g
WHERE EXISTS (SELECT 1 FROM JobsHot AS h WHERE h.Id = g.AskedId AND h.LeaseNumber = g.Lease AND h.Status = 2)
ON CONFLICT (ClaimKey) DO UPDATE
SET JobId = excluded.JobId, LeaseNumber = excluded.LeaseNumber, WorkerId = excluded.WorkerId, State = 'running',
    ClaimedAtUtc = excluded.ClaimedAtUtc, DoneAtUtc = NULL, ExpiresAtUtc = excluded.ExpiresAtUtc, Result = NULL
WHERE ExpiresAtUtc <= :now
   OR (State = 'running' AND JobId = excluded.JobId AND LeaseNumber <= excluded.LeaseNumber);

-- name: shown
SELECT g.AskedKey,
       CASE WHEN NOT EXISTS (SELECT 1 FROM JobsHot AS h WHERE h.Id = g.AskedId AND h.LeaseNumber = g.Lease AND h.Status = 2) THEN 0
            WHEN c.State = 'done' THEN 3
            WHEN c.JobId <> g.AskedId THEN 2
            WHEN c.LeaseNumber = g.Lease THEN 1
            ELSE 0 END,
       c.JobId, MAX(c.ExpiresAtUtc - :now, 0), c.Result
FROM (SELECT value ->> 0 AS AskedKey, value ->> 1 AS AskedId, value ->> 2 AS Lease FROM json_each(:claims)) AS g
LEFT JOIN RunClaims AS c ON c.ClaimKey = g.AskedKey;
