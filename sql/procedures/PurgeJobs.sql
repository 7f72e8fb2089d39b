SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- PurgeJobs: delete jobs of Archive or DLQ with their keys, notes and attempts. One AuditLog row per job deleted, in the same
--   transaction: it keeps what the job was; by its RequestId a repeat of the call knows what it did itself.
-- Called by: operators.
-- Parameters: @Jobs JSON array of {i: id}, not repeated, at most 1,000; @Actor; @Reason (empty: none); @RequestId a ULID of this
--   call, the same when it is repeated (empty: none).
-- Result: JobId, Result (0 accepted, 1 wrong state: it is live, 2 unknown), Status (where it stands now, null: nowhere), Holder
--   (null).
-- Table order: JobsArchive, JobsDLQ, JobKeys, JobNotes, JobAttempts, JobsHot (read), AuditLog.
CREATE OR ALTER PROCEDURE chokaq.PurgeJobs
    @Jobs      nvarchar(max),
    @Actor     nvarchar(100),
    @Reason    nvarchar(1000),
    @RequestId varchar(26)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Locked int;
    DECLARE @Set TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY);
    DECLARE @Found TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY, BeforeState nvarchar(max) NULL);
    DECLARE @Answer TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY, Result tinyint NOT NULL);
    DECLARE @Stands TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY, Status tinyint NOT NULL);
    SET @Reason = NULLIF(@Reason, N'');
    SET @RequestId = NULLIF(@RequestId, '');
    INSERT @Set (JobId) SELECT j.i FROM OPENJSON(@Jobs) WITH (i char(26) '$.i') j;

    BEGIN TRY
        BEGIN TRANSACTION;
        -- The rows, locked in Id order; then a write that changes nothing: it, and no hint, keeps a second operator out.
        SELECT @Locked = COUNT(*) FROM @Set s JOIN chokaq.JobsArchive d WITH (UPDLOCK, ROWLOCK, FORCESEEK) ON d.Id = s.JobId
        OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
        UPDATE chokaq.JobsArchive SET LeaseNumber = LeaseNumber
        FROM chokaq.JobsArchive WITH (ROWLOCK, FORCESEEK)
        WHERE Id IN (SELECT DISTINCT TOP (1000) s.JobId FROM @Set s ORDER BY s.JobId)
        OPTION (LOOP JOIN, MAXDOP 1);
        SELECT @Locked = COUNT(*) FROM @Set s JOIN chokaq.JobsDLQ d WITH (UPDLOCK, ROWLOCK, FORCESEEK) ON d.Id = s.JobId
        OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
        UPDATE chokaq.JobsDLQ SET LeaseNumber = LeaseNumber
        FROM chokaq.JobsDLQ WITH (ROWLOCK, FORCESEEK)
        WHERE Id IN (SELECT DISTINCT TOP (1000) s.JobId FROM @Set s ORDER BY s.JobId)
        OPTION (LOOP JOIN, MAXDOP 1);

        -- What an earlier try of this call did, whatever became of it since.
        IF @RequestId IS NOT NULL
            INSERT @Answer (JobId, Result)
            SELECT s.JobId, 0 FROM @Set s
            WHERE EXISTS (SELECT 1 FROM chokaq.AuditLog a WITH (FORCESEEK)
                          WHERE a.Target = s.JobId AND a.RequestId = @RequestId AND a.Action = 'purge');
        INSERT @Found (JobId, BeforeState)
        SELECT d.Id,
               (SELECT 'Succeeded' AS status, d.Queue AS queue, d.Type AS type, d.Priority AS priority, d.Tags AS tags,
                       d.IdempotencyKey AS idempotency_key, d.AttemptCount AS attempts, d.CrashCount AS crashes,
                       CAST(NULL AS int) AS failure_reason, d.PayloadHash AS payload_hash, DATALENGTH(d.Payload) AS payload_size
                FOR JSON PATH, INCLUDE_NULL_VALUES, WITHOUT_ARRAY_WRAPPER)
        FROM @Set s JOIN chokaq.JobsArchive d WITH (FORCESEEK) ON d.Id = s.JobId
        WHERE NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = s.JobId)
        OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
        INSERT @Found (JobId, BeforeState)
        SELECT d.Id,
               (SELECT CASE d.Status WHEN 4 THEN 'Failed' WHEN 5 THEN 'Cancelled' WHEN 6 THEN 'Zombie' ELSE 'Dropped' END AS status,
                       d.Queue AS queue, d.Type AS type, d.Priority AS priority, d.Tags AS tags,
                       d.IdempotencyKey AS idempotency_key, d.AttemptCount AS attempts, d.CrashCount AS crashes,
                       d.FailureReason AS failure_reason, d.PayloadHash AS payload_hash, DATALENGTH(d.Payload) AS payload_size
                FOR JSON PATH, INCLUDE_NULL_VALUES, WITHOUT_ARRAY_WRAPPER)
        FROM @Set s JOIN chokaq.JobsDLQ d WITH (FORCESEEK) ON d.Id = s.JobId
        WHERE NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = s.JobId)
        OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);

        DELETE FROM chokaq.JobsArchive
        FROM chokaq.JobsArchive WITH (ROWLOCK, FORCESEEK)
        WHERE Id IN (SELECT DISTINCT TOP (1000) f.JobId FROM @Found f ORDER BY f.JobId)
        OPTION (LOOP JOIN, MAXDOP 1);
        DELETE FROM chokaq.JobsDLQ
        FROM chokaq.JobsDLQ WITH (ROWLOCK, FORCESEEK)
        WHERE Id IN (SELECT DISTINCT TOP (1000) f.JobId FROM @Found f ORDER BY f.JobId)
        OPTION (LOOP JOIN, MAXDOP 1);
        DELETE FROM chokaq.JobKeys WHERE JobId IN (SELECT DISTINCT TOP (1000) f.JobId FROM @Found f ORDER BY f.JobId);
        DELETE FROM chokaq.JobNotes WHERE JobId IN (SELECT DISTINCT TOP (1000) f.JobId FROM @Found f ORDER BY f.JobId);
        DELETE FROM chokaq.JobAttempts WHERE JobId IN (SELECT DISTINCT TOP (1000) f.JobId FROM @Found f ORDER BY f.JobId);
        INSERT @Answer (JobId, Result) SELECT f.JobId, 0 FROM @Found f;

        -- Where each stands now, Hot before Archive before DLQ; Hot again, since a job may be on its way back there.
        INSERT @Stands (JobId, Status)
        SELECT p.JobId, MIN(p.Status)
        FROM (SELECT s.JobId, h.Status FROM @Set s JOIN chokaq.JobsHot h WITH (FORCESEEK) ON h.Id = s.JobId
              UNION ALL
              SELECT s.JobId, 3 FROM @Set s JOIN chokaq.JobsArchive a WITH (FORCESEEK) ON a.Id = s.JobId
              UNION ALL
              SELECT s.JobId, d.Status FROM @Set s JOIN chokaq.JobsDLQ d WITH (FORCESEEK) ON d.Id = s.JobId
              UNION ALL
              SELECT s.JobId, h.Status FROM @Set s JOIN chokaq.JobsHot h WITH (FORCESEEK) ON h.Id = s.JobId) p
        GROUP BY p.JobId
        OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);

        INSERT INTO chokaq.AuditLog (AtUtc, Actor, Action, Target, Reason, BeforeState, AfterState, RequestId)
        SELECT @Now, @Actor, 'purge', f.JobId, @Reason, f.BeforeState, N'{"purged":true}', @RequestId
        FROM @Found f;
        COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
        THROW;
    END CATCH;

    SELECT s.JobId AS JobId, COALESCE(a.Result, CASE WHEN t.JobId IS NULL THEN 2 ELSE 1 END) AS Result, t.Status AS Status,
           CAST(NULL AS char(26)) AS Holder
    FROM @Set s LEFT JOIN @Answer a ON a.JobId = s.JobId LEFT JOIN @Stands t ON t.JobId = s.JobId;
END;
GO
