SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- GetKeyHolder: the live job that holds an idempotency key, by its own row or by the key's retained or windowed entry.
-- Called by: operators, to say what a resurrection would meet.
-- Parameters: @Key as it is stored (trimmed; compared byte by byte).
-- Result: JobId, Status; no row: no live job holds it.
-- Table order: JobsHot, JobKeys, JobsHot by id.
CREATE OR ALTER PROCEDURE chokaq.GetKeyHolder
    @Key nvarchar(255)
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SELECT TOP (1) x.JobId AS JobId, x.Status AS Status
    FROM (SELECT h.Id AS JobId, h.Status AS Status
          FROM chokaq.JobsHot h WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (UX_JobsHot_Key))
          WHERE h.IdempotencyKey = @Key AND h.IdempotencyKey IS NOT NULL
          UNION ALL
          SELECT h.Id, h.Status
          FROM chokaq.JobKeys k
          JOIN chokaq.JobsHot h WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK) ON h.Id = k.JobId
          WHERE k.IdempotencyKey = @Key) x
    OPTION (LOOP JOIN, MAXDOP 1);
END;
GO
