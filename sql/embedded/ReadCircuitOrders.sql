-- ReadCircuitOrders: the orders in force. Called by the claim lane of a child when a fetch tells of a number it has not seen.
-- Results: `number` of the latest order, no row before the first one, read first, so that an order that comes in between is met
-- again by its number; `orders` those in force.
-- Table order: CircuitOrders.

-- name: number
SELECT OrderNumber FROM CircuitOrders WHERE TypeKey = '';

-- name: orders
SELECT TypeKey, Forced, Actor, Reason, AtUtc, OrderNumber FROM CircuitOrders WHERE TypeKey <> '' AND Forced <> 0 ORDER BY TypeKey;
