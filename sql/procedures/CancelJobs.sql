SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- CancelJobs: Pending and Fetched jobs go to the DLQ as Cancelled at once; the holder of a Processing one is told. One AuditLog
--   row per job changed, in the same transaction; by its RequestId a repeat of the call knows what it did itself.
-- Called by: operators; clients for their own jobs (members of chokaq_client who are no operators always get @OwnOnly).
-- Parameters: @Jobs JSON array of {i: id}, not repeated, at most 1,000; @Actor; @Reason (empty: none); @OwnOnly 1: only jobs
--   enqueued under the caller's login; @RequestId a ULID of this call, the same when it is repeated (empty: none).
-- Result: JobId, Result (0 cancelled, 1 requested, 2 final); no row for an unknown job.
-- Table order: JobsHot, JobsArchive (read), JobsDLQ, CancelRequests, MetricBuckets (slot 0), AuditLog.
CREATE OR ALTER PROCEDURE chokaq.CancelJobs
    @Jobs      nvarchar(max),
    @Actor     nvarchar(100),
    @Reason    nvarchar(1000),
    @OwnOnly   bit,
    @RequestId varchar(26)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Second datetime2(0), @Round int = 0, @Slot int = 0;
    DECLARE @Login nvarchar(128) = COALESCE(ORIGINAL_LOGIN(), SUSER_SNAME()), @Locked int;
    DECLARE @Set TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY);
    DECLARE @Told TABLE (
        JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY, Lease int NOT NULL,
        Owner char(26) COLLATE Latin1_General_BIN2 NOT NULL);
    DECLARE @Result TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY, Result tinyint NOT NULL);
    DECLARE @Moved TABLE (
        JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY, Queue varchar(255) COLLATE Latin1_General_BIN2 NOT NULL,
        Type varchar(255) COLLATE Latin1_General_BIN2 NOT NULL, Status tinyint NOT NULL, Priority int NOT NULL,
        DueAtUtc datetime2(3) NOT NULL, LeaseNumber int NOT NULL, AttemptCount int NOT NULL, CrashCount int NOT NULL,
        WorkerId char(26) COLLATE Latin1_General_BIN2 NULL, StartedAtUtc datetime2(3) NULL, CancelRequestedAtUtc datetime2(3) NULL,
        Progress tinyint NULL, CreatedAtUtc datetime2(3) NOT NULL, ScheduledAtUtc datetime2(3) NULL,
        AgeFromUtc datetime2(3) NOT NULL, KeyScope tinyint NOT NULL, PayloadHash char(32) COLLATE Latin1_General_BIN2 NOT NULL,
        IdempotencyKey nvarchar(255) COLLATE Latin1_General_BIN2 NULL, OwnerLogin nvarchar(128) NULL, CreatedBy nvarchar(100) NULL,
        Tags nvarchar(1000) NULL, Headers varchar(4000) COLLATE Latin1_General_BIN2 NULL,
        Payload varchar(max) COLLATE Latin1_General_BIN2 NOT NULL);
    DECLARE @Count TABLE (
        SumQueue varchar(255) COLLATE Latin1_General_BIN2 NOT NULL, SumOutcome tinyint NOT NULL, SumReason int NOT NULL,
        N bigint NOT NULL, L0 int NOT NULL, L1 int NOT NULL, L2 int NOT NULL, L3 int NOT NULL, L4 int NOT NULL, L5 int NOT NULL,
        L6 int NOT NULL, L7 int NOT NULL, L8 int NOT NULL, L9 int NOT NULL, L10 int NOT NULL, L11 int NOT NULL,
        PRIMARY KEY (SumQueue, SumOutcome, SumReason));
    -- Rounded down: datetime2(0) would round half a second up.
    SET @Second = DATEADD(MILLISECOND, -DATEPART(MILLISECOND, @Now), @Now);
    IF IS_ROLEMEMBER(N'chokaq_client') = 1 AND IS_ROLEMEMBER(N'chokaq_operator') = 0 SET @OwnOnly = 1;
    SET @Reason = NULLIF(@Reason, N'');
    SET @RequestId = NULLIF(@RequestId, '');
    INSERT @Set (JobId) SELECT j.i FROM OPENJSON(@Jobs) WITH (i char(26) '$.i') j;

    BEGIN TRY
        BEGIN TRANSACTION;
        -- The rows, locked in Id order before the statements below take them by what they are.
        SELECT @Locked = COUNT(*) FROM @Set s JOIN chokaq.JobsHot h WITH (UPDLOCK, ROWLOCK, FORCESEEK) ON h.Id = s.JobId
        OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
        -- A job may change between the two statements (started, handed back): look once more then.
        WHILE @Round < 3
        BEGIN
            SET @Round = @Round + 1;
            DELETE FROM chokaq.JobsHot
            OUTPUT deleted.Id, deleted.Queue, deleted.Type, deleted.Status, deleted.Priority, deleted.DueAtUtc,
                   deleted.LeaseNumber, deleted.AttemptCount, deleted.CrashCount, deleted.WorkerId, deleted.StartedAtUtc,
                   deleted.CancelRequestedAtUtc, deleted.Progress, deleted.CreatedAtUtc, deleted.ScheduledAtUtc,
                   deleted.AgeFromUtc, deleted.KeyScope, deleted.PayloadHash, deleted.IdempotencyKey, deleted.OwnerLogin,
                   deleted.CreatedBy, deleted.Tags, deleted.Headers, deleted.Payload
            INTO @Moved
                (JobId, Queue, Type, Status, Priority, DueAtUtc, LeaseNumber, AttemptCount, CrashCount, WorkerId, StartedAtUtc,
                 CancelRequestedAtUtc, Progress, CreatedAtUtc, ScheduledAtUtc, AgeFromUtc, KeyScope, PayloadHash, IdempotencyKey,
                 OwnerLogin, CreatedBy, Tags, Headers, Payload)
            FROM chokaq.JobsHot WITH (ROWLOCK, FORCESEEK)
            WHERE Status IN (0, 1) AND (@OwnOnly = 0 OR OwnerLogin = @Login)
              AND Id IN (SELECT DISTINCT TOP (1000) s.JobId FROM @Set s ORDER BY s.JobId)
            OPTION (LOOP JOIN, MAXDOP 1);
            UPDATE chokaq.JobsHot SET CancelRequestedAtUtc = @Now
            OUTPUT inserted.Id, inserted.LeaseNumber, inserted.WorkerId INTO @Told (JobId, Lease, Owner)
            FROM chokaq.JobsHot WITH (ROWLOCK, FORCESEEK)
            WHERE Status = 2 AND CancelRequestedAtUtc IS NULL AND (@OwnOnly = 0 OR OwnerLogin = @Login)
              AND Id IN (SELECT DISTINCT TOP (1000) s.JobId FROM @Set s ORDER BY s.JobId)
            OPTION (LOOP JOIN, MAXDOP 1);
            IF NOT EXISTS (SELECT 1 FROM @Set s JOIN chokaq.JobsHot h WITH (FORCESEEK) ON h.Id = s.JobId
                           WHERE h.Status IN (0, 1) AND (@OwnOnly = 0 OR h.OwnerLogin = @Login))
                BREAK;
        END;

        INSERT @Result (JobId, Result) SELECT m.JobId, 0 FROM @Moved m;
        -- What an earlier try of this call cancelled at once, whatever became of it since.
        INSERT @Result (JobId, Result)
        SELECT s.JobId, 0 FROM @Set s
        WHERE NOT EXISTS (SELECT 1 FROM @Result r WHERE r.JobId = s.JobId)
          AND EXISTS (SELECT 1 FROM chokaq.AuditLog a WITH (FORCESEEK)
                      WHERE a.Target = s.JobId AND a.RequestId = @RequestId AND a.AfterState = N'{"status":"Cancelled"}');
        INSERT @Result (JobId, Result)
        SELECT s.JobId, 1 FROM @Set s JOIN chokaq.JobsHot h WITH (FORCESEEK) ON h.Id = s.JobId
        WHERE h.CancelRequestedAtUtc IS NOT NULL AND (@OwnOnly = 0 OR h.OwnerLogin = @Login)
          AND NOT EXISTS (SELECT 1 FROM @Result r WHERE r.JobId = s.JobId);
        INSERT @Result (JobId, Result)
        SELECT s.JobId, 2 FROM @Set s JOIN chokaq.JobsArchive h WITH (FORCESEEK) ON h.Id = s.JobId
        WHERE (@OwnOnly = 0 OR h.OwnerLogin = @Login) AND NOT EXISTS (SELECT 1 FROM @Result r WHERE r.JobId = s.JobId);
        INSERT @Result (JobId, Result)
        SELECT s.JobId, 2 FROM @Set s JOIN chokaq.JobsDLQ h WITH (FORCESEEK) ON h.Id = s.JobId
        WHERE (@OwnOnly = 0 OR h.OwnerLogin = @Login) AND NOT EXISTS (SELECT 1 FROM @Result r WHERE r.JobId = s.JobId);

        IF EXISTS (SELECT 1 FROM @Moved)
        BEGIN
            -- A row of the same id that a manual repair left there gives way: it must not keep its job in Hot for ever.
            DELETE FROM chokaq.JobsDLQ WHERE Id IN (SELECT DISTINCT TOP (1000) m.JobId FROM @Moved m ORDER BY m.JobId)
            OPTION (LOOP JOIN, MAXDOP 1);
            INSERT INTO chokaq.JobsDLQ
                (Id, Queue, Type, Status, FailureReason, Priority, DueAtUtc, LeaseNumber, AttemptCount, CrashCount, WorkerId,
                 StartedAtUtc, FailedAtUtc, CancelRequestedAtUtc, Progress, CreatedAtUtc, ScheduledAtUtc, AgeFromUtc, KeyScope,
                 PayloadHash, IdempotencyKey, OwnerLogin, CreatedBy, Tags, ErrorType, ErrorMessage, LastModifiedBy, Headers,
                 Payload)
            SELECT m.JobId, m.Queue, m.Type, 5, 1, m.Priority, m.DueAtUtc, m.LeaseNumber, m.AttemptCount, m.CrashCount, m.WorkerId,
                   m.StartedAtUtc, @Now, m.CancelRequestedAtUtc, m.Progress, m.CreatedAtUtc, m.ScheduledAtUtc, m.AgeFromUtc,
                   m.KeyScope, m.PayloadHash, m.IdempotencyKey, m.OwnerLogin, m.CreatedBy, m.Tags, NULL, NULL, @Actor, m.Headers,
                   m.Payload
            FROM @Moved m;
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
            FROM (SELECT TOP (1000) m.Queue AS Queue, 1 AS Reason, DATEDIFF_BIG(MILLISECOND, m.DueAtUtc, m.StartedAtUtc) AS Lag
                  FROM @Moved m
                  ORDER BY m.JobId) t
            GROUP BY t.Queue, t.Reason;
            UPDATE chokaq.MetricBuckets
            SET JobCount = JobCount + c.N, Lag0 = Lag0 + c.L0, Lag1 = Lag1 + c.L1, Lag2 = Lag2 + c.L2, Lag3 = Lag3 + c.L3,
                Lag4 = Lag4 + c.L4, Lag5 = Lag5 + c.L5, Lag6 = Lag6 + c.L6, Lag7 = Lag7 + c.L7, Lag8 = Lag8 + c.L8,
                Lag9 = Lag9 + c.L9, Lag10 = Lag10 + c.L10, Lag11 = Lag11 + c.L11
            FROM @Count c
            WHERE Slot = @Slot AND Seconds = 1 AND StartUtc = @Second AND Queue = c.SumQueue AND Outcome = c.SumOutcome
                AND FailureReason = c.SumReason;
            INSERT INTO chokaq.MetricBuckets
                (Slot, Seconds, StartUtc, Queue, Outcome, FailureReason, JobCount, DurationMs, MaxDurationMs,
                 Lag0, Lag1, Lag2, Lag3, Lag4, Lag5, Lag6, Lag7, Lag8, Lag9, Lag10, Lag11)
            SELECT @Slot, 1, @Second, c.SumQueue, c.SumOutcome, c.SumReason, c.N, 0, 0,
                   c.L0, c.L1, c.L2, c.L3, c.L4, c.L5, c.L6, c.L7, c.L8, c.L9, c.L10, c.L11
            FROM @Count c
            WHERE NOT EXISTS (SELECT 1 FROM chokaq.MetricBuckets b
                              WHERE b.Slot = @Slot AND b.Seconds = 1 AND b.StartUtc = @Second AND b.Queue = c.SumQueue
                                AND b.Outcome = c.SumOutcome AND b.FailureReason = c.SumReason);
        END;
        IF EXISTS (SELECT 1 FROM @Told)
        BEGIN
            DELETE FROM chokaq.CancelRequests
            WHERE JobId IN (SELECT t.JobId FROM @Told t) AND WorkerId IN (SELECT t.Owner FROM @Told t);
            INSERT INTO chokaq.CancelRequests (WorkerId, JobId, LeaseNumber, Actor, Reason, RequestedAtUtc)
            SELECT t.Owner, t.JobId, t.Lease, @Actor, @Reason, @Now FROM @Told t;
        END;
        INSERT INTO chokaq.AuditLog (AtUtc, Actor, Action, Target, Reason, BeforeState, AfterState, RequestId)
        SELECT @Now, @Actor, 'cancel', m.JobId, @Reason,
               CASE m.Status WHEN 0 THEN N'{"status":"Pending"}' ELSE N'{"status":"Fetched"}' END, N'{"status":"Cancelled"}',
               @RequestId
        FROM @Moved m
        UNION ALL
        SELECT @Now, @Actor, 'cancel', t.JobId, @Reason, N'{"status":"Processing"}',
               N'{"status":"Processing","cancel_requested":true}', @RequestId
        FROM @Told t;
        COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
        THROW;
    END CATCH;

    SELECT r.JobId AS JobId, r.Result AS Result FROM @Result r;
END;
GO
