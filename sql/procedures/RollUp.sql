SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- RollUp: fold per-second buckets older than two hours into minutes (slot 0) and into the lifetime totals. What is folded is
--   deleted in the same transaction, so it is counted once, and the totals never shrink.
-- Called by: the maintenance leader; safe with two (the row of role rollup in Leadership orders them). Call again while it
--   answers 20,000.
-- Result: Folded, how many rows.
-- Table order: Leadership, MetricBuckets, QueueTotals; at most 20 transactions of 1,000 rows each.
CREATE OR ALTER PROCEDURE chokaq.RollUp
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SET DEADLOCK_PRIORITY LOW;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Limit datetime2(0), @Folded int = 0, @Hit int = 1000, @Turn int = 0;
    DECLARE @Key TABLE (
        OldSlot    int          NOT NULL,
        OldStart   datetime2(0) NOT NULL,
        OldQueue   varchar(255) COLLATE Latin1_General_BIN2 NOT NULL,
        OldOutcome tinyint      NOT NULL,
        OldReason  int          NOT NULL,
        PRIMARY KEY (OldSlot, OldStart, OldQueue, OldOutcome, OldReason)
    );
    DECLARE @Old TABLE (
        OldSlot    int          NOT NULL,
        OldStart   datetime2(0) NOT NULL,
        OldQueue   varchar(255) COLLATE Latin1_General_BIN2 NOT NULL,
        OldOutcome tinyint      NOT NULL,
        OldReason  int          NOT NULL,
        N          bigint       NOT NULL,
        Ms         bigint       NOT NULL,
        MaxMs      bigint       NOT NULL,
        L0 int NOT NULL, L1 int NOT NULL, L2  int NOT NULL, L3  int NOT NULL,
        L4 int NOT NULL, L5 int NOT NULL, L6  int NOT NULL, L7  int NOT NULL,
        L8 int NOT NULL, L9 int NOT NULL, L10 int NOT NULL, L11 int NOT NULL,
        PRIMARY KEY (OldSlot, OldStart, OldQueue, OldOutcome, OldReason)
    );
    DECLARE @Sum TABLE (
        SumStart   datetime2(0) NOT NULL,
        SumQueue   varchar(255) COLLATE Latin1_General_BIN2 NOT NULL,
        SumOutcome tinyint      NOT NULL,
        SumReason  int          NOT NULL,
        N          bigint       NOT NULL,
        Ms         bigint       NOT NULL,
        MaxMs      bigint       NOT NULL,
        L0 int NOT NULL, L1 int NOT NULL, L2  int NOT NULL, L3  int NOT NULL,
        L4 int NOT NULL, L5 int NOT NULL, L6  int NOT NULL, L7  int NOT NULL,
        L8 int NOT NULL, L9 int NOT NULL, L10 int NOT NULL, L11 int NOT NULL,
        PRIMARY KEY (SumStart, SumQueue, SumOutcome, SumReason)
    );
    DECLARE @Total TABLE (
        SumQueue varchar(255) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
        Ok       bigint       NOT NULL,
        Bad      bigint       NOT NULL,
        Again    bigint       NOT NULL
    );

    -- Whole minutes only, so that a pass does not leave the latest minute half folded.
    SET @Limit = DATEADD(HOUR, -2, @Now);
    SET @Limit = DATEADD(SECOND, -DATEPART(SECOND, @Limit), @Limit);

    WHILE @Hit = 1000 AND @Turn < 20
    BEGIN
        SET @Turn = @Turn + 1;
        BEGIN TRY
            BEGIN TRANSACTION;
            -- A write first: of two callers the second one waits here.
            UPDATE chokaq.Leadership SET Term = Term + 1, LastPassUtc = @Now WHERE Role = 'rollup';
            IF @@ROWCOUNT = 0
                INSERT INTO chokaq.Leadership (Role, Holder, Term, LastPassUtc) VALUES ('rollup', '', 1, @Now);
            DELETE FROM @Key;
            DELETE FROM @Old;
            DELETE FROM @Sum;
            DELETE FROM @Total;

            INSERT @Key (OldSlot, OldStart, OldQueue, OldOutcome, OldReason)
            SELECT TOP (1000) b.Slot, b.StartUtc, b.Queue, b.Outcome, b.FailureReason
            FROM chokaq.MetricBuckets b WITH (FORCESEEK, INDEX (IX_MetricBuckets_Start))
            WHERE b.Seconds = 1 AND b.StartUtc < @Limit ORDER BY b.StartUtc;
            DELETE FROM chokaq.MetricBuckets
            OUTPUT deleted.Slot, deleted.StartUtc, deleted.Queue, deleted.Outcome, deleted.FailureReason,
                   deleted.JobCount, deleted.DurationMs, deleted.MaxDurationMs,
                   deleted.Lag0, deleted.Lag1, deleted.Lag2, deleted.Lag3, deleted.Lag4, deleted.Lag5,
                   deleted.Lag6, deleted.Lag7, deleted.Lag8, deleted.Lag9, deleted.Lag10, deleted.Lag11
            INTO @Old
                  (OldSlot, OldStart, OldQueue, OldOutcome, OldReason,
                   N, Ms, MaxMs,
                   L0, L1, L2, L3, L4, L5,
                   L6, L7, L8, L9, L10, L11)
            WHERE Seconds = 1
              AND EXISTS (SELECT 1 FROM @Key k
                          WHERE k.OldSlot = Slot AND k.OldStart = StartUtc AND k.OldQueue = Queue
                            AND k.OldOutcome = Outcome AND k.OldReason = FailureReason);
            SET @Hit = @@ROWCOUNT;

            INSERT @Sum
                  (SumStart, SumQueue, SumOutcome, SumReason, N, Ms, MaxMs,
                   L0, L1, L2, L3, L4, L5,
                   L6, L7, L8, L9, L10, L11)
            SELECT t.Minute0, t.OldQueue, t.OldOutcome, t.OldReason, SUM(t.N), SUM(t.Ms), MAX(t.MaxMs),
                   SUM(t.L0), SUM(t.L1), SUM(t.L2), SUM(t.L3), SUM(t.L4), SUM(t.L5),
                   SUM(t.L6), SUM(t.L7), SUM(t.L8), SUM(t.L9), SUM(t.L10), SUM(t.L11)
            FROM (SELECT DATEADD(SECOND, -DATEPART(SECOND, o.OldStart), o.OldStart) AS Minute0,
                         o.OldQueue, o.OldOutcome, o.OldReason, o.N, o.Ms, o.MaxMs,
                         o.L0, o.L1, o.L2, o.L3, o.L4, o.L5,
                         o.L6, o.L7, o.L8, o.L9, o.L10, o.L11
                  FROM @Old o) t
            GROUP BY t.Minute0, t.OldQueue, t.OldOutcome, t.OldReason;
            UPDATE chokaq.MetricBuckets
            SET JobCount = JobCount + m.N, DurationMs = DurationMs + m.Ms,
                MaxDurationMs = CASE WHEN m.MaxMs > MaxDurationMs THEN m.MaxMs ELSE MaxDurationMs END,
                Lag0 = Lag0 + m.L0, Lag1 = Lag1 + m.L1, Lag2  = Lag2  + m.L2,  Lag3  = Lag3  + m.L3,
                Lag4 = Lag4 + m.L4, Lag5 = Lag5 + m.L5, Lag6  = Lag6  + m.L6,  Lag7  = Lag7  + m.L7,
                Lag8 = Lag8 + m.L8, Lag9 = Lag9 + m.L9, Lag10 = Lag10 + m.L10, Lag11 = Lag11 + m.L11
            FROM @Sum m
            WHERE Slot = 0 AND Seconds = 60 AND StartUtc = m.SumStart
              AND Queue = m.SumQueue AND Outcome = m.SumOutcome AND FailureReason = m.SumReason;
            INSERT INTO chokaq.MetricBuckets
                  (Slot, Seconds, StartUtc, Queue, Outcome, FailureReason, JobCount, DurationMs, MaxDurationMs,
                   Lag0, Lag1, Lag2, Lag3, Lag4, Lag5, Lag6, Lag7, Lag8, Lag9, Lag10, Lag11)
            SELECT 0, 60, m.SumStart, m.SumQueue, m.SumOutcome, m.SumReason, m.N, m.Ms, m.MaxMs,
                   m.L0, m.L1, m.L2, m.L3, m.L4, m.L5, m.L6, m.L7, m.L8, m.L9, m.L10, m.L11
            FROM @Sum m
            WHERE NOT EXISTS (SELECT 1 FROM chokaq.MetricBuckets b
                              WHERE b.Slot = 0 AND b.Seconds = 60 AND b.StartUtc = m.SumStart
                                AND b.Queue = m.SumQueue AND b.Outcome = m.SumOutcome AND b.FailureReason = m.SumReason);

            INSERT @Total (SumQueue, Ok, Bad, Again)
            SELECT m.SumQueue,
                   SUM(CASE WHEN m.SumOutcome = 0 THEN m.N ELSE 0 END),
                   SUM(CASE WHEN m.SumOutcome = 1 THEN m.N ELSE 0 END),
                   SUM(CASE WHEN m.SumOutcome = 2 THEN m.N ELSE 0 END)
            FROM @Sum m GROUP BY m.SumQueue;
            UPDATE chokaq.QueueTotals
            SET SucceededTotal = SucceededTotal + t.Ok, FailedTotal = FailedTotal + t.Bad, RetriedTotal = RetriedTotal + t.Again
            FROM @Total t WHERE t.SumQueue = Queue;
            INSERT INTO chokaq.QueueTotals (Queue, SucceededTotal, FailedTotal, RetriedTotal)
            SELECT t.SumQueue, t.Ok, t.Bad, t.Again
            FROM @Total t
            WHERE NOT EXISTS (SELECT 1 FROM chokaq.QueueTotals q WHERE q.Queue = t.SumQueue);
            COMMIT TRANSACTION;
            SET @Folded = @Folded + @Hit;
        END TRY
        BEGIN CATCH
            IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
            THROW;
        END CATCH;
    END;

    SELECT @Folded AS Folded;
END;
GO
