SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- RescheduleForRetry: a charged failure returns its jobs to Pending (Processing -> Pending). A job whose cancellation was
--   requested ends Cancelled instead; one that would be due too late after its age began ends Failed (RetryLifetimeExpired).
-- Called by: the settle lane of a child.
-- Parameters:
--   @WorkerId  whose attempts these were, and whose cancellation requests go with the jobs.
--   @Slot      the caller's slot of the outcome counters.
--   @Mapped    33 characters that no text of the call holds; they stand for " \ and U+0001 … U+001F, in this order.
--   @Jobs      JSON array, one object per job, none twice, at most 1,000: i id, l lease, d delay in ms, a age limit in ms (absent:
--              none), r reason, t error type, m error message, and x1 … x4 its trace, if any, in pieces of 4,000 characters
--              (free text is mapped).
-- Result: JobId, Lease, Answer (0 stale, 1 applied, 2 cancelled, 3 expired; by this call or an earlier one).
-- Table order: JobsHot, JobsDLQ, CancelRequests, JobAttempts, MetricBuckets.
CREATE OR ALTER PROCEDURE chokaq.RescheduleForRetry
    @WorkerId char(26),
    @Slot     int,
    @Mapped   nvarchar(33),
    @Jobs     nvarchar(max)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Second datetime2(0), @Hit int, @Locked int;
    -- What a JSON string would have to escape travels as one of @Mapped instead, and is put back by TRANSLATE.
    DECLARE @Plain nvarchar(33) = N'"\'
        + NCHAR(1) + NCHAR(2) + NCHAR(3) + NCHAR(4) + NCHAR(5) + NCHAR(6) + NCHAR(7) + NCHAR(8) + NCHAR(9) + NCHAR(10) + NCHAR(11)
        + NCHAR(12) + NCHAR(13) + NCHAR(14) + NCHAR(15) + NCHAR(16) + NCHAR(17) + NCHAR(18) + NCHAR(19) + NCHAR(20) + NCHAR(21)
        + NCHAR(22) + NCHAR(23) + NCHAR(24) + NCHAR(25) + NCHAR(26) + NCHAR(27) + NCHAR(28) + NCHAR(29) + NCHAR(30) + NCHAR(31);
    DECLARE @Set TABLE (
        JobId        char(26)       COLLATE Latin1_General_BIN2 NOT NULL,
        Lease        int            NOT NULL,
        DueUtc       datetime2(3)   NOT NULL,
        OldestUtc    datetime2(3)   NULL,
        Reason       int            NOT NULL,
        ErrorType    nvarchar(255)  NULL,
        ErrorMessage nvarchar(4000) NULL,
        Trace        nvarchar(max)  NULL,
        PRIMARY KEY (JobId, Lease)
    );
    DECLARE @Back TABLE (
        JobId     char(26)     COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
        Lease     int          NOT NULL,
        BackQueue varchar(255) COLLATE Latin1_General_BIN2 NOT NULL
    );
    DECLARE @Moved TABLE (
        JobId                char(26)       COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
        Queue                varchar(255)   COLLATE Latin1_General_BIN2 NOT NULL,
        Type                 varchar(255)   COLLATE Latin1_General_BIN2 NOT NULL,
        Status               tinyint        NOT NULL,
        Priority             int            NOT NULL,
        DueAtUtc             datetime2(3)   NOT NULL,
        LeaseNumber          int            NOT NULL,
        AttemptCount         int            NOT NULL,
        CrashCount           int            NOT NULL,
        WorkerId             char(26)       COLLATE Latin1_General_BIN2 NULL,
        StartedAtUtc         datetime2(3)   NULL,
        CancelRequestedAtUtc datetime2(3)   NULL,
        Progress             tinyint        NULL,
        CreatedAtUtc         datetime2(3)   NOT NULL,
        ScheduledAtUtc       datetime2(3)   NULL,
        AgeFromUtc           datetime2(3)   NOT NULL,
        KeyScope             tinyint        NOT NULL,
        PayloadHash          char(32)       COLLATE Latin1_General_BIN2 NOT NULL,
        IdempotencyKey       nvarchar(255)  COLLATE Latin1_General_BIN2 NULL,
        OwnerLogin           nvarchar(128)  NULL,
        CreatedBy            nvarchar(100)  NULL,
        Tags                 nvarchar(1000) NULL,
        Headers              varchar(4000)  COLLATE Latin1_General_BIN2 NULL,
        Payload              varchar(max)   COLLATE Latin1_General_BIN2 NOT NULL
    );
    DECLARE @Count TABLE (
        SumQueue   varchar(255) COLLATE Latin1_General_BIN2 NOT NULL,
        SumOutcome tinyint      NOT NULL,
        SumReason  int          NOT NULL,
        N          bigint       NOT NULL,
        L0 int NOT NULL, L1 int NOT NULL, L2  int NOT NULL, L3  int NOT NULL,
        L4 int NOT NULL, L5 int NOT NULL, L6  int NOT NULL, L7  int NOT NULL,
        L8 int NOT NULL, L9 int NOT NULL, L10 int NOT NULL, L11 int NOT NULL,
        PRIMARY KEY (SumQueue, SumOutcome, SumReason)
    );

    -- Rounded down: datetime2(0) would round half a second up.
    SET @Second = DATEADD(MILLISECOND, -DATEPART(MILLISECOND, @Now), @Now);
    -- DATEADD takes an int: days, seconds and milliseconds are added apart. A job whose age began before OldestUtc is too old.
    INSERT @Set (JobId, Lease, DueUtc, OldestUtc, Reason, ErrorType, ErrorMessage, Trace)
    SELECT j.i, j.l,
           DATEADD(MILLISECOND, CAST(j.d % 1000 AS int),
           DATEADD(SECOND, CAST(j.d / 1000 % 86400 AS int),
           DATEADD(DAY, CAST(j.d / 86400000 AS int), @Now))),
           CASE WHEN j.a IS NOT NULL
                THEN DATEADD(MILLISECOND, CAST((j.d - j.a) % 1000 AS int),
                     DATEADD(SECOND, CAST((j.d - j.a) / 1000 % 86400 AS int),
                     DATEADD(DAY, CAST((j.d - j.a) / 86400000 AS int), @Now))) END,
           j.r,
           TRANSLATE(j.t COLLATE Latin1_General_BIN2, @Mapped, @Plain),
           TRANSLATE(j.m COLLATE Latin1_General_BIN2, @Mapped, @Plain),
           CAST(TRANSLATE(j.x1 COLLATE Latin1_General_BIN2, @Mapped, @Plain) AS nvarchar(max))
           + COALESCE(TRANSLATE(j.x2 COLLATE Latin1_General_BIN2, @Mapped, @Plain), N'')
           + COALESCE(TRANSLATE(j.x3 COLLATE Latin1_General_BIN2, @Mapped, @Plain), N'')
           + COALESCE(TRANSLATE(j.x4 COLLATE Latin1_General_BIN2, @Mapped, @Plain), N'')
    FROM OPENJSON(@Jobs) WITH (i char(26) '$.i', l int '$.l', d bigint '$.d', a bigint '$.a', r int '$.r',
                               t nvarchar(255) '$.t', m nvarchar(4000) '$.m',
                               x1 nvarchar(4000) '$.x1', x2 nvarchar(4000) '$.x2',
                               x3 nvarchar(4000) '$.x3', x4 nvarchar(4000) '$.x4') j;

    BEGIN TRY
        BEGIN TRANSACTION;
        -- Locked in Id order before the statements below take them by what they are: two callers meet rows in one order.
        SELECT @Locked = COUNT(*)
        FROM @Set s JOIN chokaq.JobsHot h WITH (UPDLOCK, ROWLOCK, FORCESEEK) ON h.Id = s.JobId
        OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
        -- Each statement repeats its whole predicate. The cancelled come last, so that a request that comes in between is met.
        UPDATE chokaq.JobsHot
        SET Status = 0, WorkerId = NULL, FetchRequest = NULL, HeartbeatUtc = NULL, StartedAtUtc = NULL,
            DueAtUtc = (SELECT s.DueUtc FROM @Set s WHERE s.JobId = Id AND s.Lease = LeaseNumber),
            IsReady = CASE WHEN (SELECT s.DueUtc FROM @Set s WHERE s.JobId = Id AND s.Lease = LeaseNumber) <= @Now
                           THEN 1 ELSE 0 END
        OUTPUT inserted.Id, inserted.LeaseNumber, inserted.Queue INTO @Back (JobId, Lease, BackQueue)
        FROM chokaq.JobsHot WITH (ROWLOCK, FORCESEEK)
        WHERE Status = 2 AND CancelRequestedAtUtc IS NULL
          AND Id IN (SELECT DISTINCT TOP (1000) s.JobId FROM @Set s ORDER BY s.JobId)
          AND EXISTS (SELECT 1 FROM @Set s
                      WHERE s.JobId = Id AND s.Lease = LeaseNumber
                        AND (s.OldestUtc IS NULL OR AgeFromUtc >= s.OldestUtc))
        OPTION (LOOP JOIN, MAXDOP 1);
        SET @Hit = @@ROWCOUNT;
        IF @Hit < (SELECT COUNT(*) FROM @Set)
        BEGIN
            -- What the first statement left under its lease is too old, or its cancellation was requested.
            DELETE FROM chokaq.JobsHot
            OUTPUT deleted.Id, deleted.Queue, deleted.Type, deleted.Status, deleted.Priority, deleted.DueAtUtc,
                   deleted.LeaseNumber, deleted.AttemptCount, deleted.CrashCount, deleted.WorkerId, deleted.StartedAtUtc,
                   deleted.CancelRequestedAtUtc, deleted.Progress, deleted.CreatedAtUtc, deleted.ScheduledAtUtc,
                   deleted.AgeFromUtc, deleted.KeyScope, deleted.PayloadHash, deleted.IdempotencyKey,
                   deleted.OwnerLogin, deleted.CreatedBy, deleted.Tags, deleted.Headers, deleted.Payload
            INTO @Moved
                  (JobId, Queue, Type, Status, Priority, DueAtUtc,
                   LeaseNumber, AttemptCount, CrashCount, WorkerId, StartedAtUtc,
                   CancelRequestedAtUtc, Progress, CreatedAtUtc, ScheduledAtUtc,
                   AgeFromUtc, KeyScope, PayloadHash, IdempotencyKey,
                   OwnerLogin, CreatedBy, Tags, Headers, Payload)
            FROM chokaq.JobsHot WITH (ROWLOCK, FORCESEEK)
            WHERE Status = 2
              AND Id IN (SELECT DISTINCT TOP (1000) s.JobId FROM @Set s ORDER BY s.JobId)
              AND EXISTS (SELECT 1 FROM @Set s WHERE s.JobId = Id AND s.Lease = LeaseNumber)
            OPTION (LOOP JOIN, MAXDOP 1);
            SET @Hit = @Hit + @@ROWCOUNT;
        END;

        IF @Hit > 0
        BEGIN
            -- A row of the same id that a manual repair left in the DLQ gives way: it must not keep its job in Hot for ever.
            IF EXISTS (SELECT 1 FROM @Moved)
                DELETE FROM chokaq.JobsDLQ WHERE Id IN (SELECT DISTINCT TOP (1000) m.JobId FROM @Moved m ORDER BY m.JobId)
                OPTION (LOOP JOIN, MAXDOP 1);
            INSERT INTO chokaq.JobsDLQ
                  (Id, Queue, Type, Status, FailureReason,
                   Priority, DueAtUtc, LeaseNumber, AttemptCount, CrashCount, WorkerId,
                   StartedAtUtc, FailedAtUtc, CancelRequestedAtUtc, Progress, CreatedAtUtc, ScheduledAtUtc, AgeFromUtc,
                   KeyScope, PayloadHash, IdempotencyKey, OwnerLogin, CreatedBy, Tags,
                   ErrorType, ErrorMessage, LastModifiedBy, Headers, Payload)
            SELECT m.JobId, m.Queue, m.Type, CASE WHEN m.CancelRequestedAtUtc IS NULL THEN 4 ELSE 5 END,
                   CASE WHEN m.CancelRequestedAtUtc IS NULL THEN 10 ELSE 1 END,
                   m.Priority, m.DueAtUtc, m.LeaseNumber, m.AttemptCount, m.CrashCount, m.WorkerId,
                   m.StartedAtUtc, @Now, m.CancelRequestedAtUtc, m.Progress, m.CreatedAtUtc, m.ScheduledAtUtc, m.AgeFromUtc,
                   m.KeyScope, m.PayloadHash, m.IdempotencyKey, m.OwnerLogin, m.CreatedBy, m.Tags,
                   s.ErrorType, s.ErrorMessage, NULL, m.Headers, m.Payload
            FROM @Moved m JOIN @Set s ON s.JobId = m.JobId AND s.Lease = m.LeaseNumber;
            DELETE FROM chokaq.CancelRequests WHERE WorkerId = @WorkerId AND JobId IN (SELECT m.JobId FROM @Moved m);
            INSERT INTO chokaq.JobAttempts (JobId, LeaseNumber, AtUtc, WorkerId, FailureReason, ErrorType, ErrorMessage, Trace)
            SELECT s.JobId, s.Lease, @Now, @WorkerId, s.Reason, s.ErrorType, s.ErrorMessage, s.Trace
            FROM @Set s
            WHERE (EXISTS (SELECT 1 FROM @Back b WHERE b.JobId = s.JobId AND b.Lease = s.Lease)
                   OR EXISTS (SELECT 1 FROM @Moved m WHERE m.JobId = s.JobId AND m.LeaseNumber = s.Lease))
              AND NOT EXISTS (SELECT 1 FROM chokaq.JobAttempts a WHERE a.JobId = s.JobId AND a.LeaseNumber = s.Lease);

            INSERT @Count (SumQueue, SumOutcome, SumReason, N, L0, L1, L2, L3, L4, L5, L6, L7, L8, L9, L10, L11)
            SELECT t.Queue, 1, t.Reason, COUNT(*),
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
            FROM (SELECT TOP (1000) m.Queue AS Queue, CASE WHEN m.CancelRequestedAtUtc IS NULL THEN 10 ELSE 1 END AS Reason,
                         DATEDIFF_BIG(MILLISECOND, m.DueAtUtc, m.StartedAtUtc) AS Lag
                  FROM @Moved m
                  ORDER BY m.JobId) t
            GROUP BY t.Queue, t.Reason;
            INSERT @Count (SumQueue, SumOutcome, SumReason, N, L0, L1, L2, L3, L4, L5, L6, L7, L8, L9, L10, L11)
            SELECT b.BackQueue, 2, s.Reason, COUNT(*), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
            FROM @Back b JOIN @Set s ON s.JobId = b.JobId AND s.Lease = b.Lease
            GROUP BY b.BackQueue, s.Reason;
            UPDATE chokaq.MetricBuckets
            SET JobCount = JobCount + c.N,
                Lag0 = Lag0 + c.L0, Lag1 = Lag1 + c.L1, Lag2  = Lag2  + c.L2,  Lag3  = Lag3  + c.L3,
                Lag4 = Lag4 + c.L4, Lag5 = Lag5 + c.L5, Lag6  = Lag6  + c.L6,  Lag7  = Lag7  + c.L7,
                Lag8 = Lag8 + c.L8, Lag9 = Lag9 + c.L9, Lag10 = Lag10 + c.L10, Lag11 = Lag11 + c.L11
            FROM @Count c
            WHERE Slot = @Slot AND Seconds = 1 AND StartUtc = @Second
              AND Queue = c.SumQueue AND Outcome = c.SumOutcome AND FailureReason = c.SumReason;
            INSERT INTO chokaq.MetricBuckets
                  (Slot, Seconds, StartUtc, Queue, Outcome, FailureReason, JobCount, DurationMs, MaxDurationMs,
                   Lag0, Lag1, Lag2, Lag3, Lag4, Lag5, Lag6, Lag7, Lag8, Lag9, Lag10, Lag11)
            SELECT @Slot, 1, @Second, c.SumQueue, c.SumOutcome, c.SumReason, c.N, 0, 0,
                   c.L0, c.L1, c.L2, c.L3, c.L4, c.L5, c.L6, c.L7, c.L8, c.L9, c.L10, c.L11
            FROM @Count c
            WHERE NOT EXISTS (SELECT 1 FROM chokaq.MetricBuckets b
                              WHERE b.Slot = @Slot AND b.Seconds = 1 AND b.StartUtc = @Second
                                AND b.Queue = c.SumQueue AND b.Outcome = c.SumOutcome AND b.FailureReason = c.SumReason);
        END;
        COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
        THROW;
    END CATCH;

    IF (SELECT COUNT(*) FROM @Back) = (SELECT COUNT(*) FROM @Set)
        SELECT s.JobId AS JobId, s.Lease AS Lease, 1 AS Answer FROM @Set s;
    ELSE
        -- The DLQ row of this lease decides; without one, the attempt that the reschedule left behind is its evidence.
        SELECT s.JobId AS JobId, s.Lease AS Lease,
               CASE WHEN d.Status = 5 AND d.FailureReason = 1 THEN 2
                    WHEN d.Status = 4 AND d.FailureReason = 10 THEN 3
                    WHEN d.Id IS NOT NULL THEN 0
                    WHEN a.JobId IS NOT NULL THEN 1
                    ELSE 0 END AS Answer
        FROM @Set s
        LEFT JOIN chokaq.JobsDLQ d WITH (FORCESEEK) ON d.Id = s.JobId AND d.LeaseNumber = s.Lease
        LEFT JOIN chokaq.JobAttempts a WITH (FORCESEEK) ON a.JobId = s.JobId AND a.LeaseNumber = s.Lease
        OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
END;
GO
