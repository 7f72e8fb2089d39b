SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- GetJob: one job with payload, headers and note, from whichever pillar it stands in.
-- Called by: clients (a login that has no other role here is shown its own jobs only), workers, operators, readers.
-- Parameters:
--   @JobId  the job.
-- Results: up to four, one per look. The first row of any of them is the job: the columns of ListJobs, then Payload, Headers,
--   Note. No row at all: unknown.
-- Table order: JobsHot, JobsArchive, JobsDLQ, JobsHot again (a job that is just being resurrected is not missed); JobNotes with
--   each of them.
CREATE OR ALTER PROCEDURE chokaq.GetJob
    @JobId char(26)
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    -- A client sees its own jobs only; a worker, an operator and a reader see all.
    DECLARE @Login nvarchar(128) = COALESCE(ORIGINAL_LOGIN(), SUSER_SNAME()), @OwnOnly bit = 0;
    IF IS_ROLEMEMBER(N'chokaq_client') = 1 AND IS_ROLEMEMBER(N'chokaq_worker') = 0
       AND IS_ROLEMEMBER(N'chokaq_operator') = 0 AND IS_ROLEMEMBER(N'chokaq_reader') = 0
        SET @OwnOnly = 1;

    -- No READPAST: a row that is just being moved must be waited for, not reported missing.
    SELECT 'hot' AS Pillar, h.Id AS Id, h.Status AS Status, h.Queue AS Queue, h.Type AS Type, h.Priority AS Priority,
           h.AttemptCount AS AttemptCount, h.CrashCount AS CrashCount, h.LeaseNumber AS LeaseNumber,
           h.CreatedAtUtc AS CreatedAtUtc, h.DueAtUtc AS DueAtUtc, h.StartedAtUtc AS StartedAtUtc,
           CAST(NULL AS datetime2(3)) AS FinishedAtUtc, CAST(NULL AS bigint) AS DurationMs,
           h.WorkerId AS WorkerId, h.HeartbeatUtc AS HeartbeatUtc, h.Progress AS Progress,
           h.Tags AS Tags, h.CreatedBy AS CreatedBy, h.OwnerLogin AS OwnerLogin,
           h.IdempotencyKey AS IdempotencyKey, h.KeyScope AS KeyScope,
           h.CancelRequestedAtUtc AS CancelRequestedAtUtc, CAST(NULL AS int) AS FailureReason,
           CAST(NULL AS nvarchar(255)) AS ErrorType, CAST(NULL AS nvarchar(4000)) AS ErrorMessage,
           h.Payload AS Payload, h.Headers AS Headers, (SELECT n.Note FROM chokaq.JobNotes n WHERE n.JobId = h.Id) AS Note
    FROM chokaq.JobsHot h WHERE h.Id = @JobId AND (@OwnOnly = 0 OR h.OwnerLogin = @Login);
    IF @@ROWCOUNT > 0 RETURN;

    SELECT 'archive' AS Pillar, h.Id AS Id, CAST(3 AS tinyint) AS Status, h.Queue AS Queue, h.Type AS Type, h.Priority AS Priority,
           h.AttemptCount AS AttemptCount, h.CrashCount AS CrashCount, h.LeaseNumber AS LeaseNumber,
           h.CreatedAtUtc AS CreatedAtUtc, h.DueAtUtc AS DueAtUtc, h.StartedAtUtc AS StartedAtUtc,
           h.FinishedAtUtc AS FinishedAtUtc, h.DurationMs AS DurationMs,
           h.WorkerId AS WorkerId, CAST(NULL AS datetime2(3)) AS HeartbeatUtc, h.Progress AS Progress,
           h.Tags AS Tags, h.CreatedBy AS CreatedBy, h.OwnerLogin AS OwnerLogin,
           h.IdempotencyKey AS IdempotencyKey, h.KeyScope AS KeyScope,
           CAST(NULL AS datetime2(3)) AS CancelRequestedAtUtc, CAST(NULL AS int) AS FailureReason,
           CAST(NULL AS nvarchar(255)) AS ErrorType, CAST(NULL AS nvarchar(4000)) AS ErrorMessage,
           h.Payload AS Payload, h.Headers AS Headers, (SELECT n.Note FROM chokaq.JobNotes n WHERE n.JobId = h.Id) AS Note
    FROM chokaq.JobsArchive h WHERE h.Id = @JobId AND (@OwnOnly = 0 OR h.OwnerLogin = @Login);
    IF @@ROWCOUNT > 0 RETURN;

    SELECT 'dlq' AS Pillar, h.Id AS Id, h.Status AS Status, h.Queue AS Queue, h.Type AS Type, h.Priority AS Priority,
           h.AttemptCount AS AttemptCount, h.CrashCount AS CrashCount, h.LeaseNumber AS LeaseNumber,
           h.CreatedAtUtc AS CreatedAtUtc, h.DueAtUtc AS DueAtUtc, h.StartedAtUtc AS StartedAtUtc,
           h.FailedAtUtc AS FinishedAtUtc, CAST(NULL AS bigint) AS DurationMs,
           h.WorkerId AS WorkerId, CAST(NULL AS datetime2(3)) AS HeartbeatUtc, h.Progress AS Progress,
           h.Tags AS Tags, h.CreatedBy AS CreatedBy, h.OwnerLogin AS OwnerLogin,
           h.IdempotencyKey AS IdempotencyKey, h.KeyScope AS KeyScope,
           h.CancelRequestedAtUtc AS CancelRequestedAtUtc, h.FailureReason AS FailureReason,
           h.ErrorType AS ErrorType, h.ErrorMessage AS ErrorMessage,
           h.Payload AS Payload, h.Headers AS Headers, (SELECT n.Note FROM chokaq.JobNotes n WHERE n.JobId = h.Id) AS Note
    FROM chokaq.JobsDLQ h WHERE h.Id = @JobId AND (@OwnOnly = 0 OR h.OwnerLogin = @Login);
    IF @@ROWCOUNT > 0 RETURN;

    SELECT 'hot' AS Pillar, h.Id AS Id, h.Status AS Status, h.Queue AS Queue, h.Type AS Type, h.Priority AS Priority,
           h.AttemptCount AS AttemptCount, h.CrashCount AS CrashCount, h.LeaseNumber AS LeaseNumber,
           h.CreatedAtUtc AS CreatedAtUtc, h.DueAtUtc AS DueAtUtc, h.StartedAtUtc AS StartedAtUtc,
           CAST(NULL AS datetime2(3)) AS FinishedAtUtc, CAST(NULL AS bigint) AS DurationMs,
           h.WorkerId AS WorkerId, h.HeartbeatUtc AS HeartbeatUtc, h.Progress AS Progress,
           h.Tags AS Tags, h.CreatedBy AS CreatedBy, h.OwnerLogin AS OwnerLogin,
           h.IdempotencyKey AS IdempotencyKey, h.KeyScope AS KeyScope,
           h.CancelRequestedAtUtc AS CancelRequestedAtUtc, CAST(NULL AS int) AS FailureReason,
           CAST(NULL AS nvarchar(255)) AS ErrorType, CAST(NULL AS nvarchar(4000)) AS ErrorMessage,
           h.Payload AS Payload, h.Headers AS Headers, (SELECT n.Note FROM chokaq.JobNotes n WHERE n.JobId = h.Id) AS Note
    FROM chokaq.JobsHot h WHERE h.Id = @JobId AND (@OwnOnly = 0 OR h.OwnerLogin = @Login);
END;
GO
