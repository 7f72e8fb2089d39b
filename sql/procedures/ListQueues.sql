SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ListQueues: every queue that has a row in Queues or jobs in Hot, with its figures. Counts stop at 100,000 per state.
-- Called by: operators and readers; the maintenance leader for the overrides; SetQueue's caller for one queue.
-- Parameters:
--   @Queue  the one that is asked for (empty: all).
-- Result, by name: Name, MaxWorkers, FleetMaxWorkers, ExecutionTimeoutMs, ZombieTimeoutMs, IsPaused, IsActive, Pending (due and
--   waiting), Scheduled, Fetched, Processing, SucceededTotal, FailedTotal, RetriedTotal, OldestDueMs (null: nothing is due),
--   LiveWorkers (heard of within a minute), Known (1: it has a row in Queues), UpdatedAtUtc, UpdatedBy, OldestRunningMs (since the
--   start of the job that has run longest; null: none runs).
-- Table order: Queues, JobsHot, MetricBuckets, QueueTotals, Workers.
CREATE OR ALTER PROCEDURE chokaq.ListQueues
    @Queue varchar(255)
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Ready int, @Due int, @Scheduled int, @Fetched int, @Processing int;
    DECLARE @Priority int, @Found int, @Oldest datetime2(3), @OneDue datetime2(3), @Turn int, @Started datetime2(3);
    DECLARE @View TABLE (
        QueueName    varchar(255) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
        Pending      int          NOT NULL,
        Scheduled    int          NOT NULL,
        Fetched      int          NOT NULL,
        Processing   int          NOT NULL,
        OldestDueUtc datetime2(3) NULL,
        StartedAtUtc datetime2(3) NULL
    );
    DECLARE @Open TABLE (
        SumQueue varchar(255) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
        Ok       bigint       NOT NULL,
        Bad      bigint       NOT NULL,
        Again    bigint       NOT NULL
    );

    -- One seek per name and index, instead of reading every row.
    DECLARE @Name TABLE (QueueName varchar(255) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY);
    DECLARE @Last varchar(255) = '', @Next varchar(255), @Look varchar(255);
    WHILE @Last IS NOT NULL
    BEGIN
        SET @Next = NULL;
        SELECT TOP (1) @Next = q.Name FROM chokaq.Queues q WHERE q.Name > @Last ORDER BY q.Name;

        SET @Look = NULL;
        SELECT TOP (1) @Look = Queue
        FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Ready))
        WHERE Queue > @Last AND Status = 0 AND IsReady = 1 ORDER BY Queue;
        IF @Next IS NULL OR @Look < @Next SET @Next = @Look;

        SET @Look = NULL;
        SELECT TOP (1) @Look = Queue
        FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Due))
        WHERE Queue > @Last AND Status = 0 AND IsReady = 0 ORDER BY Queue;
        IF @Next IS NULL OR @Look < @Next SET @Next = @Look;

        SET @Look = NULL;
        SELECT TOP (1) @Look = Queue
        FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Lease))
        WHERE Queue > @Last AND Status IN (1, 2) ORDER BY Queue;
        IF @Next IS NULL OR @Look < @Next SET @Next = @Look;

        IF @Next IS NOT NULL INSERT @Name (QueueName) VALUES (@Next);
        SET @Last = @Next;
    END;
    IF @Queue <> '' DELETE FROM @Name WHERE QueueName <> @Queue;

    SET @Last = '';
    WHILE @Last IS NOT NULL
    BEGIN
        SET @Next = NULL;
        SELECT @Next = MIN(n.QueueName) FROM @Name n WHERE n.QueueName > @Last;
        SET @Last = @Next;
        IF @Last IS NULL BREAK;

        SELECT @Ready = COUNT(*)
        FROM (SELECT TOP (100000) Id
              FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Ready))
              WHERE Queue = @Last AND Status = 0 AND IsReady = 1) x;
        SELECT @Due = COUNT(*)
        FROM (SELECT TOP (100000) Id
              FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Due))
              WHERE Queue = @Last AND Status = 0 AND IsReady = 0 AND DueAtUtc <= @Now) x;
        SELECT @Scheduled = COUNT(*)
        FROM (SELECT TOP (100000) Id
              FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Due))
              WHERE Queue = @Last AND Status = 0 AND IsReady = 0 AND DueAtUtc > @Now) x;
        SELECT @Fetched    = COALESCE(SUM(CASE WHEN x.Status = 1 THEN 1 ELSE 0 END), 0),
               @Processing = COALESCE(SUM(CASE WHEN x.Status = 2 THEN 1 ELSE 0 END), 0),
               @Started    = MIN(CASE WHEN x.Status = 2 THEN x.StartedAtUtc END)
        FROM (SELECT TOP (200000) Status, StartedAtUtc
              FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Lease))
              WHERE Queue = @Last AND Status IN (1, 2)) x;

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

        INSERT @View (QueueName, Pending, Scheduled, Fetched, Processing, OldestDueUtc, StartedAtUtc)
        VALUES (@Last,
                CASE WHEN @Ready + @Due > 100000 THEN 100000 ELSE @Ready + @Due END,
                @Scheduled,
                CASE WHEN @Fetched > 100000 THEN 100000 ELSE @Fetched END,
                CASE WHEN @Processing > 100000 THEN 100000 ELSE @Processing END,
                @Oldest,
                @Started);
    END;

    -- The totals, with what RollUp has not folded in yet. Both in one statement: a row is in one of the two.
    INSERT @Open (SumQueue, Ok, Bad, Again)
    SELECT u.Queue, SUM(u.Ok), SUM(u.Bad), SUM(u.Again)
    FROM (SELECT b.Queue AS Queue,
                 CASE WHEN b.Outcome = 0 THEN b.JobCount ELSE 0 END AS Ok,
                 CASE WHEN b.Outcome = 1 THEN b.JobCount ELSE 0 END AS Bad,
                 CASE WHEN b.Outcome = 2 THEN b.JobCount ELSE 0 END AS Again
          FROM chokaq.MetricBuckets b WHERE b.Seconds = 1
          UNION ALL
          SELECT t.Queue, t.SucceededTotal, t.FailedTotal, t.RetriedTotal FROM chokaq.QueueTotals t) u
    GROUP BY u.Queue;

    SELECT v.QueueName AS Name, q.MaxWorkers AS MaxWorkers, q.FleetMaxWorkers AS FleetMaxWorkers,
           q.ExecutionTimeoutMs AS ExecutionTimeoutMs, q.ZombieTimeoutMs AS ZombieTimeoutMs,
           COALESCE(q.IsPaused, 0) AS IsPaused, COALESCE(q.IsActive, 1) AS IsActive,
           v.Pending AS Pending, v.Scheduled AS Scheduled, v.Fetched AS Fetched, v.Processing AS Processing,
           COALESCE(o.Ok, 0) AS SucceededTotal, COALESCE(o.Bad, 0) AS FailedTotal, COALESCE(o.Again, 0) AS RetriedTotal,
           DATEDIFF_BIG(MILLISECOND, v.OldestDueUtc, @Now) AS OldestDueMs,
           (SELECT COUNT(*) FROM chokaq.Workers w
            WHERE w.Queue = v.QueueName AND w.EndedAtUtc IS NULL
              AND w.HeartbeatUtc > DATEADD(SECOND, -60, @Now)) AS LiveWorkers,
           CASE WHEN q.Name IS NULL THEN 0 ELSE 1 END AS Known, q.UpdatedAtUtc AS UpdatedAtUtc, q.UpdatedBy AS UpdatedBy,
           DATEDIFF_BIG(MILLISECOND, v.StartedAtUtc, @Now) AS OldestRunningMs
    FROM @View v
    LEFT JOIN chokaq.Queues q ON q.Name = v.QueueName
    LEFT JOIN @Open o ON o.SumQueue = v.QueueName
    ORDER BY v.QueueName;
END;
GO
