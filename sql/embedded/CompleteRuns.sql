-- CompleteRuns: claims become the markers of completed runs. Called by the settle lane of a child, before the jobs are settled.
-- :claims is a document of [key, job id, lease, how long the marker answers in ms or null (for ever), result or null].
-- Result: `shown` the keys completed by this call or an earlier one under the same (key, id, lease).
-- Table order: RunClaims.

-- name: complete
UPDATE RunClaims
SET State = 'done', DoneAtUtc = :now, ExpiresAtUtc = :now + g.TtlMs, Result = g.Result
FROM (SELECT value ->> 0 AS AskedKey, value ->> 1 AS AskedId, value ->> 2 AS Lease, value ->> 3 AS TtlMs, value ->> 4 AS Result
      FROM json_each(:claims)) AS g
WHERE ClaimKey = g.AskedKey AND JobId = g.AskedId AND LeaseNumber = g.Lease AND State = 'running';

-- name: shown
SELECT c.ClaimKey
FROM (SELECT value ->> 0 AS AskedKey, value ->> 1 AS AskedId, value ->> 2 AS Lease FROM json_each(:claims)) AS g
JOIN RunClaims AS c ON c.ClaimKey = g.AskedKey AND c.JobId = g.AskedId AND c.LeaseNumber = g.Lease
WHERE c.State = 'done';
