SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- PurgeDLQ: delete DLQ rows that stopped longer ago than an age, with their keys, notes and attempts.
-- Called by: the maintenance leader's retention. Call again while it answers @Size.
-- Parameters:
--   @Queue        whose rows (empty: any queue's).
--   @OlderThanMs  the age.
--   @Size         rows at most (1 … 1,000).
-- Result: Purged, how many rows.
-- Table order: JobsDLQ, JobKeys, JobNotes, JobAttempts.
CREATE OR ALTER PROCEDURE chokaq.PurgeDLQ
    @Queue       varchar(255),
    @OlderThanMs bigint,
    @Size        int
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SET DEADLOCK_PRIORITY LOW;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Limit datetime2(3);
    DECLARE @Old TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY);
    DECLARE @Gone TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY);
    -- DATEADD takes an int: days, seconds and milliseconds are added apart.
    SET @Limit = DATEADD(MILLISECOND, CAST((-@OlderThanMs) % 1000 AS int),
                 DATEADD(SECOND, CAST((-@OlderThanMs) / 1000 % 86400 AS int),
                 DATEADD(DAY, CAST((-@OlderThanMs) / 86400000 AS int), @Now)));
    IF @Size > 1000 SET @Size = 1000;

    -- The ids come from the index of one queue, or, when any will do, in no order.
    IF @Queue <> ''
        INSERT @Old (JobId)
        SELECT TOP (@Size) Id
        FROM chokaq.JobsDLQ WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsDLQ_Failed))
        WHERE Queue = @Queue AND FailedAtUtc < @Limit ORDER BY FailedAtUtc, Id;
    ELSE
        INSERT @Old (JobId)
        SELECT TOP (@Size) Id
        FROM chokaq.JobsDLQ WITH (READPAST, READCOMMITTEDLOCK)
        WHERE FailedAtUtc < @Limit;

    BEGIN TRY
        BEGIN TRANSACTION;
        DELETE FROM chokaq.JobsDLQ
        OUTPUT deleted.Id INTO @Gone (JobId)
        FROM chokaq.JobsDLQ WITH (ROWLOCK, READPAST, READCOMMITTEDLOCK, FORCESEEK)
        WHERE FailedAtUtc < @Limit
          AND Id IN (SELECT DISTINCT TOP (1000) o.JobId FROM @Old o ORDER BY o.JobId)
        OPTION (LOOP JOIN, MAXDOP 1);
        DELETE FROM chokaq.JobKeys WHERE JobId IN (SELECT DISTINCT TOP (1000) g.JobId FROM @Gone g ORDER BY g.JobId);
        DELETE FROM chokaq.JobNotes WHERE JobId IN (SELECT DISTINCT TOP (1000) g.JobId FROM @Gone g ORDER BY g.JobId);
        DELETE FROM chokaq.JobAttempts WHERE JobId IN (SELECT DISTINCT TOP (1000) g.JobId FROM @Gone g ORDER BY g.JobId);
        COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
        THROW;
    END CATCH;

    SELECT COUNT(*) AS Purged FROM @Gone g;
END;
GO
