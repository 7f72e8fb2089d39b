SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ListCircuits: what live workers last said of their circuits, and the orders in force.
-- Called by: operators and readers.
-- Results, in this order:
--   1. The circuits, the open ones first, at most 5,000: TypeKey, WorkerId, Queue, Host, State, Failures, Generation,
--      ChangedAtUtc, NextProbeMs (null: none; 0: it is due), LastError.
--   2. The orders: TypeKey, Forced, Actor, Reason, AtUtc, OrderNumber.
-- Table order: Circuits, Workers, CircuitOrders.
CREATE OR ALTER PROCEDURE chokaq.ListCircuits
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME();

    SELECT TOP (5000) c.TypeKey AS TypeKey, c.WorkerId AS WorkerId, c.Queue AS Queue, w.Host AS Host, c.State AS State,
           c.Failures AS Failures, c.Generation AS Generation, c.ChangedAtUtc AS ChangedAtUtc,
           CASE WHEN c.NextProbeUtc > @Now THEN DATEDIFF_BIG(MILLISECOND, @Now, c.NextProbeUtc)
                WHEN c.NextProbeUtc IS NOT NULL THEN 0 END AS NextProbeMs,
           c.LastError AS LastError
    FROM chokaq.Circuits c JOIN chokaq.Workers w ON w.WorkerId = c.WorkerId
    WHERE w.EndedAtUtc IS NULL
    ORDER BY CASE c.State WHEN 1 THEN 0 WHEN 2 THEN 1 ELSE 2 END, c.TypeKey, c.WorkerId;
    SELECT o.TypeKey AS TypeKey, o.Forced AS Forced, o.Actor AS Actor, o.Reason AS Reason, o.AtUtc AS AtUtc,
           o.OrderNumber AS OrderNumber
    FROM chokaq.CircuitOrders o WHERE o.TypeKey <> '' AND o.Forced <> 0 ORDER BY o.TypeKey;
END;
GO
