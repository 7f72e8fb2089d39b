SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- GetStatuses: where a set of jobs stands.
-- Called by: app.wait. A client (a login that has no other role here) is told of its own jobs only.
-- Parameters:
--   @Jobs  JSON array of {i: id}, none twice.
-- Result: JobId, Status, in no order; no row for an unknown id.
-- Table order: JobsHot, JobsArchive, JobsDLQ, JobsHot again (as GetJob).
CREATE OR ALTER PROCEDURE chokaq.GetStatuses
    @Jobs nvarchar(max)
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    -- A client sees its own jobs only; a worker, an operator and a reader see all.
    DECLARE @Login nvarchar(128) = COALESCE(ORIGINAL_LOGIN(), SUSER_SNAME()), @OwnOnly bit = 0;
    IF IS_ROLEMEMBER(N'chokaq_client') = 1 AND IS_ROLEMEMBER(N'chokaq_worker') = 0
       AND IS_ROLEMEMBER(N'chokaq_operator') = 0 AND IS_ROLEMEMBER(N'chokaq_reader') = 0
        SET @OwnOnly = 1;
    DECLARE @Set TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY);
    DECLARE @Found TABLE (
        JobId  char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
        Status tinyint  NOT NULL
    );

    INSERT @Set (JobId) SELECT j.i FROM OPENJSON(@Jobs) WITH (i char(26) '$.i') j;

    INSERT @Found (JobId, Status)
    SELECT s.JobId, h.Status
    FROM @Set s JOIN chokaq.JobsHot h WITH (FORCESEEK) ON h.Id = s.JobId
    WHERE @OwnOnly = 0 OR h.OwnerLogin = @Login
    OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);

    INSERT @Found (JobId, Status)
    SELECT s.JobId, 3
    FROM @Set s JOIN chokaq.JobsArchive h WITH (FORCESEEK) ON h.Id = s.JobId
    WHERE NOT EXISTS (SELECT 1 FROM @Found f WHERE f.JobId = s.JobId) AND (@OwnOnly = 0 OR h.OwnerLogin = @Login)
    OPTION (LOOP JOIN, MAXDOP 1);

    INSERT @Found (JobId, Status)
    SELECT s.JobId, h.Status
    FROM @Set s JOIN chokaq.JobsDLQ h WITH (FORCESEEK) ON h.Id = s.JobId
    WHERE NOT EXISTS (SELECT 1 FROM @Found f WHERE f.JobId = s.JobId) AND (@OwnOnly = 0 OR h.OwnerLogin = @Login)
    OPTION (LOOP JOIN, MAXDOP 1);

    INSERT @Found (JobId, Status)
    SELECT s.JobId, h.Status
    FROM @Set s JOIN chokaq.JobsHot h WITH (FORCESEEK) ON h.Id = s.JobId
    WHERE NOT EXISTS (SELECT 1 FROM @Found f WHERE f.JobId = s.JobId) AND (@OwnOnly = 0 OR h.OwnerLogin = @Login)
    OPTION (LOOP JOIN, MAXDOP 1);

    SELECT f.JobId AS JobId, f.Status AS Status FROM @Found f;
END;
GO
