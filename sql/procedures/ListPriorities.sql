SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ListPriorities: how long the due jobs of a queue have waited, by priority: at most the 100 priorities whose oldest job has waited
-- longest. Looks at 1,000 priorities at most; counts stop at 10,000 per priority; of the rows that are due and not promoted yet the
-- oldest 1,000 are seen.
-- Called by: operators and metrics.
-- Parameters: @Queue.
-- Result: Priority, Waiting, OldestDueMs; highest priority first.
-- Table order: JobsHot.
CREATE OR ALTER PROCEDURE chokaq.ListPriorities
    @Queue varchar(255)
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Priority int, @Found int, @Due datetime2(3), @Turn int, @Ready int;
    DECLARE @Unready TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY);
    DECLARE @Used TABLE (UsedPriority int NOT NULL PRIMARY KEY, Waiting int NOT NULL, OldestDueUtc datetime2(3) NOT NULL);
    DECLARE @Kept TABLE (KeptPriority int NOT NULL PRIMARY KEY, Waiting int NOT NULL, OldestDueUtc datetime2(3) NOT NULL);

    INSERT @Unready (JobId)
    SELECT TOP (1000) Id FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Due))
    WHERE Queue = @Queue AND Status = 0 AND IsReady = 0 AND DueAtUtc <= @Now ORDER BY DueAtUtc, Id;
    INSERT @Used (UsedPriority, Waiting, OldestDueUtc)
    SELECT h.Priority, COUNT(*), MIN(h.DueAtUtc)
    FROM @Unready u JOIN chokaq.JobsHot h WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK) ON h.Id = u.JobId
    WHERE h.Queue = @Queue AND h.Status = 0 AND h.IsReady = 0 AND h.DueAtUtc <= @Now
    GROUP BY h.Priority
    OPTION (LOOP JOIN, MAXDOP 1);

    -- One look per priority in use.
    SELECT @Priority = 2147483647, @Turn = 0;
    WHILE @Priority IS NOT NULL AND @Turn < 1000
    BEGIN
        SELECT @Found = NULL, @Turn = @Turn + 1;
        SELECT TOP (1) @Found = Priority, @Due = DueAtUtc
        FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Ready))
        WHERE Queue = @Queue AND Status = 0 AND IsReady = 1 AND Priority < @Priority ORDER BY Priority DESC, DueAtUtc, Id;
        IF @Found IS NOT NULL
        BEGIN
            UPDATE @Used SET OldestDueUtc = CASE WHEN @Due < OldestDueUtc THEN @Due ELSE OldestDueUtc END
            WHERE UsedPriority = @Found;
            IF @@ROWCOUNT = 0 INSERT @Used (UsedPriority, Waiting, OldestDueUtc) VALUES (@Found, 0, @Due);
        END;
        SET @Priority = @Found;
    END;
    INSERT @Kept (KeptPriority, Waiting, OldestDueUtc)
    SELECT TOP (100) u.UsedPriority, u.Waiting, u.OldestDueUtc FROM @Used u ORDER BY u.OldestDueUtc, u.UsedPriority;

    SELECT @Priority = MAX(k.KeptPriority) FROM @Kept k;
    WHILE @Priority IS NOT NULL
    BEGIN
        SELECT @Ready = COUNT(*) FROM (SELECT TOP (10000) Id
            FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Ready))
                                       WHERE Queue = @Queue AND Status = 0 AND IsReady = 1 AND Priority = @Priority) x;
        UPDATE @Kept SET Waiting = CASE WHEN Waiting + @Ready > 10000 THEN 10000 ELSE Waiting + @Ready END
        WHERE KeptPriority = @Priority;
        SELECT @Priority = MAX(k.KeptPriority) FROM @Kept k WHERE k.KeptPriority < @Priority;
    END;

    SELECT k.KeptPriority AS Priority, k.Waiting AS Waiting, DATEDIFF_BIG(MILLISECOND, k.OldestDueUtc, @Now) AS OldestDueMs
    FROM @Kept k ORDER BY k.KeptPriority DESC;
END;
GO
