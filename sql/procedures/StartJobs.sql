SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- StartJobs: the handlers of a set of claimed jobs are about to run (Fetched -> Processing; the attempt counts from here).
-- Called by: the settle lane of a child.
-- Parameters:
--   @WorkerId  for symmetry: the lease is the fence.
--   @Jobs      "lease:id,id,…;lease:id,…;" at most 1,000 ids, none twice, grouped by lease number.
-- Results: per lease number of which a job is stale, a set of JobId, Lease. What is not named was applied, now or before.
-- Table order: JobsHot, by Id within a lease number; each number is a transaction of its own.
CREATE OR ALTER PROCEDURE chokaq.StartJobs
    @WorkerId char(26),
    @Jobs     varchar(max)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Lease int, @Ids varchar(max), @Count int, @Colon int, @End int;

    WHILE LEN(@Jobs) > 0
    BEGIN
        SET @Colon = CHARINDEX(':', @Jobs);
        SET @End   = CHARINDEX(';', @Jobs);
        SET @Lease = CAST(LEFT(@Jobs, @Colon - 1) AS int);
        SET @Ids   = SUBSTRING(@Jobs, @Colon + 1, @End - @Colon - 1);
        SET @Jobs  = SUBSTRING(@Jobs, @End + 1, LEN(@Jobs));
        SET @Count = LEN(@Ids) - LEN(REPLACE(@Ids, ',', '')) + 1;

        -- By primary key, in the order of ids, so that two sets that share rows rather wait than deadlock. For an engine that
        -- knows no hints the number of ids is told, and the conditions are one expression: it neither walks the lease index once
        -- per id nor takes the table for so small that reading all of it is cheapest.
        UPDATE chokaq.JobsHot
        SET Status = 2, AttemptCount = AttemptCount + 1, StartedAtUtc = @Now, HeartbeatUtc = @Now
        FROM chokaq.JobsHot WITH (ROWLOCK, FORCESEEK)
        WHERE CASE WHEN Status = 1 AND LeaseNumber = @Lease THEN 1 ELSE 0 END > 0
          AND Id IN (SELECT DISTINCT TOP (@Count) CAST(s.value AS char(26)) COLLATE Latin1_General_BIN2 AS JobId
                     FROM STRING_SPLIT(@Ids, ',') s ORDER BY JobId)
        OPTION (LOOP JOIN, MAXDOP 1);

        IF @@ROWCOUNT < @Count
            SELECT CAST(s.value AS char(26)) AS JobId, @Lease AS Lease
            FROM STRING_SPLIT(@Ids, ',') s
            WHERE NOT EXISTS (SELECT 1 FROM chokaq.JobsHot h WITH (FORCESEEK)
                              WHERE h.Id = CAST(s.value AS char(26)) COLLATE Latin1_General_BIN2
                                AND h.LeaseNumber = @Lease AND h.Status = 2)
            OPTION (LOOP JOIN, MAXDOP 1);
    END;
END;
GO
