SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ReadHealth: what a worker's probes ask: which schema stands here, and how long the oldest due job of each of its queues has waited.
--   Counts nothing: the cost does not depend on how many jobs there are.
-- Called by: the process that answers probes, when it is asked, at most once a second.
-- Parameters:
--   @Mapped  33 characters that no text of the call holds; they stand for " \ and U+0001 … U+001F, in this order.
--   @Queues  JSON array, one object per queue, none twice, at most 1,000: q name (mapped).
-- Results: 1. as GetClock; 2. Name, IsPaused, IsActive, OldestDueMs (null: nothing is due); one row for
--   each name, sorted. Looks at 1,000 priorities at most, the highest.
-- Table order: JobsHot, Queues.
CREATE OR ALTER PROCEDURE chokaq.ReadHealth
    @Mapped nvarchar(33),
    @Queues nvarchar(max)
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Last varchar(255) = '', @Next varchar(255), @Turn int;
    DECLARE @Priority int, @Found int, @Oldest datetime2(3), @OneDue datetime2(3);
    -- What a JSON string would have to escape travels as one of @Mapped instead, and is put back by TRANSLATE.
    DECLARE @Plain nvarchar(33) = N'"\'
        + NCHAR(1) + NCHAR(2) + NCHAR(3) + NCHAR(4) + NCHAR(5) + NCHAR(6) + NCHAR(7) + NCHAR(8) + NCHAR(9) + NCHAR(10) + NCHAR(11)
        + NCHAR(12) + NCHAR(13) + NCHAR(14) + NCHAR(15) + NCHAR(16) + NCHAR(17) + NCHAR(18) + NCHAR(19) + NCHAR(20) + NCHAR(21)
        + NCHAR(22) + NCHAR(23) + NCHAR(24) + NCHAR(25) + NCHAR(26) + NCHAR(27) + NCHAR(28) + NCHAR(29) + NCHAR(30) + NCHAR(31);
    DECLARE @Name TABLE (QueueName varchar(255) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY);
    DECLARE @View TABLE (
        ViewName     varchar(255) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
        OldestDueUtc datetime2(3) NULL
    );

    INSERT @Name (QueueName)
    SELECT CAST(TRANSLATE(j.q COLLATE Latin1_General_BIN2, @Mapped, @Plain) AS varchar(255))
    FROM OPENJSON(@Queues) WITH (q nvarchar(255) '$.q') j;

    WHILE @Last IS NOT NULL
    BEGIN
        SET @Next = NULL;
        SELECT @Next = MIN(n.QueueName) FROM @Name n WHERE n.QueueName > @Last;
        SET @Last = @Next;
        IF @Last IS NULL BREAK;

        -- The earliest due time of the ready rows takes one look per priority in use.
        SELECT @Oldest = NULL, @Priority = 2147483647, @Turn = 0;
        WHILE @Priority IS NOT NULL AND @Turn < 1000
        BEGIN
            SELECT @Found = NULL, @Turn = @Turn + 1;
            SELECT TOP (1) @Found = Priority, @OneDue = DueAtUtc
            FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Ready))
            WHERE Queue = @Last AND Status = 0 AND IsReady = 1 AND Priority < @Priority
            ORDER BY Priority DESC, DueAtUtc, Id;
            IF @Found IS NOT NULL AND (@Oldest IS NULL OR @OneDue < @Oldest) SET @Oldest = @OneDue;
            SET @Priority = @Found;
        END;
        SET @OneDue = NULL;
        SELECT TOP (1) @OneDue = DueAtUtc
        FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Due))
        WHERE Queue = @Last AND Status = 0 AND IsReady = 0 ORDER BY DueAtUtc, Id;
        IF @OneDue <= @Now AND (@Oldest IS NULL OR @OneDue < @Oldest) SET @Oldest = @OneDue;

        INSERT @View (ViewName, OldestDueUtc) VALUES (@Last, @Oldest);
    END;

    EXEC chokaq.GetClock;

    SELECT v.ViewName AS Name, COALESCE(q.IsPaused, 0) AS IsPaused, COALESCE(q.IsActive, 1) AS IsActive,
           DATEDIFF_BIG(MILLISECOND, v.OldestDueUtc, @Now) AS OldestDueMs
    FROM @View v LEFT JOIN chokaq.Queues q ON q.Name = v.ViewName
    ORDER BY v.ViewName;
END;
GO
