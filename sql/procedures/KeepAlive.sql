SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- KeepAlive: renew the leases of a worker, and store what its handlers reported and its live figures.
-- Called by: the pulse lane of a child, for every lease held, from the claim on.
-- Parameters:
--   @WorkerId   whose leases and figures.
--   @Mapped     33 characters that no text of the call holds; they stand for " \ and U+0001 … U+001F, in this order.
--   @Jobs       JSON array, one object per job, none twice, at most 1,000: i id, l lease, p progress 0 … 100 (absent: as before),
--               n note (absent: as before; free text is mapped).
--   @Running    handlers at work.
--   @Buffered   jobs claimed that wait for a handler.
--   @LoopLagMs  how late its event loop runs.
--   @MemoryKb   its memory.
--   @Draining   1: it claims no more, and will end.
-- Results, in this order:
--   1. JobId, Lease, Answer (0 stale, 1 renewed).
--   2. Cancellations meant for this worker: JobId, LeaseNumber, Actor, Reason.
-- Table order: Workers, JobsHot, JobNotes; CancelRequests is read after their transaction.
CREATE OR ALTER PROCEDURE chokaq.KeepAlive
    @WorkerId  char(26),
    @Mapped    nvarchar(33),
    @Jobs      nvarchar(max),
    @Running   int,
    @Buffered  int,
    @LoopLagMs int,
    @MemoryKb  bigint,
    @Draining  bit = 0
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME();
    -- What a JSON string would have to escape travels as one of @Mapped instead, and is put back by TRANSLATE.
    DECLARE @Plain nvarchar(33) = N'"\'
        + NCHAR(1) + NCHAR(2) + NCHAR(3) + NCHAR(4) + NCHAR(5) + NCHAR(6) + NCHAR(7) + NCHAR(8) + NCHAR(9) + NCHAR(10) + NCHAR(11)
        + NCHAR(12) + NCHAR(13) + NCHAR(14) + NCHAR(15) + NCHAR(16) + NCHAR(17) + NCHAR(18) + NCHAR(19) + NCHAR(20) + NCHAR(21)
        + NCHAR(22) + NCHAR(23) + NCHAR(24) + NCHAR(25) + NCHAR(26) + NCHAR(27) + NCHAR(28) + NCHAR(29) + NCHAR(30) + NCHAR(31);
    DECLARE @Set TABLE (
        JobId       char(26)       COLLATE Latin1_General_BIN2 NOT NULL,
        Lease       int            NOT NULL,
        NewProgress tinyint        NULL,
        NewNote     nvarchar(1000) NULL,
        PRIMARY KEY (JobId, Lease)
    );
    DECLARE @Alive TABLE (
        JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
        Lease int      NOT NULL
    );

    INSERT @Set (JobId, Lease, NewProgress, NewNote)
    SELECT j.i, j.l, j.p, TRANSLATE(j.n COLLATE Latin1_General_BIN2, @Mapped, @Plain)
    FROM OPENJSON(@Jobs) WITH (i char(26) '$.i', l int '$.l', p tinyint '$.p', n nvarchar(1000) '$.n') j;

    BEGIN TRY
        BEGIN TRANSACTION;
        UPDATE chokaq.Workers
        SET HeartbeatUtc = @Now, Running = @Running, Buffered = @Buffered, LoopLagMs = @LoopLagMs, MemoryKb = @MemoryKb,
            DrainingAtUtc = CASE WHEN @Draining = 1 THEN COALESCE(DrainingAtUtc, @Now) END
        WHERE WorkerId = @WorkerId AND EndedAtUtc IS NULL;
        UPDATE chokaq.JobsHot SET HeartbeatUtc = @Now
        OUTPUT inserted.Id, inserted.LeaseNumber INTO @Alive (JobId, Lease)
        FROM chokaq.JobsHot WITH (ROWLOCK, FORCESEEK)
        WHERE Status IN (1, 2)
          AND Id IN (SELECT DISTINCT TOP (1000) s.JobId FROM @Set s ORDER BY s.JobId)
          AND EXISTS (SELECT 1 FROM @Set s WHERE s.JobId = Id AND s.Lease = LeaseNumber)
        OPTION (LOOP JOIN, MAXDOP 1);

        IF EXISTS (SELECT 1 FROM @Set WHERE NewProgress IS NOT NULL)
            UPDATE chokaq.JobsHot
            SET Progress = (SELECT s.NewProgress FROM @Set s WHERE s.JobId = Id AND s.Lease = LeaseNumber)
            FROM chokaq.JobsHot WITH (ROWLOCK, FORCESEEK)
            WHERE Status IN (1, 2)
              AND Id IN (SELECT DISTINCT TOP (1000) s.JobId FROM @Set s WHERE s.NewProgress IS NOT NULL ORDER BY s.JobId)
              AND EXISTS (SELECT 1 FROM @Set s WHERE s.JobId = Id AND s.Lease = LeaseNumber AND s.NewProgress IS NOT NULL)
            OPTION (LOOP JOIN, MAXDOP 1);
        IF EXISTS (SELECT 1 FROM @Set WHERE NewNote IS NOT NULL)
        BEGIN
            UPDATE chokaq.JobNotes SET Note = s.NewNote, NotedAtUtc = @Now
            FROM @Set s
            WHERE s.JobId = JobNotes.JobId AND s.NewNote IS NOT NULL
              AND EXISTS (SELECT 1 FROM @Alive a WHERE a.JobId = s.JobId AND a.Lease = s.Lease);
            INSERT INTO chokaq.JobNotes (JobId, Note, NotedAtUtc)
            SELECT s.JobId, s.NewNote, @Now
            FROM @Set s JOIN @Alive a ON a.JobId = s.JobId AND a.Lease = s.Lease
            WHERE s.NewNote IS NOT NULL
              AND NOT EXISTS (SELECT 1 FROM chokaq.JobNotes n WHERE n.JobId = s.JobId);
        END;
        COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
        THROW;
    END CATCH;

    SELECT s.JobId AS JobId, s.Lease AS Lease, CASE WHEN a.JobId IS NULL THEN 0 ELSE 1 END AS Answer
    FROM @Set s LEFT JOIN @Alive a ON a.JobId = s.JobId AND a.Lease = s.Lease;
    SELECT TOP (1000) c.JobId AS JobId, c.LeaseNumber AS LeaseNumber, c.Actor AS Actor, c.Reason AS Reason
    FROM chokaq.CancelRequests c WHERE c.WorkerId = @WorkerId ORDER BY c.JobId;
END;
GO
