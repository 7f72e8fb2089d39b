SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- RegisterWorker: a process makes itself known, and gets its slot of the outcome counters.
-- Called by: every child and every maintenance process, once per boot; a repeat answers the same slot.
-- Parameters:
--   @WorkerId    new at every boot.
--   @Queue       its queue (empty: maintenance).
--   @Host        for people, like the rest.
--   @Pid         its process.
--   @Version     of the program.
--   @MaxWorkers  handlers it runs at a time.
-- Result: Slot, the smallest free one from 1 (slot 0 is the operators').
-- Table order: Queues (inserts the row when it is missing, never an override), Workers.
CREATE OR ALTER PROCEDURE chokaq.RegisterWorker
    @WorkerId   char(26),
    @Queue      varchar(255),
    @Host       nvarchar(255),
    @Pid        int,
    @Version    varchar(50),
    @MaxWorkers int
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    DECLARE @Now datetime2(3), @Slot int, @Try int = 0, @Done bit = 0;

    WHILE @Done = 0
    BEGIN
        SET @Try = @Try + 1;
        BEGIN TRY
            BEGIN TRANSACTION;
            SET @Now = SYSUTCDATETIME();
            IF @Queue <> '' AND NOT EXISTS (SELECT 1 FROM chokaq.Queues WHERE Name = @Queue)
                INSERT INTO chokaq.Queues (Name, IsPaused, IsActive, Ticket) VALUES (@Queue, 0, 1, 0);
            SET @Slot = NULL;
            SELECT @Slot = w.Slot FROM chokaq.Workers w WHERE w.WorkerId = @WorkerId;
            IF @Slot IS NULL
            BEGIN
                -- The smallest free slot is 1, or follows one that is taken.
                SELECT @Slot = MIN(c.Slot)
                FROM (SELECT 1 AS Slot
                      UNION ALL
                      SELECT w.Slot + 1 FROM chokaq.Workers w WHERE w.EndedAtUtc IS NULL) c
                WHERE NOT EXISTS (SELECT 1 FROM chokaq.Workers x WHERE x.EndedAtUtc IS NULL AND x.Slot = c.Slot);
                INSERT INTO chokaq.Workers
                      (WorkerId, Queue, Slot, Host, Pid, Version, MaxWorkers, LastRequest,
                       StartedAtUtc, HeartbeatUtc, Running, Buffered, LoopLagMs, MemoryKb)
                VALUES (@WorkerId, @Queue, @Slot, @Host, @Pid, @Version, @MaxWorkers, 0,
                        @Now, @Now, 0, 0, 0, 0);
            END;
            COMMIT TRANSACTION;
            SET @Done = 1;
        END TRY
        BEGIN CATCH
            IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
            -- The unique indexes arbitrate between processes that boot together: look again for the smallest free slot.
            IF ERROR_NUMBER() NOT IN (2601, 2627) OR @Try >= 100
                THROW;
        END CATCH;
    END;

    SELECT @Slot AS Slot;
END;
GO
