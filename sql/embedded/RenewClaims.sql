-- RenewClaims: move the expiry of claims that are still held. Called by the pulse lane of a child, together with KeepAlive, when its
-- handlers hold claims. :claims is a document of [key, job id, lease, time to live in ms]; the fence is (key, id, lease).
-- Result: the keys renewed; one that has expired and was taken by nobody is renewed as well.
-- Table order: RunClaims.

-- name: renew
UPDATE RunClaims
SET ExpiresAtUtc = :now + g.TtlMs
FROM (SELECT value ->> 0 AS AskedKey, value ->> 1 AS AskedId, value ->> 2 AS Lease, value ->> 3 AS TtlMs
      FROM json_each(:claims)) AS g
WHERE ClaimKey = g.AskedKey AND JobId = g.AskedId AND LeaseNumber = g.Lease AND State = 'running'
RETURNING ClaimKey;
