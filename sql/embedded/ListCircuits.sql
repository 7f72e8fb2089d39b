-- ListCircuits: what live workers last said of their circuits, and the orders that stand. Called by operators and readers.
-- Results: `circuits` one row per type and worker, the open ones first, at most 5,000; `orders` those in force.
-- Table order: Circuits, Workers, CircuitOrders.

-- name: circuits
SELECT c.TypeKey, c.WorkerId, c.Queue, w.Host, c.State, c.Failures, c.Generation, c.ChangedAtUtc, c.NextProbeUtc, c.LastError
FROM Circuits AS c CROSS JOIN Workers AS w ON w.WorkerId = c.WorkerId
WHERE w.EndedAtUtc IS NULL
ORDER BY CASE c.State WHEN 1 THEN 0 WHEN 2 THEN 1 ELSE 2 END, c.TypeKey, c.WorkerId LIMIT 5000;

-- name: orders
SELECT TypeKey, Forced, Actor, Reason, AtUtc, OrderNumber FROM CircuitOrders WHERE TypeKey <> '' AND Forced <> 0 ORDER BY TypeKey;
