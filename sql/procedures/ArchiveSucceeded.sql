SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ArchiveSucceeded: a set of jobs is done (Processing -> Archive). A cancellation that was only requested does not stop it.
-- Called by: the settle lane of a child.
-- Parameters: @WorkerId; @Slot the caller's slot of the outcome counters; @Jobs JSON array of {i: id, l: lease}, not repeated, at
--   most
--   1,000.
-- Result: JobId, Lease, Answer (0 stale, 1 applied by this call or an earlier one).
-- Table order: JobsHot, JobsArchive, CancelRequests, MetricBuckets.
CREATE OR ALTER PROCEDURE chokaq.ArchiveSucceeded
    @WorkerId char(26),
    @Slot     int,
    @Jobs     nvarchar(max)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Second datetime2(0), @Count int, @Moved int;
    DECLARE @Set TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL, Lease int NOT NULL, PRIMARY KEY (JobId, Lease));
    DECLARE @Sum TABLE (
        SumQueue varchar(255) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY, N bigint NOT NULL, Ms bigint NOT NULL,
            MaxMs bigint NOT NULL,
        L0 int NOT NULL, L1 int NOT NULL, L2 int NOT NULL, L3 int NOT NULL, L4 int NOT NULL, L5 int NOT NULL,
        L6 int NOT NULL, L7 int NOT NULL, L8 int NOT NULL, L9 int NOT NULL, L10 int NOT NULL, L11 int NOT NULL);
    INSERT @Set (JobId, Lease) SELECT j.i, j.l FROM OPENJSON(@Jobs) WITH (i char(26) '$.i', l int '$.l') j;
    SET @Count = @@ROWCOUNT;
    -- Rounded down: datetime2(0) would round half a second up.
    SET @Second = DATEADD(MILLISECOND, -DATEPART(MILLISECOND, @Now), @Now);

    BEGIN TRY
        BEGIN TRANSACTION;
        DELETE FROM chokaq.JobsHot
        OUTPUT deleted.Id, deleted.Queue, deleted.Type, deleted.Priority, deleted.DueAtUtc, deleted.LeaseNumber,
            deleted.AttemptCount,
               deleted.CrashCount, deleted.WorkerId, deleted.StartedAtUtc, @Now, DATEDIFF_BIG(MILLISECOND, deleted.StartedAtUtc,
                   @Now),
               deleted.Progress, deleted.CreatedAtUtc, deleted.ScheduledAtUtc, deleted.AgeFromUtc, deleted.KeyScope,
                   deleted.PayloadHash,
               deleted.IdempotencyKey, deleted.OwnerLogin, deleted.CreatedBy, deleted.Tags, deleted.Headers, deleted.Payload
        INTO chokaq.JobsArchive
            (Id, Queue, Type, Priority, DueAtUtc, LeaseNumber, AttemptCount, CrashCount, WorkerId, StartedAtUtc, FinishedAtUtc,
                DurationMs,
             Progress, CreatedAtUtc, ScheduledAtUtc, AgeFromUtc, KeyScope, PayloadHash, IdempotencyKey, OwnerLogin, CreatedBy, Tags,
             Headers, Payload)
        FROM chokaq.JobsHot WITH (ROWLOCK, FORCESEEK)
        WHERE Status = 2 AND Id IN (SELECT TOP (1000) s.JobId FROM @Set s ORDER BY s.JobId)
          AND EXISTS (SELECT 1 FROM @Set s WHERE s.JobId = Id AND s.Lease = LeaseNumber)
        OPTION (LOOP JOIN, MAXDOP 1);
        SET @Moved = @@ROWCOUNT;

        IF @Moved > 0
        BEGIN
            IF EXISTS (SELECT 1 FROM chokaq.CancelRequests WHERE WorkerId = @WorkerId)
                DELETE FROM chokaq.CancelRequests
                WHERE WorkerId = @WorkerId
                  AND EXISTS (SELECT 1 FROM @Set s JOIN chokaq.JobsArchive a ON a.Id = s.JobId AND a.LeaseNumber = s.Lease
                              WHERE s.JobId = CancelRequests.JobId);

            INSERT @Sum (SumQueue, N, Ms, MaxMs, L0, L1, L2, L3, L4, L5, L6, L7, L8, L9, L10, L11)
            SELECT t.Queue, COUNT(*), SUM(t.DurationMs), MAX(t.DurationMs),
                   SUM(CASE WHEN t.Lag <= 1 THEN 1 ELSE 0 END),
                   SUM(CASE WHEN t.Lag > 1 AND t.Lag <= 4 THEN 1 ELSE 0 END),
                   SUM(CASE WHEN t.Lag > 4 AND t.Lag <= 16 THEN 1 ELSE 0 END),
                   SUM(CASE WHEN t.Lag > 16 AND t.Lag <= 64 THEN 1 ELSE 0 END),
                   SUM(CASE WHEN t.Lag > 64 AND t.Lag <= 256 THEN 1 ELSE 0 END),
                   SUM(CASE WHEN t.Lag > 256 AND t.Lag <= 1024 THEN 1 ELSE 0 END),
                   SUM(CASE WHEN t.Lag > 1024 AND t.Lag <= 4096 THEN 1 ELSE 0 END),
                   SUM(CASE WHEN t.Lag > 4096 AND t.Lag <= 16384 THEN 1 ELSE 0 END),
                   SUM(CASE WHEN t.Lag > 16384 AND t.Lag <= 65536 THEN 1 ELSE 0 END),
                   SUM(CASE WHEN t.Lag > 65536 AND t.Lag <= 262144 THEN 1 ELSE 0 END),
                   SUM(CASE WHEN t.Lag > 262144 AND t.Lag <= 1048576 THEN 1 ELSE 0 END),
                   SUM(CASE WHEN t.Lag > 1048576 THEN 1 ELSE 0 END)
            FROM (SELECT TOP (1000) a.Queue AS Queue, a.DurationMs AS DurationMs,
                         DATEDIFF_BIG(MILLISECOND, a.DueAtUtc, a.StartedAtUtc) AS Lag
                  FROM chokaq.JobsArchive a WITH (FORCESEEK)
                  WHERE a.FinishedAtUtc = @Now AND a.Id IN (SELECT TOP (1000) s.JobId FROM @Set s ORDER BY s.JobId)
                  ORDER BY a.Id) t
            GROUP BY t.Queue
            OPTION (LOOP JOIN, MAXDOP 1);
            -- One writer per key (the slot), so no lock is needed between the two statements.
            UPDATE chokaq.MetricBuckets
            SET JobCount = JobCount + m.N, DurationMs = DurationMs + m.Ms,
                MaxDurationMs = CASE WHEN m.MaxMs > MaxDurationMs THEN m.MaxMs ELSE MaxDurationMs END,
                Lag0 = Lag0 + m.L0, Lag1 = Lag1 + m.L1, Lag2 = Lag2 + m.L2, Lag3 = Lag3 + m.L3, Lag4 = Lag4 + m.L4,
                    Lag5 = Lag5 + m.L5,
                Lag6 = Lag6 + m.L6, Lag7 = Lag7 + m.L7, Lag8 = Lag8 + m.L8, Lag9 = Lag9 + m.L9, Lag10 = Lag10 + m.L10,
                    Lag11 = Lag11 + m.L11
            FROM @Sum m
            WHERE Slot = @Slot AND Seconds = 1 AND StartUtc = @Second AND Queue = m.SumQueue AND Outcome = 0 AND FailureReason = -1;
            INSERT INTO chokaq.MetricBuckets
                (Slot, Seconds, StartUtc, Queue, Outcome, FailureReason, JobCount, DurationMs, MaxDurationMs,
                 Lag0, Lag1, Lag2, Lag3, Lag4, Lag5, Lag6, Lag7, Lag8, Lag9, Lag10, Lag11)
            SELECT @Slot, 1, @Second, m.SumQueue, 0, -1, m.N, m.Ms, m.MaxMs, m.L0, m.L1, m.L2, m.L3, m.L4, m.L5, m.L6, m.L7, m.L8,
                m.L9, m.L10, m.L11
            FROM @Sum m
            WHERE NOT EXISTS (SELECT 1 FROM chokaq.MetricBuckets b
                              WHERE b.Slot = @Slot AND b.Seconds = 1 AND b.StartUtc = @Second AND b.Queue = m.SumQueue
                                AND b.Outcome = 0 AND b.FailureReason = -1);
        END;
        COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
        THROW;
    END CATCH;

    IF @Moved = @Count
        SELECT s.JobId AS JobId, s.Lease AS Lease, 1 AS Answer FROM @Set s;
    ELSE
        SELECT s.JobId AS JobId, s.Lease AS Lease, CASE WHEN a.Id IS NULL THEN 0 ELSE 1 END AS Answer
        FROM @Set s LEFT JOIN chokaq.JobsArchive a WITH (FORCESEEK) ON a.Id = s.JobId AND a.LeaseNumber = s.Lease
        OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
END;
GO
