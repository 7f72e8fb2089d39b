SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ReadCircuitOrders: the operators' orders in force.
-- Called by: the claim lane of a child, when a fetch tells of a number it has not seen.
-- Results, in this order:
--   1. OrderNumber of the latest order (0: there was none). It is read first, so that an order that comes in between is met again
--      by its number.
--   2. The orders in force: TypeKey, Forced, Actor, Reason, AtUtc, OrderNumber.
-- Table order: CircuitOrders.
CREATE OR ALTER PROCEDURE chokaq.ReadCircuitOrders
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    SELECT COALESCE((SELECT o.OrderNumber FROM chokaq.CircuitOrders o WHERE o.TypeKey = ''), 0) AS OrderNumber;
    SELECT o.TypeKey AS TypeKey, o.Forced AS Forced, o.Actor AS Actor, o.Reason AS Reason, o.AtUtc AS AtUtc,
           o.OrderNumber AS OrderNumber
    FROM chokaq.CircuitOrders o WHERE o.TypeKey <> '' AND o.Forced <> 0 ORDER BY o.TypeKey;
END;
GO
