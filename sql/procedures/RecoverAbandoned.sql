SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- RecoverAbandoned: Fetched jobs of a queue whose lease was not renewed in time return to Pending, without charge (to Cancelled
--   when that was asked for).
-- Called by: the maintenance leader; safe with two. Call again with NextWorker and NextId while Done is 0.
-- Parameters:
--   @Slot         the caller's slot of the outcome counters.
--   @Queue        the queue.
--   @TimeoutMs    since the last heartbeat of the lease.
--   @AfterWorker  where the page starts, with @AfterId (both empty: at the beginning).
--   @AfterId      see @AfterWorker.
-- Result, as of ArchiveZombies: Pending, Zombies, Poisoned, Failed, Cancelled (how many went where; user code had not run, so none
--   is a zombie, poisoned or failed), Done, NextWorker, NextId (null: the last page).
-- Table order: JobsHot, JobsDLQ, CancelRequests, MetricBuckets.
CREATE OR ALTER PROCEDURE chokaq.RecoverAbandoned
    @Slot        int,
    @Queue       varchar(255),
    @TimeoutMs   bigint,
    @AfterWorker varchar(26),
    @AfterId     varchar(26)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SET DEADLOCK_PRIORITY LOW;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Second datetime2(0), @Limit datetime2(3);
    DECLARE @Pending int = 0, @Cancelled int = 0, @Done bit = 1, @NextWorker char(26), @NextId char(26);
    DECLARE @Page TABLE (
        PageWorker char(26) COLLATE Latin1_General_BIN2 NOT NULL,
        JobId      char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY
    );
    DECLARE @Todo TABLE (
        JobId     char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
        Lease     int      NOT NULL,
        Cancelled bit      NOT NULL
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
        INSERT @Todo (JobId, Lease, Cancelled)
        SELECT h.Id, h.LeaseNumber, CASE WHEN h.CancelRequestedAtUtc IS NULL THEN 0 ELSE 1 END
        FROM @Page p
        JOIN chokaq.JobsHot h WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK) ON h.Id = p.JobId
        WHERE h.Status = 1 AND h.HeartbeatUtc < @Limit
        OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);

        IF EXISTS (SELECT 1 FROM @Todo)
        BEGIN
            -- What was read is decided. Each statement repeats the whole predicate; what no longer matches waits for a later call.
            UPDATE chokaq.JobsHot
            SET Status = 0, WorkerId = NULL, FetchRequest = NULL, HeartbeatUtc = NULL, StartedAtUtc = NULL,
                IsReady = CASE WHEN DueAtUtc <= @Now THEN 1 ELSE 0 END
            FROM chokaq.JobsHot WITH (ROWLOCK, READPAST, READCOMMITTEDLOCK, FORCESEEK)
            WHERE Status = 1 AND HeartbeatUtc < @Limit AND CancelRequestedAtUtc IS NULL
              AND Id IN (SELECT DISTINCT TOP (1000) t.JobId FROM @Todo t WHERE t.Cancelled = 0 ORDER BY t.JobId)
              AND EXISTS (SELECT 1 FROM @Todo t WHERE t.JobId = Id AND t.Lease = LeaseNumber AND t.Cancelled = 0)
            OPTION (LOOP JOIN, MAXDOP 1);
            SET @Pending = @@ROWCOUNT;
            IF EXISTS (SELECT 1 FROM @Todo WHERE Cancelled = 1)
            BEGIN
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
                WHERE Status = 1 AND HeartbeatUtc < @Limit AND CancelRequestedAtUtc IS NOT NULL
                  AND Id IN (SELECT DISTINCT TOP (1000) t.JobId FROM @Todo t WHERE t.Cancelled = 1 ORDER BY t.JobId)
                  AND EXISTS (SELECT 1 FROM @Todo t WHERE t.JobId = Id AND t.Lease = LeaseNumber AND t.Cancelled = 1)
                OPTION (LOOP JOIN, MAXDOP 1);
                SET @Cancelled = @@ROWCOUNT;

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
                SELECT m.JobId, m.Queue, m.Type, 5, 1,
                       m.Priority, m.DueAtUtc, m.LeaseNumber, m.AttemptCount, m.CrashCount, m.WorkerId,
                       m.StartedAtUtc, @Now, m.CancelRequestedAtUtc, m.Progress, m.CreatedAtUtc, m.ScheduledAtUtc, m.AgeFromUtc,
                       m.KeyScope, m.PayloadHash, m.IdempotencyKey, m.OwnerLogin, m.CreatedBy, m.Tags,
                       NULL, NULL, NULL, m.Headers, m.Payload
                FROM @Moved m;
                DELETE FROM chokaq.CancelRequests
                WHERE JobId IN (SELECT m.JobId FROM @Moved m) AND WorkerId IN (SELECT m.WorkerId FROM @Moved m);

                INSERT @Count (SumQueue, SumOutcome, SumReason, N, L0, L1, L2, L3, L4, L5, L6, L7, L8, L9, L10, L11)
                SELECT t.Queue, 1, 1, COUNT(*),
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
                FROM (SELECT TOP (1000) m.Queue AS Queue, DATEDIFF_BIG(MILLISECOND, m.DueAtUtc, m.StartedAtUtc) AS Lag
                      FROM @Moved m
                      ORDER BY m.JobId) t
                GROUP BY t.Queue;
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
        END;
        COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
        THROW;
    END CATCH;

    SELECT @Pending AS Pending, 0 AS Zombies, 0 AS Poisoned, 0 AS Failed, @Cancelled AS Cancelled,
           @Done AS Done, @NextWorker AS NextWorker, @NextId AS NextId;
END;
GO
