SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ListBuckets: outcome counters since an instant, summed over slots, oldest first.
-- Called by: operators and readers.
-- Parameters:
--   @Queue    the one that is asked for (empty: all).
--   @SinceMs  how far back to look.
-- Result: StartUtc, Seconds, Queue, Outcome, FailureReason, JobCount, DurationMs, MaxDurationMs, Lag0 … Lag11.
-- Table order: MetricBuckets.
CREATE OR ALTER PROCEDURE chokaq.ListBuckets
    @Queue   varchar(255),
    @SinceMs bigint
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Since datetime2(3);
    -- DATEADD takes an int: days, seconds and milliseconds are added apart.
    SET @Since = DATEADD(MILLISECOND, CAST((-@SinceMs) % 1000 AS int),
                 DATEADD(SECOND, CAST((-@SinceMs) / 1000 % 86400 AS int),
                 DATEADD(DAY, CAST((-@SinceMs) / 86400000 AS int), @Now)));

    SELECT b.StartUtc AS StartUtc, b.Seconds AS Seconds, b.Queue AS Queue, b.Outcome AS Outcome, b.FailureReason AS FailureReason,
           SUM(b.JobCount) AS JobCount, SUM(b.DurationMs) AS DurationMs, MAX(b.MaxDurationMs) AS MaxDurationMs,
           SUM(b.Lag0) AS Lag0, SUM(b.Lag1) AS Lag1, SUM(b.Lag2)  AS Lag2,  SUM(b.Lag3)  AS Lag3,
           SUM(b.Lag4) AS Lag4, SUM(b.Lag5) AS Lag5, SUM(b.Lag6)  AS Lag6,  SUM(b.Lag7)  AS Lag7,
           SUM(b.Lag8) AS Lag8, SUM(b.Lag9) AS Lag9, SUM(b.Lag10) AS Lag10, SUM(b.Lag11) AS Lag11
    FROM chokaq.MetricBuckets b
    WHERE b.Seconds IN (1, 60) AND b.StartUtc >= @Since AND (@Queue = '' OR b.Queue = @Queue)
    GROUP BY b.StartUtc, b.Seconds, b.Queue, b.Outcome, b.FailureReason
    ORDER BY b.StartUtc, b.Seconds, b.Queue, b.Outcome, b.FailureReason
    OPTION (RECOMPILE);
END;
GO
