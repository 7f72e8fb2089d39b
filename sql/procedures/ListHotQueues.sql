SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ListHotQueues: names of the queues that have rows in Hot or a row in Queues.
-- Called by: the maintenance leader, whose rescue walks them; operators and readers.
-- Result: Name, sorted.
-- Table order: Queues, JobsHot.
CREATE OR ALTER PROCEDURE chokaq.ListHotQueues
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

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

    SELECT n.QueueName AS Name FROM @Name n ORDER BY n.QueueName;
END;
GO
