SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ArchiveZombies: Processing jobs of a queue whose lease was not renewed in time: their owner is taken for dead, and the crash
--   policy applies.
-- Called by: the maintenance leader; safe with two. Call again with NextWorker and NextId while Done is 0.
-- Parameters:
--   @Slot         the caller's slot of the outcome counters.
--   @Queue        the queue.
--   @TimeoutMs    since the last heartbeat of the lease (the override in Queues wins).
--   @Policies     as for ReleaseWorker.
--   @Backoffs     as for ReleaseWorker.
--   @AfterWorker  where the page starts, with @AfterId (both empty: at the beginning).
--   @AfterId      see @AfterWorker.
-- Result: Pending, Zombies, Poisoned, Failed, Cancelled (how many went where), Done, NextWorker, NextId (null: the last page).
-- Table order: Queues, JobsHot, JobsDLQ, CancelRequests, JobAttempts, MetricBuckets.
CREATE OR ALTER PROCEDURE chokaq.ArchiveZombies
    @Slot        int,
    @Queue       varchar(255),
    @TimeoutMs   bigint,
    @Policies    nvarchar(max),
    @Backoffs    nvarchar(max),
    @AfterWorker varchar(26),
    @AfterId     varchar(26)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SET DEADLOCK_PRIORITY LOW;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Second datetime2(0), @Done bit = 1, @Limit datetime2(3);
    -- A type key is printable ASCII, so U+E000 … cannot occur in it and may stand for what a JSON string would have to escape.
    DECLARE @Mapped nvarchar(5) = NCHAR(57344) + NCHAR(57345) + NCHAR(57346) + NCHAR(57347) + NCHAR(57348);
    DECLARE @Plain  nvarchar(5) = N'"\' + NCHAR(10) + NCHAR(13) + NCHAR(9);
    DECLARE @NextWorker char(26), @NextId char(26);
    DECLARE @Page TABLE (
        PageWorker char(26) COLLATE Latin1_General_BIN2 NOT NULL,
        JobId      char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY
    );
    -- One policy per type key (lower case) and one under '' for the rest; the delays are counted by attempts started, and the last
    -- one repeats.
    DECLARE @Policy TABLE (
        PolicyType  varchar(255) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
        MayRetry    bit          NOT NULL,
        CrashLimit  int          NOT NULL,
        MaxAttempts int          NOT NULL,
        MaxAgeMs    bigint       NULL,
        Steps       int          NOT NULL
    );
    DECLARE @Backoff TABLE (
        PolicyType varchar(255) COLLATE Latin1_General_BIN2 NOT NULL,
        Step       int          NOT NULL,
        DelayMs    bigint       NOT NULL,
        PRIMARY KEY (PolicyType, Step)
    );
    DECLARE @Todo TABLE (
        JobId     char(26)     COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
        Lease     int          NOT NULL,
        OldStatus tinyint      NOT NULL,
        Owner     char(26)     COLLATE Latin1_General_BIN2 NULL,
        Cancelled bit          NOT NULL,
        Silent    bigint       NULL,
        NewStatus tinyint      NOT NULL,
        Reason    int          NULL,
        DueUtc    datetime2(3) NULL,
        Refund    int          NOT NULL,
        Crash     int          NOT NULL
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
    INSERT @Policy (PolicyType, MayRetry, CrashLimit, MaxAttempts, MaxAgeMs, Steps)
    SELECT CAST(TRANSLATE(j.t COLLATE Latin1_General_BIN2, @Mapped, @Plain) AS varchar(255)), j.c, j.l, j.m, j.a, j.k
    FROM OPENJSON(@Policies) WITH (t nvarchar(255) '$.t', c bit '$.c', l int '$.l', m int '$.m', a bigint '$.a', k int '$.k') j;
    INSERT @Backoff (PolicyType, Step, DelayMs)
    SELECT CAST(TRANSLATE(j.t COLLATE Latin1_General_BIN2, @Mapped, @Plain) AS varchar(255)), j.n, j.d
    FROM OPENJSON(@Backoffs) WITH (t nvarchar(255) '$.t', n int '$.n', d bigint '$.d') j;
    SELECT @TimeoutMs = COALESCE(q.ZombieTimeoutMs, @TimeoutMs) FROM chokaq.Queues q WHERE q.Name = @Queue;
    SET @Limit = DATEADD(MILLISECOND, CAST((-@TimeoutMs) % 1000 AS int),
                 DATEADD(SECOND, CAST((-@TimeoutMs) / 1000 % 86400 AS int),
                 DATEADD(DAY, CAST((-@TimeoutMs) / 86400000 AS int), @Now)));
    -- A page of leases by (worker, id), from the lease index alone: rows that may not be touched cannot fill it for ever.
    INSERT @Page (PageWorker, JobId)
    SELECT TOP (1000) WorkerId, Id
    FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Lease))
    WHERE Queue = @Queue AND Status IN (1, 2)
      AND WorkerId >= @AfterWorker AND (WorkerId > @AfterWorker OR Id > @AfterId)
    ORDER BY WorkerId, Id;
    IF @@ROWCOUNT = 1000
        SELECT TOP (1) @NextWorker = p.PageWorker, @NextId = p.JobId, @Done = 0
        FROM @Page p ORDER BY p.PageWorker DESC, p.JobId DESC;

    BEGIN TRY
        BEGIN TRANSACTION;
        -- The crash policy, in this order: asked to cancel; crashed too often (poison); no retry wanted, or attempts spent; too
        -- old by the time it would be due; else back, after its delay. Status and reason repeat the same conditions. DATEADD takes
        -- an int, so days, seconds and milliseconds are added apart.
        INSERT @Todo (JobId, Lease, OldStatus, Owner, Cancelled, Silent, NewStatus, Reason, DueUtc, Refund, Crash)
        SELECT h.Id, h.LeaseNumber, h.Status, h.WorkerId, CASE WHEN h.CancelRequestedAtUtc IS NULL THEN 0 ELSE 1 END,
               DATEDIFF_BIG(MILLISECOND, h.HeartbeatUtc, @Now),
               CASE WHEN h.CancelRequestedAtUtc IS NOT NULL THEN 5
                    WHEN h.CrashCount + 1 >= p.CrashLimit THEN 6
                    WHEN p.MayRetry = 0 OR h.AttemptCount >= p.MaxAttempts THEN 6
                    WHEN (p.MaxAgeMs IS NOT NULL
                          AND DATEADD(MILLISECOND, CAST(p.MaxAgeMs % 1000 AS int),
                              DATEADD(SECOND, CAST(p.MaxAgeMs / 1000 % 86400 AS int),
                              DATEADD(DAY, CAST(p.MaxAgeMs / 86400000 AS int), h.AgeFromUtc)))
                            < DATEADD(MILLISECOND, CAST(b.DelayMs % 1000 AS int),
                              DATEADD(SECOND, CAST(b.DelayMs / 1000 % 86400 AS int),
                              DATEADD(DAY, CAST(b.DelayMs / 86400000 AS int), @Now)))) THEN 4
                    ELSE 0 END,
               CASE WHEN h.CancelRequestedAtUtc IS NOT NULL THEN 1
                    WHEN h.CrashCount + 1 >= p.CrashLimit THEN 11
                    WHEN p.MayRetry = 0 OR h.AttemptCount >= p.MaxAttempts THEN 2
                    WHEN (p.MaxAgeMs IS NOT NULL
                          AND DATEADD(MILLISECOND, CAST(p.MaxAgeMs % 1000 AS int),
                              DATEADD(SECOND, CAST(p.MaxAgeMs / 1000 % 86400 AS int),
                              DATEADD(DAY, CAST(p.MaxAgeMs / 86400000 AS int), h.AgeFromUtc)))
                            < DATEADD(MILLISECOND, CAST(b.DelayMs % 1000 AS int),
                              DATEADD(SECOND, CAST(b.DelayMs / 1000 % 86400 AS int),
                              DATEADD(DAY, CAST(b.DelayMs / 86400000 AS int), @Now)))) THEN 10
                    ELSE 2 END,
               DATEADD(MILLISECOND, CAST(b.DelayMs % 1000 AS int),
               DATEADD(SECOND, CAST(b.DelayMs / 1000 % 86400 AS int),
               DATEADD(DAY, CAST(b.DelayMs / 86400000 AS int), @Now))),
               0, 1
        FROM @Page g
        JOIN chokaq.JobsHot h WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK) ON h.Id = g.JobId
        JOIN @Policy p ON p.PolicyType = CASE WHEN EXISTS (SELECT 1 FROM @Policy q WHERE q.PolicyType = LOWER(h.Type))
                                              THEN LOWER(h.Type) ELSE '' END
        JOIN @Backoff b ON b.PolicyType = p.PolicyType
                       AND b.Step = CASE WHEN h.AttemptCount < 1 THEN 1
                                         WHEN h.AttemptCount > p.Steps THEN p.Steps
                                         ELSE h.AttemptCount END
        WHERE h.Status = 2 AND h.HeartbeatUtc < @Limit
        OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);

        IF EXISTS (SELECT 1 FROM @Todo)
        BEGIN
            -- What was read is decided. Each statement repeats the whole predicate; what no longer matches waits for a later call.
            UPDATE chokaq.JobsHot
            SET Status = 0, WorkerId = NULL, FetchRequest = NULL, HeartbeatUtc = NULL, StartedAtUtc = NULL,
                AttemptCount = AttemptCount - (SELECT t.Refund FROM @Todo t WHERE t.JobId = Id AND t.Lease = LeaseNumber),
                CrashCount = CrashCount + (SELECT t.Crash FROM @Todo t WHERE t.JobId = Id AND t.Lease = LeaseNumber),
                DueAtUtc = COALESCE((SELECT t.DueUtc FROM @Todo t WHERE t.JobId = Id AND t.Lease = LeaseNumber), DueAtUtc),
                IsReady = CASE WHEN COALESCE((SELECT t.DueUtc FROM @Todo t WHERE t.JobId = Id AND t.Lease = LeaseNumber),
                                             DueAtUtc) <= @Now THEN 1 ELSE 0 END
            OUTPUT inserted.Id, inserted.LeaseNumber, inserted.Queue INTO @Back (JobId, Lease, BackQueue)
            FROM chokaq.JobsHot WITH (ROWLOCK, READPAST, READCOMMITTEDLOCK, FORCESEEK)
            WHERE Status = 2 AND HeartbeatUtc < @Limit AND CancelRequestedAtUtc IS NULL
              AND Id IN (SELECT DISTINCT TOP (1000) t.JobId FROM @Todo t WHERE t.NewStatus = 0 ORDER BY t.JobId)
              AND EXISTS (SELECT 1 FROM @Todo t
                          WHERE t.JobId = Id AND t.Lease = LeaseNumber AND t.OldStatus = Status AND t.NewStatus = 0)
            OPTION (LOOP JOIN, MAXDOP 1);
            IF EXISTS (SELECT 1 FROM @Todo WHERE NewStatus > 0)
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
                FROM chokaq.JobsHot WITH (ROWLOCK, READPAST, READCOMMITTEDLOCK, FORCESEEK)
                WHERE Status = 2 AND HeartbeatUtc < @Limit
                  AND Id IN (SELECT DISTINCT TOP (1000) t.JobId FROM @Todo t WHERE t.NewStatus > 0 ORDER BY t.JobId)
                  AND EXISTS (SELECT 1 FROM @Todo t
                              WHERE t.JobId = Id AND t.Lease = LeaseNumber AND t.OldStatus = Status AND t.NewStatus > 0
                                AND t.Cancelled = CASE WHEN CancelRequestedAtUtc IS NULL THEN 0 ELSE 1 END)
                OPTION (LOOP JOIN, MAXDOP 1);

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
            SELECT m.JobId, m.Queue, m.Type, t.NewStatus, t.Reason,
                   m.Priority, m.DueAtUtc, m.LeaseNumber, m.AttemptCount, m.CrashCount + t.Crash, m.WorkerId,
                   m.StartedAtUtc, @Now, m.CancelRequestedAtUtc, m.Progress, m.CreatedAtUtc, m.ScheduledAtUtc, m.AgeFromUtc,
                   m.KeyScope, m.PayloadHash, m.IdempotencyKey, m.OwnerLogin, m.CreatedBy, m.Tags,
                   CASE WHEN t.Crash = 1 OR t.Reason = 7 OR t.Silent = -1 THEN N'WorkerDied' END,
                   CASE WHEN t.Crash = 1 OR t.Reason = 7 OR t.Silent = -1
                        THEN CONCAT(N'no heartbeat for ', t.Silent, N' ms from its worker') END,
                   NULL, m.Headers, m.Payload
            FROM @Moved m JOIN @Todo t ON t.JobId = m.JobId;
            DELETE FROM chokaq.CancelRequests
            WHERE JobId IN (SELECT m.JobId FROM @Moved m) AND WorkerId IN (SELECT m.WorkerId FROM @Moved m);
            -- As in ReleaseWorker; here every job counts as crashed.
            INSERT INTO chokaq.JobAttempts (JobId, LeaseNumber, AtUtc, WorkerId, FailureReason, ErrorType, ErrorMessage, Trace)
            SELECT t.JobId, t.Lease, @Now, t.Owner, t.Reason,
                   N'WorkerDied', CONCAT(N'no heartbeat for ', t.Silent, N' ms from its worker'), NULL
            FROM @Todo t
            WHERE (t.Crash = 1 OR t.Reason = 7 OR t.Silent = -1)
              AND (EXISTS (SELECT 1 FROM @Back x WHERE x.JobId = t.JobId)
                   OR EXISTS (SELECT 1 FROM @Moved m WHERE m.JobId = t.JobId))
              AND NOT EXISTS (SELECT 1 FROM chokaq.JobAttempts a WHERE a.JobId = t.JobId AND a.LeaseNumber = t.Lease);

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
            FROM (SELECT TOP (1000) m.Queue AS Queue, t.Reason AS Reason,
                         DATEDIFF_BIG(MILLISECOND, m.DueAtUtc, m.StartedAtUtc) AS Lag
                  FROM @Moved m JOIN @Todo t ON t.JobId = m.JobId
                  ORDER BY m.JobId) t
            GROUP BY t.Queue, t.Reason;
            INSERT @Count (SumQueue, SumOutcome, SumReason, N, L0, L1, L2, L3, L4, L5, L6, L7, L8, L9, L10, L11)
            SELECT x.BackQueue, 2, t.Reason, COUNT(*), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
            FROM @Back x JOIN @Todo t ON t.JobId = x.JobId
            WHERE t.Crash = 1
            GROUP BY x.BackQueue, t.Reason;
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

    SELECT (SELECT COUNT(*) FROM @Back) AS Pending,
           (SELECT COUNT(*) FROM @Todo t JOIN @Moved m ON m.JobId = t.JobId WHERE t.NewStatus = 6 AND t.Reason <> 11) AS Zombies,
           (SELECT COUNT(*) FROM @Todo t JOIN @Moved m ON m.JobId = t.JobId WHERE t.NewStatus = 6 AND t.Reason = 11) AS Poisoned,
           (SELECT COUNT(*) FROM @Todo t JOIN @Moved m ON m.JobId = t.JobId WHERE t.NewStatus = 4) AS Failed,
           (SELECT COUNT(*) FROM @Todo t JOIN @Moved m ON m.JobId = t.JobId WHERE t.NewStatus = 5) AS Cancelled,
           @Done AS Done, @NextWorker AS NextWorker, @NextId AS NextId;
END;
GO
