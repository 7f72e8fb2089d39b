SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ListJobs: one page of one pillar, newest first by id. Never reads payloads or headers.
-- Called by: operators.
-- Parameters: @Pillar hot, archive or dlq; @Queue, @Type (empty: any), @Status, @Reason (-1: any), @Tag text contained in the tags
--   (empty: any); @Limit rows; @After the last id of the page before (empty: the first page); @FromMs, @UntilMs (stopped at or
--   after, and before, that many milliseconds since 1970; -1: any; the DLQ only); @Search text contained in id, type, tags, error
--   type or error message (empty: any; looks at the newest 10,000 that fit the rest).
-- Result: Pillar, Id, Status, Queue, Type, Priority, AttemptCount, CrashCount, LeaseNumber, CreatedAtUtc, DueAtUtc, StartedAtUtc,
--   FinishedAtUtc, DurationMs, WorkerId, HeartbeatUtc, Progress, Tags, CreatedBy, OwnerLogin, IdempotencyKey, KeyScope,
--   CancelRequestedAtUtc, FailureReason, ErrorType, ErrorMessage.
-- Table order: the one pillar asked for.
CREATE OR ALTER PROCEDURE chokaq.ListJobs
    @Pillar  varchar(10),
    @Queue   varchar(255),
    @Status  int,
    @Type    varchar(255),
    @Reason  int,
    @Tag     nvarchar(1000),
    @Limit   int,
    @After   varchar(26),
    @FromMs  bigint,
    @UntilMs bigint,
    @Search  nvarchar(1000)
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @Epoch datetime2(3) = '1970-01-01', @From datetime2(3), @Until datetime2(3);
    -- The smallest id that a search looks at.
    DECLARE @Floor char(26) = '';
    IF @FromMs >= 0
        SET @From = DATEADD(MILLISECOND, CAST(@FromMs % 1000 AS int),
                    DATEADD(SECOND, CAST(@FromMs / 1000 % 86400 AS int),
                    DATEADD(DAY, CAST(@FromMs / 86400000 AS int), @Epoch)));
    IF @UntilMs >= 0
        SET @Until = DATEADD(MILLISECOND, CAST(@UntilMs % 1000 AS int),
                     DATEADD(SECOND, CAST(@UntilMs / 1000 % 86400 AS int),
                     DATEADD(DAY, CAST(@UntilMs / 86400000 AS int), @Epoch)));
    SET @Search = LOWER(@Search);
    IF @Search <> N'' AND @Pillar = 'hot'
        SELECT @Floor = MIN(w.Id)
        FROM (SELECT TOP (10000) h.Id AS Id
              FROM chokaq.JobsHot h WITH (READPAST, READCOMMITTEDLOCK)
              WHERE (@Queue = '' OR h.Queue = @Queue) AND (@Type = '' OR h.Type = @Type)
                AND (@Tag = N'' OR CHARINDEX(@Tag, h.Tags) > 0)
                AND (@Status = -1 OR h.Status = @Status) AND @Reason = -1
                AND @From IS NULL AND @Until IS NULL
              ORDER BY h.Id DESC) w
        OPTION (RECOMPILE);
    IF @Search <> N'' AND @Pillar = 'archive'
        SELECT @Floor = MIN(w.Id)
        FROM (SELECT TOP (10000) h.Id AS Id
              FROM chokaq.JobsArchive h
              WHERE (@Queue = '' OR h.Queue = @Queue) AND (@Type = '' OR h.Type = @Type)
                AND (@Tag = N'' OR CHARINDEX(@Tag, h.Tags) > 0)
                AND (@Status = -1 OR @Status = 3) AND @Reason = -1
                AND @From IS NULL AND @Until IS NULL
              ORDER BY h.Id DESC) w
        OPTION (RECOMPILE);
    IF @Search <> N'' AND @Pillar = 'dlq'
        SELECT @Floor = MIN(w.Id)
        FROM (SELECT TOP (10000) h.Id AS Id
              FROM chokaq.JobsDLQ h
              WHERE (@Queue = '' OR h.Queue = @Queue) AND (@Type = '' OR h.Type = @Type)
                AND (@Tag = N'' OR CHARINDEX(@Tag, h.Tags) > 0)
                AND (@Status = -1 OR h.Status = @Status) AND (@Reason = -1 OR h.FailureReason = @Reason)
                AND (@From IS NULL OR h.FailedAtUtc >= @From) AND (@Until IS NULL OR h.FailedAtUtc < @Until)
              ORDER BY h.Id DESC) w
        OPTION (RECOMPILE);
    IF @Pillar = 'hot'
        SELECT TOP (@Limit) 'hot' AS Pillar, h.Id AS Id, h.Status AS Status, h.Queue AS Queue, h.Type AS Type,
               h.Priority AS Priority, h.AttemptCount AS AttemptCount, h.CrashCount AS CrashCount, h.LeaseNumber AS LeaseNumber,
               h.CreatedAtUtc AS CreatedAtUtc, h.DueAtUtc AS DueAtUtc, h.StartedAtUtc AS StartedAtUtc,
               CAST(NULL AS datetime2(3)) AS FinishedAtUtc, CAST(NULL AS bigint) AS DurationMs, h.WorkerId AS WorkerId,
               h.HeartbeatUtc AS HeartbeatUtc, h.Progress AS Progress, h.Tags AS Tags, h.CreatedBy AS CreatedBy,
               h.OwnerLogin AS OwnerLogin, h.IdempotencyKey AS IdempotencyKey, h.KeyScope AS KeyScope,
               h.CancelRequestedAtUtc AS CancelRequestedAtUtc, CAST(NULL AS int) AS FailureReason,
               CAST(NULL AS nvarchar(255)) AS ErrorType, CAST(NULL AS nvarchar(4000)) AS ErrorMessage
        FROM chokaq.JobsHot h WITH (READPAST, READCOMMITTEDLOCK)
        WHERE (@After = '' OR h.Id < @After) AND (@Queue = '' OR h.Queue = @Queue) AND (@Type = '' OR h.Type = @Type)
          AND (@Tag = N'' OR CHARINDEX(@Tag, h.Tags) > 0)
          AND (@Status = -1 OR h.Status = @Status) AND @Reason = -1
          AND @From IS NULL AND @Until IS NULL
          AND (@Search = N'' OR (h.Id >= @Floor AND (
              CHARINDEX(@Search, LOWER(h.Id) COLLATE Latin1_General_BIN2) > 0
              OR CHARINDEX(@Search, LOWER(h.Type) COLLATE Latin1_General_BIN2) > 0
              OR CHARINDEX(@Search, LOWER(h.Tags) COLLATE Latin1_General_BIN2) > 0)))
        ORDER BY h.Id DESC
        OPTION (RECOMPILE);
    ELSE IF @Pillar = 'archive'
        SELECT TOP (@Limit) 'archive' AS Pillar, h.Id AS Id, CAST(3 AS tinyint) AS Status, h.Queue AS Queue, h.Type AS Type,
               h.Priority AS Priority, h.AttemptCount AS AttemptCount, h.CrashCount AS CrashCount, h.LeaseNumber AS LeaseNumber,
               h.CreatedAtUtc AS CreatedAtUtc, h.DueAtUtc AS DueAtUtc, h.StartedAtUtc AS StartedAtUtc,
               h.FinishedAtUtc AS FinishedAtUtc, h.DurationMs AS DurationMs, h.WorkerId AS WorkerId,
               CAST(NULL AS datetime2(3)) AS HeartbeatUtc, h.Progress AS Progress, h.Tags AS Tags, h.CreatedBy AS CreatedBy,
               h.OwnerLogin AS OwnerLogin, h.IdempotencyKey AS IdempotencyKey, h.KeyScope AS KeyScope,
               CAST(NULL AS datetime2(3)) AS CancelRequestedAtUtc, CAST(NULL AS int) AS FailureReason,
               CAST(NULL AS nvarchar(255)) AS ErrorType, CAST(NULL AS nvarchar(4000)) AS ErrorMessage
        FROM chokaq.JobsArchive h
        WHERE (@After = '' OR h.Id < @After) AND (@Queue = '' OR h.Queue = @Queue) AND (@Type = '' OR h.Type = @Type)
          AND (@Tag = N'' OR CHARINDEX(@Tag, h.Tags) > 0)
          AND (@Status = -1 OR @Status = 3) AND @Reason = -1
          AND @From IS NULL AND @Until IS NULL
          AND (@Search = N'' OR (h.Id >= @Floor AND (
              CHARINDEX(@Search, LOWER(h.Id) COLLATE Latin1_General_BIN2) > 0
              OR CHARINDEX(@Search, LOWER(h.Type) COLLATE Latin1_General_BIN2) > 0
              OR CHARINDEX(@Search, LOWER(h.Tags) COLLATE Latin1_General_BIN2) > 0)))
        ORDER BY h.Id DESC
        OPTION (RECOMPILE);
    ELSE
        SELECT TOP (@Limit) 'dlq' AS Pillar, h.Id AS Id, h.Status AS Status, h.Queue AS Queue, h.Type AS Type,
               h.Priority AS Priority, h.AttemptCount AS AttemptCount, h.CrashCount AS CrashCount, h.LeaseNumber AS LeaseNumber,
               h.CreatedAtUtc AS CreatedAtUtc, h.DueAtUtc AS DueAtUtc, h.StartedAtUtc AS StartedAtUtc,
               h.FailedAtUtc AS FinishedAtUtc, CAST(NULL AS bigint) AS DurationMs, h.WorkerId AS WorkerId,
               CAST(NULL AS datetime2(3)) AS HeartbeatUtc, h.Progress AS Progress, h.Tags AS Tags, h.CreatedBy AS CreatedBy,
               h.OwnerLogin AS OwnerLogin, h.IdempotencyKey AS IdempotencyKey, h.KeyScope AS KeyScope,
               h.CancelRequestedAtUtc AS CancelRequestedAtUtc, h.FailureReason AS FailureReason, h.ErrorType AS ErrorType,
               h.ErrorMessage AS ErrorMessage
        FROM chokaq.JobsDLQ h
        WHERE (@After = '' OR h.Id < @After) AND (@Queue = '' OR h.Queue = @Queue) AND (@Type = '' OR h.Type = @Type)
          AND (@Tag = N'' OR CHARINDEX(@Tag, h.Tags) > 0)
          AND (@Status = -1 OR h.Status = @Status) AND (@Reason = -1 OR h.FailureReason = @Reason)
          AND (@From IS NULL OR h.FailedAtUtc >= @From) AND (@Until IS NULL OR h.FailedAtUtc < @Until)
          AND (@Search = N'' OR (h.Id >= @Floor AND (
              CHARINDEX(@Search, LOWER(h.Id) COLLATE Latin1_General_BIN2) > 0
              OR CHARINDEX(@Search, LOWER(h.Type) COLLATE Latin1_General_BIN2) > 0
              OR CHARINDEX(@Search, LOWER(h.Tags) COLLATE Latin1_General_BIN2) > 0
              OR CHARINDEX(@Search, LOWER(h.ErrorType) COLLATE Latin1_General_BIN2) > 0
              OR CHARINDEX(@Search, LOWER(h.ErrorMessage) COLLATE Latin1_General_BIN2) > 0)))
        ORDER BY h.Id DESC
        OPTION (RECOMPILE);
END;
GO
