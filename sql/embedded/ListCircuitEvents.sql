-- ListCircuitEvents: what the circuits of one job type did and what operators ordered about it, newest first. Called by operators and
-- readers.
-- Result: the columns of the T-SQL twin; page on with (AtUtc, EventId) of the last row.
-- Table order: CircuitEvents, Workers.

-- name: list
SELECT e.EventId, e.TypeKey, e.AtUtc, e.FromState, e.ToState, e.WorkerId, e.Host, e.Queue, e.Failures, e.LastError, e.Forced, e.Actor,
       e.Reason, w.EndedAtUtc
FROM CircuitEvents AS e INDEXED BY IX_CircuitEvents_Type LEFT JOIN Workers AS w ON w.WorkerId = e.WorkerId
WHERE e.TypeKey = :type AND e.AtUtc >= :since AND (e.AtUtc, e.EventId) < (:after_ms, :after)
  AND (:tries OR e.FromState IS NULL OR e.FromState = 0 OR e.ToState = 0)
ORDER BY e.AtUtc DESC, e.EventId DESC LIMIT :limit;
