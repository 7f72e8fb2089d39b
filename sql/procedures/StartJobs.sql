SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- StartJobs: the handlers of a set of claimed jobs are about to run (Fetched -> Processing; the attempt counts from here).
-- Called by: the settle lane of a child.
-- Parameters: @WorkerId for symmetry (the lease is the fence); @Jobs JSON array of {i: id, l: lease}, not repeated, at most 1,000.
-- Result: JobId, Lease, Answer (0 stale, 1 applied by this call or an earlier one).
-- Table order: JobsHot.
CREATE OR ALTER PROCEDURE chokaq.StartJobs
    @WorkerId char(26),
    @Jobs     nvarchar(max)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Count int, @Hit int;
    DECLARE @Set TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL, Lease int NOT NULL, PRIMARY KEY (JobId, Lease));
    INSERT @Set (JobId, Lease) SELECT j.i, j.l FROM OPENJSON(@Jobs) WITH (i char(26) '$.i', l int '$.l') j;
    SET @Count = @@ROWCOUNT;

    UPDATE chokaq.JobsHot
    SET Status = 2, AttemptCount = AttemptCount + 1, StartedAtUtc = @Now, HeartbeatUtc = @Now
    FROM chokaq.JobsHot WITH (ROWLOCK, FORCESEEK)
    WHERE Status = 1 AND Id IN (SELECT TOP (1000) s.JobId FROM @Set s ORDER BY s.JobId)
      AND EXISTS (SELECT 1 FROM @Set s WHERE s.JobId = Id AND s.Lease = LeaseNumber)
    OPTION (LOOP JOIN, MAXDOP 1);
    SET @Hit = @@ROWCOUNT;

    IF @Hit = @Count
        SELECT s.JobId AS JobId, s.Lease AS Lease, 1 AS Answer FROM @Set s;
    ELSE
        SELECT s.JobId AS JobId, s.Lease AS Lease, CASE WHEN h.Id IS NULL THEN 0 ELSE 1 END AS Answer
        FROM @Set s LEFT JOIN chokaq.JobsHot h WITH (FORCESEEK) ON h.Id = s.JobId AND h.LeaseNumber = s.Lease AND h.Status = 2
        OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
END;
GO
