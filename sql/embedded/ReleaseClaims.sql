-- ReleaseClaims: give up claims whose run has not completed, so that another may run; the marker of a completed run stays. Called
-- by the settle lane of a child, before the jobs are settled. :claims is a document of [key, job id, lease]: all three are the
-- fence.
-- Result: `taken` the keys that are not free now: somebody else's, or done.
-- Table order: RunClaims.

-- name: release
DELETE FROM RunClaims
WHERE State = 'running'
  AND (ClaimKey, JobId, LeaseNumber) IN (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(:claims));

-- name: taken
SELECT c.ClaimKey FROM (SELECT value ->> 0 AS AskedKey FROM json_each(:claims)) AS g
JOIN RunClaims AS c ON c.ClaimKey = g.AskedKey;
