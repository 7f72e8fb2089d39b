SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- DrainWorker: ask a worker to end once its replacement is there; its next fetch tells it. One AuditLog row the first time, in the
--   same transaction.
-- Called by: operators.
-- Parameters: @WorkerId; @Actor; @Reason (empty: none); @RequestId a ULID of this call, the same when it is repeated (empty: none).
-- Result: JobId (the worker's id), Result (0 accepted, 1 wrong state: it has ended, or is a maintenance process, 2 unknown), Status
--   (null), Holder (null).
-- Table order: Workers, AuditLog.
CREATE OR ALTER PROCEDURE chokaq.DrainWorker
    @WorkerId  char(26),
    @Actor     nvarchar(100),
    @Reason    nvarchar(1000),
    @RequestId varchar(26)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Result int = 2;
    SET @RequestId = NULLIF(@RequestId, '');
    BEGIN TRY
        BEGIN TRANSACTION;
        UPDATE chokaq.Workers SET DrainAtUtc = @Now
        WHERE WorkerId = @WorkerId AND EndedAtUtc IS NULL AND DrainAtUtc IS NULL AND Queue <> '';
        IF @@ROWCOUNT > 0
        BEGIN
            SET @Result = 0;
            INSERT INTO chokaq.AuditLog (AtUtc, Actor, Action, Target, Reason, BeforeState, AfterState, RequestId)
            VALUES (@Now, @Actor, 'drain', @WorkerId, NULLIF(@Reason, N''), N'{"draining":false}', N'{"draining":true}', @RequestId);
        END;
        ELSE
        BEGIN
            SELECT @Result = CASE WHEN w.EndedAtUtc IS NULL AND w.DrainAtUtc IS NOT NULL THEN 0 ELSE 1 END
            FROM chokaq.Workers w WHERE w.WorkerId = @WorkerId;
            -- What an earlier try of this call did, whatever became of the worker since.
            IF @RequestId IS NOT NULL
               AND EXISTS (SELECT 1 FROM chokaq.AuditLog a WITH (FORCESEEK)
                           WHERE a.Target = @WorkerId AND a.RequestId = @RequestId AND a.Action = 'drain')
                SET @Result = 0;
        END;
        COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
    SELECT @WorkerId AS JobId, @Result AS Result, CAST(NULL AS int) AS Status, CAST(NULL AS char(26)) AS Holder;
END;
GO
