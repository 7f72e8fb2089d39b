SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ClearArchived: delete the Archive rows of jobs that run once more, since a manual repair put them back into Hot and left the old
--   row: its success gives way to the one that comes, as an old row of the DLQ does.
-- Called by: the settle lane of a child, when ArchiveSucceeded met such a row; it calls that again afterwards.
-- Parameters: @Jobs JSON array of {i: id, l: lease}, not repeated, at most 1,000. The fence is (id, lease, Processing).
-- Result: Cleared (how many rows went).
-- Table order: JobsHot, JobsArchive.
CREATE OR ALTER PROCEDURE chokaq.ClearArchived
    @Jobs nvarchar(max)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @Cleared int = 0;
    DECLARE @Set TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL, Lease int NOT NULL, PRIMARY KEY (JobId, Lease));
    DECLARE @Running TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY);
    INSERT @Set (JobId, Lease) SELECT j.i, j.l FROM OPENJSON(@Jobs) WITH (i char(26) '$.i', l int '$.l') j;

    BEGIN TRY
        BEGIN TRANSACTION;
        -- A write that changes nothing keeps the job in Hot until the end: the row that goes is never that of this lease's success.
        UPDATE chokaq.JobsHot SET LeaseNumber = LeaseNumber
        FROM chokaq.JobsHot WITH (ROWLOCK, FORCESEEK)
        WHERE Status = 2 AND Id IN (SELECT TOP (1000) s.JobId FROM @Set s ORDER BY s.JobId)
          AND EXISTS (SELECT 1 FROM @Set s WHERE s.JobId = Id AND s.Lease = LeaseNumber)
        OPTION (LOOP JOIN, MAXDOP 1);
        INSERT @Running (JobId)
        SELECT h.Id FROM @Set s JOIN chokaq.JobsHot h WITH (FORCESEEK) ON h.Id = s.JobId AND h.LeaseNumber = s.Lease
        WHERE h.Status = 2
        OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
        DELETE FROM chokaq.JobsArchive
        FROM chokaq.JobsArchive WITH (ROWLOCK, FORCESEEK)
        WHERE Id IN (SELECT TOP (1000) r.JobId FROM @Running r ORDER BY r.JobId)
        OPTION (LOOP JOIN, MAXDOP 1);
        SET @Cleared = @@ROWCOUNT;
        COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
        THROW;
    END CATCH;

    SELECT @Cleared AS Cleared;
END;
GO
