SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- SetQueue: write operators' overrides of a queue, with an AuditLog row holding before and after in the same transaction.
-- Called by: operators.
-- Parameters: @Queue; @Mask which columns to write (1 MaxWorkers, 2 FleetMaxWorkers, 4 ExecutionTimeoutMs, 8 ZombieTimeoutMs, 16
--   IsPaused, 32 IsActive) and their values (-1: clear the override, the YAML rules again); @Actor; @Reason (empty: none).
-- Result: none; ListQueues shows the queue.
-- Table order: Queues (inserts the row when missing), AuditLog.
CREATE OR ALTER PROCEDURE chokaq.SetQueue
    @Queue              varchar(255),
    @Mask               int,
    @MaxWorkers         int,
    @FleetMaxWorkers    int,
    @ExecutionTimeoutMs bigint,
    @ZombieTimeoutMs    bigint,
    @IsPaused           int,
    @IsActive           int,
    @Actor              nvarchar(100),
    @Reason             nvarchar(1000)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Before nvarchar(max), @After nvarchar(max);
    BEGIN TRY
        BEGIN TRANSACTION;
        -- A write first: it orders two operators, so that each one's before is the other's after.
        UPDATE chokaq.Queues SET UpdatedAtUtc = @Now, UpdatedBy = @Actor WHERE Name = @Queue;
        IF @@ROWCOUNT = 0
            INSERT INTO chokaq.Queues (Name, IsPaused, IsActive, Ticket, UpdatedAtUtc, UpdatedBy)
            VALUES (@Queue, 0, 1, 0, @Now, @Actor);
        ELSE
            SELECT @Before = CONCAT(N'{"max_workers":', COALESCE(CAST(q.MaxWorkers AS nvarchar(20)), N'null'),
                                    N',"fleet_max_workers":', COALESCE(CAST(q.FleetMaxWorkers AS nvarchar(20)), N'null'),
                                    N',"execution_timeout_ms":', COALESCE(CAST(q.ExecutionTimeoutMs AS nvarchar(20)), N'null'),
                                    N',"zombie_timeout_ms":', COALESCE(CAST(q.ZombieTimeoutMs AS nvarchar(20)), N'null'),
                                    N',"paused":', CASE WHEN q.IsPaused = 1 THEN N'true' ELSE N'false' END,
                                    N',"active":', CASE WHEN q.IsActive = 1 THEN N'true' ELSE N'false' END, N'}')
            FROM chokaq.Queues q WHERE q.Name = @Queue;
        UPDATE chokaq.Queues
        SET MaxWorkers = CASE WHEN @Mask & 1 = 1 THEN NULLIF(@MaxWorkers, -1) ELSE MaxWorkers END,
            FleetMaxWorkers = CASE WHEN @Mask & 2 = 2 THEN NULLIF(@FleetMaxWorkers, -1) ELSE FleetMaxWorkers END,
            ExecutionTimeoutMs = CASE WHEN @Mask & 4 = 4 THEN NULLIF(@ExecutionTimeoutMs, -1) ELSE ExecutionTimeoutMs END,
            ZombieTimeoutMs = CASE WHEN @Mask & 8 = 8 THEN NULLIF(@ZombieTimeoutMs, -1) ELSE ZombieTimeoutMs END,
            IsPaused = CASE WHEN @Mask & 16 = 16 THEN @IsPaused ELSE IsPaused END,
            IsActive = CASE WHEN @Mask & 32 = 32 THEN @IsActive ELSE IsActive END
        WHERE Name = @Queue;
        SELECT @After = CONCAT(N'{"max_workers":', COALESCE(CAST(q.MaxWorkers AS nvarchar(20)), N'null'),
                               N',"fleet_max_workers":', COALESCE(CAST(q.FleetMaxWorkers AS nvarchar(20)), N'null'),
                               N',"execution_timeout_ms":', COALESCE(CAST(q.ExecutionTimeoutMs AS nvarchar(20)), N'null'),
                               N',"zombie_timeout_ms":', COALESCE(CAST(q.ZombieTimeoutMs AS nvarchar(20)), N'null'),
                               N',"paused":', CASE WHEN q.IsPaused = 1 THEN N'true' ELSE N'false' END,
                               N',"active":', CASE WHEN q.IsActive = 1 THEN N'true' ELSE N'false' END, N'}')
        FROM chokaq.Queues q WHERE q.Name = @Queue;
        INSERT INTO chokaq.AuditLog (AtUtc, Actor, Action, Target, Reason, BeforeState, AfterState)
        VALUES (@Now, @Actor, 'set_queue', @Queue, NULLIF(@Reason, N''), @Before, @After);
        COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;
GO
