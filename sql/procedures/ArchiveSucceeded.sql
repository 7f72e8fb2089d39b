SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ArchiveSucceeded: a set of jobs is done (Processing -> Archive). A cancellation that was only requested does not stop it.
-- Called by: the settle lane of a child.
-- Parameters:
--   @WorkerId  whose cancellation requests go with the jobs.
--   @Slot      the caller's slot of the outcome counters.
--   @Jobs      "lease:id,id,…;lease:id,…;" at most 1,000 ids of one queue, none twice, grouped by lease number.
-- Results: per lease number of which a job is stale, a set of JobId, Lease. What is not named was applied, now or before.
-- Table order: JobsHot, JobsArchive, CancelRequests, MetricBuckets, by Id within a lease number; each number is a transaction. A
-- row that gives way leaves JobsArchive before its id is looked for in JobsHot.
CREATE OR ALTER PROCEDURE chokaq.ArchiveSucceeded
    @WorkerId char(26),
    @Slot     int,
    @Jobs     varchar(max)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Second datetime2(0);
    DECLARE @Lease int, @Ids varchar(max), @Count int, @Moved int, @Colon int, @End int, @GiveWay bit = 0;
    DECLARE @Queue varchar(255), @N bigint, @Ms bigint, @MaxMs bigint,
            @L0 int, @L1 int, @L2 int, @L3 int, @L4 int, @L5 int, @L6 int, @L7 int, @L8 int, @L9 int, @L10 int, @L11 int;
    -- Rounded down: datetime2(0) would round half a second up.
    SET @Second = DATEADD(MILLISECOND, -DATEPART(MILLISECOND, @Now), @Now);

    WHILE @GiveWay = 1 OR LEN(@Jobs) > 0
    BEGIN
        IF @GiveWay = 0
        BEGIN
            SET @Colon = CHARINDEX(':', @Jobs);
            SET @End   = CHARINDEX(';', @Jobs);
            SET @Lease = CAST(LEFT(@Jobs, @Colon - 1) AS int);
            SET @Ids   = SUBSTRING(@Jobs, @Colon + 1, @End - @Colon - 1);
            SET @Jobs  = SUBSTRING(@Jobs, @End + 1, LEN(@Jobs));
            SET @Count = LEN(@Ids) - LEN(REPLACE(@Ids, ',', '')) + 1;
        END;

        BEGIN TRY
            BEGIN TRANSACTION;
            -- An older row of the same id, which a manual repair left in Archive, gives way to this success.
            IF @GiveWay = 1
                DELETE FROM chokaq.JobsArchive
                FROM chokaq.JobsArchive WITH (ROWLOCK, FORCESEEK)
                WHERE Id IN (SELECT h.Id FROM chokaq.JobsHot h WITH (FORCESEEK)
                             WHERE h.Status = 2 AND h.LeaseNumber = @Lease
                               AND h.Id IN (SELECT CAST(s.value AS char(26)) COLLATE Latin1_General_BIN2
                                            FROM STRING_SPLIT(@Ids, ',') s));
            -- By primary key, in the order of ids, so that two sets that share rows rather wait than deadlock. For an engine
            -- that knows no hints the number of ids is told, and the conditions are one expression: it neither walks the lease
            -- index once per id nor takes the table for so small that reading all of it is cheapest.
            DELETE FROM chokaq.JobsHot
            OUTPUT deleted.Id, deleted.Queue, deleted.Type, deleted.Priority, deleted.DueAtUtc, deleted.LeaseNumber,
                   deleted.AttemptCount, deleted.CrashCount, deleted.WorkerId, deleted.StartedAtUtc, @Now,
                   DATEDIFF_BIG(MILLISECOND, deleted.StartedAtUtc, @Now), deleted.Progress, deleted.CreatedAtUtc,
                   deleted.ScheduledAtUtc, deleted.AgeFromUtc, deleted.KeyScope, deleted.PayloadHash, deleted.IdempotencyKey,
                   deleted.OwnerLogin, deleted.CreatedBy, deleted.Tags, deleted.Headers, deleted.Payload
            INTO chokaq.JobsArchive
                  (Id, Queue, Type, Priority, DueAtUtc, LeaseNumber,
                   AttemptCount, CrashCount, WorkerId, StartedAtUtc, FinishedAtUtc,
                   DurationMs, Progress, CreatedAtUtc,
                   ScheduledAtUtc, AgeFromUtc, KeyScope, PayloadHash, IdempotencyKey,
                   OwnerLogin, CreatedBy, Tags, Headers, Payload)
            FROM chokaq.JobsHot WITH (ROWLOCK, FORCESEEK)
            WHERE CASE WHEN Status = 2 AND LeaseNumber = @Lease THEN 1 ELSE 0 END > 0
              AND Id IN (SELECT DISTINCT TOP (@Count) CAST(s.value AS char(26)) COLLATE Latin1_General_BIN2 AS JobId
                         FROM STRING_SPLIT(@Ids, ',') s ORDER BY JobId)
            OPTION (LOOP JOIN, MAXDOP 1);
            SET @Moved = @@ROWCOUNT;

            IF @Moved > 0
            BEGIN
                IF EXISTS (SELECT 1 FROM chokaq.CancelRequests WHERE WorkerId = @WorkerId)
                    DELETE FROM chokaq.CancelRequests
                    WHERE WorkerId = @WorkerId
                      AND EXISTS (SELECT 1 FROM chokaq.JobsArchive a WITH (FORCESEEK)
                                  WHERE a.Id = JobId AND a.LeaseNumber = @Lease);

                -- A worker serves one queue, so its successes make one row of counters. Each is looked up on its own: a join might
                -- be planned while the Archive is empty, and then read all of it.
                SELECT @Queue = MAX(t.Queue), @N = COUNT(*), @Ms = SUM(t.DurationMs), @MaxMs = MAX(t.DurationMs),
                       @L0  = SUM(CASE WHEN t.Lag <= 1 THEN 1 ELSE 0 END),
                       @L1  = SUM(CASE WHEN t.Lag > 1 AND t.Lag <= 4 THEN 1 ELSE 0 END),
                       @L2  = SUM(CASE WHEN t.Lag > 4 AND t.Lag <= 16 THEN 1 ELSE 0 END),
                       @L3  = SUM(CASE WHEN t.Lag > 16 AND t.Lag <= 64 THEN 1 ELSE 0 END),
                       @L4  = SUM(CASE WHEN t.Lag > 64 AND t.Lag <= 256 THEN 1 ELSE 0 END),
                       @L5  = SUM(CASE WHEN t.Lag > 256 AND t.Lag <= 1024 THEN 1 ELSE 0 END),
                       @L6  = SUM(CASE WHEN t.Lag > 1024 AND t.Lag <= 4096 THEN 1 ELSE 0 END),
                       @L7  = SUM(CASE WHEN t.Lag > 4096 AND t.Lag <= 16384 THEN 1 ELSE 0 END),
                       @L8  = SUM(CASE WHEN t.Lag > 16384 AND t.Lag <= 65536 THEN 1 ELSE 0 END),
                       @L9  = SUM(CASE WHEN t.Lag > 65536 AND t.Lag <= 262144 THEN 1 ELSE 0 END),
                       @L10 = SUM(CASE WHEN t.Lag > 262144 AND t.Lag <= 1048576 THEN 1 ELSE 0 END),
                       @L11 = SUM(CASE WHEN t.Lag > 1048576 THEN 1 ELSE 0 END)
                FROM (SELECT TOP (@Count) CAST(s.value AS char(26)) COLLATE Latin1_General_BIN2 AS JobId
                      FROM STRING_SPLIT(@Ids, ',') s ORDER BY JobId) i
                CROSS APPLY (SELECT TOP (1) a.Queue AS Queue, a.DurationMs AS DurationMs,
                                    DATEDIFF_BIG(MILLISECOND, a.DueAtUtc, a.StartedAtUtc) AS Lag
                             FROM chokaq.JobsArchive a WITH (FORCESEEK)
                             WHERE a.Id = i.JobId AND a.FinishedAtUtc = @Now AND a.LeaseNumber = @Lease) t
                OPTION (LOOP JOIN, MAXDOP 1);
                -- One writer per key (the slot), so no lock is needed between the two statements.
                UPDATE chokaq.MetricBuckets
                SET JobCount = JobCount + @N, DurationMs = DurationMs + @Ms,
                    MaxDurationMs = CASE WHEN @MaxMs > MaxDurationMs THEN @MaxMs ELSE MaxDurationMs END,
                    Lag0 = Lag0 + @L0, Lag1 = Lag1 + @L1, Lag2  = Lag2  + @L2,  Lag3  = Lag3  + @L3,
                    Lag4 = Lag4 + @L4, Lag5 = Lag5 + @L5, Lag6  = Lag6  + @L6,  Lag7  = Lag7  + @L7,
                    Lag8 = Lag8 + @L8, Lag9 = Lag9 + @L9, Lag10 = Lag10 + @L10, Lag11 = Lag11 + @L11
                WHERE Slot = @Slot AND Seconds = 1 AND StartUtc = @Second AND Queue = @Queue
                  AND Outcome = 0 AND FailureReason = -1;
                IF @@ROWCOUNT = 0
                    INSERT INTO chokaq.MetricBuckets
                        (Slot, Seconds, StartUtc, Queue, Outcome, FailureReason, JobCount, DurationMs, MaxDurationMs,
                         Lag0, Lag1, Lag2, Lag3, Lag4, Lag5, Lag6, Lag7, Lag8, Lag9, Lag10, Lag11)
                    VALUES (@Slot, 1, @Second, @Queue, 0, -1, @N, @Ms, @MaxMs,
                            @L0, @L1, @L2, @L3, @L4, @L5, @L6, @L7, @L8, @L9, @L10, @L11);
            END;
            COMMIT TRANSACTION;
            SET @GiveWay = 0;
        END TRY
        BEGIN CATCH
            IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
            IF @GiveWay = 1 OR ERROR_NUMBER() NOT IN (2601, 2627)
                THROW;
            SET @GiveWay = 1;
        END CATCH;

        IF @GiveWay = 0 AND @Moved < @Count
            SELECT CAST(s.value AS char(26)) AS JobId, @Lease AS Lease
            FROM STRING_SPLIT(@Ids, ',') s
            WHERE NOT EXISTS (SELECT 1 FROM chokaq.JobsArchive a WITH (FORCESEEK)
                              WHERE a.Id = CAST(s.value AS char(26)) COLLATE Latin1_General_BIN2 AND a.LeaseNumber = @Lease)
            OPTION (LOOP JOIN, MAXDOP 1);
    END;
END;
GO
