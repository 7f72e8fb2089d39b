-- ForceCircuit: order the circuits of a type to be open or closed everywhere, or to follow their own rule again. An AuditLog row
-- holds before and after, a CircuitEvents row the order. Called by operators.
-- Results: `repeat` a row when an earlier try of this call was committed (then nothing is written); `before` the order that stood;
-- `ticket` the number of the new one; `current` the type's row.
-- Table order: CircuitOrders, AuditLog, CircuitEvents.

-- name: repeat
SELECT 1 FROM AuditLog WHERE Target = :type AND RequestId = :request AND Action = 'force_circuit';

-- name: before
SELECT Forced FROM CircuitOrders WHERE TypeKey = :type;

-- name: ticket
INSERT INTO CircuitOrders (TypeKey, Forced, Actor, Reason, AtUtc, OrderNumber) VALUES ('', 0, '', NULL, :now, 1)
ON CONFLICT (TypeKey) DO UPDATE SET OrderNumber = OrderNumber + 1, AtUtc = excluded.AtUtc
RETURNING OrderNumber;

-- name: write
INSERT INTO CircuitOrders (TypeKey, Forced, Actor, Reason, AtUtc, OrderNumber)
VALUES (:type, :forced, :actor, :reason, :now, :number)
ON CONFLICT (TypeKey) DO UPDATE
SET Forced = excluded.Forced, Actor = excluded.Actor, Reason = excluded.Reason, AtUtc = excluded.AtUtc,
    OrderNumber = excluded.OrderNumber;

-- name: audit
INSERT INTO AuditLog (AtUtc, Actor, Action, Target, Reason, BeforeState, AfterState, RequestId)
VALUES (:now, :actor, 'force_circuit', :type, :reason, :before, :after, :request);

-- name: event
INSERT INTO CircuitEvents (TypeKey, AtUtc, Forced, Actor, Reason) VALUES (:type, :now, :forced, :actor, :reason);

-- name: current
SELECT TypeKey, Forced, Actor, Reason, AtUtc, OrderNumber FROM CircuitOrders WHERE TypeKey = :type;
