SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ReadSeries: outcome counters in steps of equal length, summed over slots, oldest first; steps without outcomes are left out.
-- Called by: The Deck.
-- Parameters: @Queue (empty: all); @StepSeconds; @Steps how many, the one under way included.
-- Results: 1. NowUtc, Step (the one under way: whole steps since 2020-01-01); 2. Step, Queue, Outcome, FailureReason, JobCount,
--   DurationMs, Lag0 … Lag11.
-- Table order: MetricBuckets.
CREATE OR ALTER PROCEDURE chokaq.ReadSeries
    @Queue       varchar(255),
    @StepSeconds int,
    @Steps       int
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Step int, @Since datetime2(3);
    SET @Step = DATEDIFF(SECOND, '2020-01-01', @Now) / @StepSeconds;
    SET @Since = DATEADD(SECOND, (@Step - @Steps + 1) * @StepSeconds, CAST('2020-01-01' AS datetime2(3)));
    SELECT @Now AS NowUtc, @Step AS Step;
    SELECT x.Step AS Step, x.Queue AS Queue, x.Outcome AS Outcome, x.FailureReason AS FailureReason,
        SUM(x.JobCount) AS JobCount, SUM(x.DurationMs) AS DurationMs,
        SUM(CAST(x.Lag0 AS bigint)) AS Lag0, SUM(CAST(x.Lag1 AS bigint)) AS Lag1, SUM(CAST(x.Lag2 AS bigint)) AS Lag2,
        SUM(CAST(x.Lag3 AS bigint)) AS Lag3, SUM(CAST(x.Lag4 AS bigint)) AS Lag4, SUM(CAST(x.Lag5 AS bigint)) AS Lag5,
        SUM(CAST(x.Lag6 AS bigint)) AS Lag6, SUM(CAST(x.Lag7 AS bigint)) AS Lag7, SUM(CAST(x.Lag8 AS bigint)) AS Lag8,
        SUM(CAST(x.Lag9 AS bigint)) AS Lag9, SUM(CAST(x.Lag10 AS bigint)) AS Lag10, SUM(CAST(x.Lag11 AS bigint)) AS Lag11
    FROM (SELECT DATEDIFF(SECOND, '2020-01-01', b.StartUtc) / @StepSeconds AS Step, b.Queue AS Queue, b.Outcome AS Outcome,
              b.FailureReason AS FailureReason, b.JobCount AS JobCount, b.DurationMs AS DurationMs,
              b.Lag0 AS Lag0, b.Lag1 AS Lag1, b.Lag2 AS Lag2, b.Lag3 AS Lag3, b.Lag4 AS Lag4, b.Lag5 AS Lag5,
              b.Lag6 AS Lag6, b.Lag7 AS Lag7, b.Lag8 AS Lag8, b.Lag9 AS Lag9, b.Lag10 AS Lag10, b.Lag11 AS Lag11
          FROM chokaq.MetricBuckets b
          WHERE b.Seconds IN (1, 60) AND b.StartUtc >= @Since AND (@Queue = '' OR b.Queue = @Queue)) x
    GROUP BY x.Step, x.Queue, x.Outcome, x.FailureReason
    ORDER BY x.Step, x.Queue, x.Outcome, x.FailureReason
    OPTION (RECOMPILE);
END;
GO
