SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ListWorkers: the registry of processes with their live figures, newest first, at most 1,000.
-- Called by: operators and readers.
-- Parameters:
--   @Ended  1: those that have ended, too.
-- Result: WorkerId, Queue, Host, Pid, Version, Slot, MaxWorkers, StartedAtUtc, HeartbeatUtc, HeartbeatAgeMs, EndedAtUtc,
--   EndedCause, Running, Buffered, LoopLagMs, MemoryKb, DrainAtUtc.
-- Table order: Workers.
CREATE OR ALTER PROCEDURE chokaq.ListWorkers
    @Ended bit
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME();

    SELECT TOP (1000) w.WorkerId AS WorkerId, w.Queue AS Queue, w.Host AS Host, w.Pid AS Pid, w.Version AS Version,
           w.Slot AS Slot, w.MaxWorkers AS MaxWorkers, w.StartedAtUtc AS StartedAtUtc, w.HeartbeatUtc AS HeartbeatUtc,
           CASE WHEN w.HeartbeatUtc < @Now THEN DATEDIFF_BIG(MILLISECOND, w.HeartbeatUtc, @Now) ELSE 0 END AS HeartbeatAgeMs,
           w.EndedAtUtc AS EndedAtUtc, w.EndedCause AS EndedCause, w.Running AS Running, w.Buffered AS Buffered,
           w.LoopLagMs AS LoopLagMs, w.MemoryKb AS MemoryKb, w.DrainAtUtc AS DrainAtUtc
    FROM chokaq.Workers w
    WHERE @Ended = 1 OR w.EndedAtUtc IS NULL
    ORDER BY w.StartedAtUtc DESC, w.WorkerId DESC;
END;
GO
