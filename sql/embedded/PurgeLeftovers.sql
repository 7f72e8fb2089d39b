-- PurgeLeftovers: delete what belongs to no job any more: expired window keys whose job is not live, workers that ended long ago
-- (or were never heard of again), minute buckets past their keep, what ended workers said of their circuits, what circuits did long
-- ago or too often, sign-outs of sessions that would have ended by now, expired run claims. Called by the maintenance leader.
-- Result: each statement deletes at most :size rows.
-- Table order: JobKeys, Workers, MetricBuckets, Circuits, CircuitEvents, SignOuts, RunClaims.

-- name: keys
DELETE FROM JobKeys
WHERE IdempotencyKey IN (SELECT k.IdempotencyKey FROM JobKeys AS k
                         WHERE k.ExpiresAtUtc <= :now AND NOT EXISTS (SELECT 1 FROM JobsHot AS h WHERE h.Id = k.JobId)
                         LIMIT :size);

-- name: workers
DELETE FROM Workers
WHERE WorkerId IN (SELECT WorkerId FROM Workers WHERE COALESCE(EndedAtUtc, HeartbeatUtc) < :before LIMIT :size);

-- name: buckets
DELETE FROM MetricBuckets
WHERE (Slot, Seconds, StartUtc, Queue, Outcome, FailureReason) IN (
    SELECT Slot, Seconds, StartUtc, Queue, Outcome, FailureReason
    FROM MetricBuckets INDEXED BY IX_MetricBuckets_Start
    WHERE Seconds = 60 AND StartUtc < :before LIMIT :size);

-- name: circuits
DELETE FROM Circuits
WHERE WorkerId IN (SELECT c.WorkerId FROM Circuits AS c
                   WHERE NOT EXISTS (SELECT 1 FROM Workers AS w WHERE w.WorkerId = c.WorkerId AND w.EndedAtUtc IS NULL)
                   LIMIT :size);

-- name: events
DELETE FROM CircuitEvents
WHERE EventId IN (SELECT EventId FROM CircuitEvents INDEXED BY IX_CircuitEvents_At WHERE AtUtc < :before LIMIT :size);

-- name: many
-- Tries that failed, or are under way, have a bound of their own: they never push out when it all began.
DELETE FROM CircuitEvents
WHERE EventId IN (
    SELECT EventId
    FROM (SELECT EventId, Kept, ROW_NUMBER() OVER (PARTITION BY TypeKey, Kept ORDER BY AtUtc DESC, EventId DESC) AS Place
          FROM (SELECT EventId, TypeKey, AtUtc, CASE WHEN FromState > 0 AND ToState > 0 THEN 1000 ELSE 2000 END AS Kept
                FROM CircuitEvents))
    WHERE Place > Kept LIMIT :size);

-- name: signouts
DELETE FROM SignOuts WHERE SessionId IN (SELECT SessionId FROM SignOuts WHERE UntilUtc <= :now LIMIT :size);

-- name: claims
-- A holder that comes back may renew its own claim for a day after its expiry.
DELETE FROM RunClaims
WHERE ClaimKey IN (SELECT ClaimKey FROM RunClaims INDEXED BY IX_RunClaims_Expires
                   WHERE State = :state AND ExpiresAtUtc <= :before LIMIT :size);
