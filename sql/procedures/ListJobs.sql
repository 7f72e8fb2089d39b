SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ListJobs: one page of one pillar, newest first by id. Never reads payloads or headers.
-- Called by: operators.
-- Parameters: @Pillar hot, archive or dlq; @Queue, @Type (empty: any), @Status, @Reason (-1: any), @Tag text contained in the tags
--   (empty: any); @Limit rows; @After the last id of the page before (empty: the first page).
-- Result: Pillar, Id, Status, Queue, Type, Priority, AttemptCount, CrashCount, LeaseNumber, CreatedAtUtc, DueAtUtc, StartedAtUtc,
--   FinishedAtUtc, DurationMs, WorkerId, HeartbeatUtc, Progress, Tags, CreatedBy, OwnerLogin, IdempotencyKey, KeyScope,
--   CancelRequestedAtUtc, FailureReason, ErrorType, ErrorMessage.
-- Table order: the one pillar asked for.
CREATE OR ALTER PROCEDURE chokaq.ListJobs
    @Pillar varchar(10),
    @Queue  varchar(255),
    @Status int,
    @Type   varchar(255),
    @Reason int,
    @Tag    nvarchar(1000),
    @Limit  int,
    @After  varchar(26)
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    IF @Pillar = 'hot'
        SELECT TOP (@Limit) 'hot' AS Pillar, h.Id AS Id, h.Status AS Status, h.Queue AS Queue, h.Type AS Type,
            h.Priority AS Priority, h.AttemptCount AS AttemptCount,
               h.CrashCount AS CrashCount, h.LeaseNumber AS LeaseNumber, h.CreatedAtUtc AS CreatedAtUtc, h.DueAtUtc AS DueAtUtc,
               h.StartedAtUtc AS StartedAtUtc, CAST(NULL AS datetime2(3)) AS FinishedAtUtc, CAST(NULL AS bigint) AS DurationMs,
                   h.WorkerId AS WorkerId, h.HeartbeatUtc AS HeartbeatUtc,
               h.Progress AS Progress, h.Tags AS Tags, h.CreatedBy AS CreatedBy, h.OwnerLogin AS OwnerLogin,
               h.IdempotencyKey AS IdempotencyKey, h.KeyScope AS KeyScope, h.CancelRequestedAtUtc AS CancelRequestedAtUtc,
                   CAST(NULL AS int) AS FailureReason,
               CAST(NULL AS nvarchar(255)) AS ErrorType, CAST(NULL AS nvarchar(4000)) AS ErrorMessage
        FROM chokaq.JobsHot h WITH (READPAST, READCOMMITTEDLOCK)
        WHERE (@After = '' OR h.Id < @After) AND (@Queue = '' OR h.Queue = @Queue) AND (@Type = '' OR h.Type = @Type)
          AND (@Tag = N'' OR CHARINDEX(@Tag, h.Tags) > 0)
          AND (@Status = -1 OR h.Status = @Status) AND @Reason = -1
        ORDER BY h.Id DESC
        OPTION (RECOMPILE);
    ELSE IF @Pillar = 'archive'
        SELECT TOP (@Limit) 'archive' AS Pillar, h.Id AS Id, CAST(3 AS tinyint) AS Status, h.Queue AS Queue, h.Type AS Type,
            h.Priority AS Priority, h.AttemptCount AS AttemptCount,
               h.CrashCount AS CrashCount, h.LeaseNumber AS LeaseNumber, h.CreatedAtUtc AS CreatedAtUtc, h.DueAtUtc AS DueAtUtc,
               h.StartedAtUtc AS StartedAtUtc, h.FinishedAtUtc AS FinishedAtUtc, h.DurationMs AS DurationMs,
                   h.WorkerId AS WorkerId, CAST(NULL AS datetime2(3)) AS HeartbeatUtc,
               h.Progress AS Progress, h.Tags AS Tags, h.CreatedBy AS CreatedBy, h.OwnerLogin AS OwnerLogin,
               h.IdempotencyKey AS IdempotencyKey, h.KeyScope AS KeyScope, CAST(NULL AS datetime2(3)) AS CancelRequestedAtUtc,
                   CAST(NULL AS int) AS FailureReason,
               CAST(NULL AS nvarchar(255)) AS ErrorType, CAST(NULL AS nvarchar(4000)) AS ErrorMessage
        FROM chokaq.JobsArchive h
        WHERE (@After = '' OR h.Id < @After) AND (@Queue = '' OR h.Queue = @Queue) AND (@Type = '' OR h.Type = @Type)
          AND (@Tag = N'' OR CHARINDEX(@Tag, h.Tags) > 0)
          AND (@Status = -1 OR @Status = 3) AND @Reason = -1
        ORDER BY h.Id DESC
        OPTION (RECOMPILE);
    ELSE
        SELECT TOP (@Limit) 'dlq' AS Pillar, h.Id AS Id, h.Status AS Status, h.Queue AS Queue, h.Type AS Type,
            h.Priority AS Priority, h.AttemptCount AS AttemptCount,
               h.CrashCount AS CrashCount, h.LeaseNumber AS LeaseNumber, h.CreatedAtUtc AS CreatedAtUtc, h.DueAtUtc AS DueAtUtc,
               h.StartedAtUtc AS StartedAtUtc, h.FailedAtUtc AS FinishedAtUtc, CAST(NULL AS bigint) AS DurationMs,
                   h.WorkerId AS WorkerId, CAST(NULL AS datetime2(3)) AS HeartbeatUtc,
               h.Progress AS Progress, h.Tags AS Tags, h.CreatedBy AS CreatedBy, h.OwnerLogin AS OwnerLogin,
               h.IdempotencyKey AS IdempotencyKey, h.KeyScope AS KeyScope, h.CancelRequestedAtUtc AS CancelRequestedAtUtc,
                   h.FailureReason AS FailureReason,
               h.ErrorType AS ErrorType, h.ErrorMessage AS ErrorMessage
        FROM chokaq.JobsDLQ h
        WHERE (@After = '' OR h.Id < @After) AND (@Queue = '' OR h.Queue = @Queue) AND (@Type = '' OR h.Type = @Type)
          AND (@Tag = N'' OR CHARINDEX(@Tag, h.Tags) > 0)
          AND (@Status = -1 OR h.Status = @Status) AND (@Reason = -1 OR h.FailureReason = @Reason)
        ORDER BY h.Id DESC
        OPTION (RECOMPILE);
END;
GO
