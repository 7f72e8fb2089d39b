SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- GetStatuses: where a set of jobs stands.
-- Called by: app.wait.
-- Parameters: @Jobs JSON array of {i: id}, not repeated.
-- Result: JobId, Status; no row for an unknown id.
-- Table order: JobsHot, JobsArchive, JobsDLQ, JobsHot again (as GetJob).
CREATE OR ALTER PROCEDURE chokaq.GetStatuses
    @Jobs nvarchar(max)
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @Set TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY);
    DECLARE @Found TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY, Status tinyint NOT NULL);
    INSERT @Set (JobId) SELECT j.i FROM OPENJSON(@Jobs) WITH (i char(26) '$.i') j;
    INSERT @Found (JobId, Status)
    SELECT s.JobId, h.Status FROM @Set s JOIN chokaq.JobsHot h WITH (FORCESEEK) ON h.Id = s.JobId
    OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
    INSERT @Found (JobId, Status)
    SELECT s.JobId, 3 FROM @Set s JOIN chokaq.JobsArchive h WITH (FORCESEEK) ON h.Id = s.JobId
    WHERE NOT EXISTS (SELECT 1 FROM @Found f WHERE f.JobId = s.JobId)
    OPTION (LOOP JOIN, MAXDOP 1);
    INSERT @Found (JobId, Status)
    SELECT s.JobId, h.Status FROM @Set s JOIN chokaq.JobsDLQ h WITH (FORCESEEK) ON h.Id = s.JobId
    WHERE NOT EXISTS (SELECT 1 FROM @Found f WHERE f.JobId = s.JobId)
    OPTION (LOOP JOIN, MAXDOP 1);
    INSERT @Found (JobId, Status)
    SELECT s.JobId, h.Status FROM @Set s JOIN chokaq.JobsHot h WITH (FORCESEEK) ON h.Id = s.JobId
    WHERE NOT EXISTS (SELECT 1 FROM @Found f WHERE f.JobId = s.JobId)
    OPTION (LOOP JOIN, MAXDOP 1);
    SELECT f.JobId AS JobId, f.Status AS Status FROM @Found f;
END;
GO
