SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- EditJob: change payload (with its hash), tags or priority of a job that is Pending, or Failed, Cancelled or Zombie. One AuditLog
--   row with before and after, in the same transaction; by its RequestId a repeat of the call knows what it did itself.
-- Called by: operators.
-- Parameters: @JobId; @Mask what to edit (1 @Payload, ASCII JSON text with its @PayloadHash; 2 @Tags; 4 @Priority; 8 clear the
--   tags); @Actor; @Reason (empty: none); @RequestId a ULID of this call, the same when it is repeated (empty: none).
-- Result: JobId, Result (0 accepted, 1 wrong state, 2 unknown), Status (where it stands now, null: nowhere), Holder (null).
-- Table order: JobsHot, JobsArchive (read), JobsDLQ, AuditLog. The row in Hot is reached by primary key: the claim passes it by.
CREATE OR ALTER PROCEDURE chokaq.EditJob
    @JobId       char(26),
    @Mask        int,
    @Payload     varbinary(max),
    @PayloadHash varchar(32),
    @Tags        nvarchar(1000),
    @Priority    int,
    @Actor       nvarchar(100),
    @Reason      nvarchar(1000),
    @RequestId   varchar(26)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Place int = 0, @Round int = 0, @Before nvarchar(max), @After nvarchar(max);
    DECLARE @Text varchar(max), @Size bigint, @Result int, @Status int;
    SET @RequestId = NULLIF(@RequestId, '');
    IF @Mask & 8 = 8 SET @Tags = NULL;
    SET @Text = CAST(@Payload AS varchar(max));
    SET @Size = DATALENGTH(@Payload);

    BEGIN TRY
        BEGIN TRANSACTION;
        -- A write first, that changes nothing: it orders two operators, so that each one's before is the other's after. A job may
        -- move between the two statements: look once more then.
        WHILE @Round < 2 AND @Place = 0
        BEGIN
            SET @Round = @Round + 1;
            UPDATE chokaq.JobsHot SET LeaseNumber = LeaseNumber WHERE Id = @JobId AND Status = 0;
            IF @@ROWCOUNT > 0 SET @Place = 1;
            ELSE
            BEGIN
                UPDATE chokaq.JobsDLQ SET LeaseNumber = LeaseNumber WHERE Id = @JobId AND Status IN (4, 5, 6);
                IF @@ROWCOUNT > 0 SET @Place = 2;
            END;
        END;
        -- What an earlier try of this call did, whatever became of it since.
        IF @RequestId IS NOT NULL
           AND EXISTS (SELECT 1 FROM chokaq.AuditLog a WITH (FORCESEEK)
                       WHERE a.Target = @JobId AND a.RequestId = @RequestId AND a.Action = 'edit')
        BEGIN
            SET @Result = 0;
            SET @Place = 0;
        END;
        IF @Place = 1
            SELECT @Before = (SELECT 'Pending' AS status, h.Queue AS queue, h.Type AS type, h.Priority AS priority, h.Tags AS tags,
                                     h.IdempotencyKey AS idempotency_key, h.AttemptCount AS attempts, h.CrashCount AS crashes,
                                     CAST(NULL AS int) AS failure_reason, h.PayloadHash AS payload_hash,
                                     DATALENGTH(h.Payload) AS payload_size
                              FOR JSON PATH, INCLUDE_NULL_VALUES, WITHOUT_ARRAY_WRAPPER),
                   @After = (SELECT 'Pending' AS status, h.Queue AS queue, h.Type AS type,
                                    CASE WHEN @Mask & 4 = 4 THEN @Priority ELSE h.Priority END AS priority,
                                    CASE WHEN @Mask & 10 > 0 THEN @Tags ELSE h.Tags END AS tags,
                                    h.IdempotencyKey AS idempotency_key, h.AttemptCount AS attempts, h.CrashCount AS crashes,
                                    CAST(NULL AS int) AS failure_reason,
                                    CASE WHEN @Mask & 1 = 1 THEN CAST(@PayloadHash AS char(32)) ELSE h.PayloadHash END
                                        AS payload_hash,
                                    CASE WHEN @Mask & 1 = 1 THEN @Size ELSE DATALENGTH(h.Payload) END AS payload_size
                             FOR JSON PATH, INCLUDE_NULL_VALUES, WITHOUT_ARRAY_WRAPPER)
            FROM chokaq.JobsHot h WHERE h.Id = @JobId;
        IF @Place = 2
            SELECT @Before = (SELECT CASE h.Status WHEN 4 THEN 'Failed' WHEN 5 THEN 'Cancelled' ELSE 'Zombie' END AS status,
                                     h.Queue AS queue, h.Type AS type, h.Priority AS priority, h.Tags AS tags,
                                     h.IdempotencyKey AS idempotency_key, h.AttemptCount AS attempts, h.CrashCount AS crashes,
                                     h.FailureReason AS failure_reason, h.PayloadHash AS payload_hash,
                                     DATALENGTH(h.Payload) AS payload_size
                              FOR JSON PATH, INCLUDE_NULL_VALUES, WITHOUT_ARRAY_WRAPPER),
                   @After = (SELECT CASE h.Status WHEN 4 THEN 'Failed' WHEN 5 THEN 'Cancelled' ELSE 'Zombie' END AS status,
                                    h.Queue AS queue, h.Type AS type,
                                    CASE WHEN @Mask & 4 = 4 THEN @Priority ELSE h.Priority END AS priority,
                                    CASE WHEN @Mask & 10 > 0 THEN @Tags ELSE h.Tags END AS tags,
                                    h.IdempotencyKey AS idempotency_key, h.AttemptCount AS attempts, h.CrashCount AS crashes,
                                    h.FailureReason AS failure_reason,
                                    CASE WHEN @Mask & 1 = 1 THEN CAST(@PayloadHash AS char(32)) ELSE h.PayloadHash END
                                        AS payload_hash,
                                    CASE WHEN @Mask & 1 = 1 THEN @Size ELSE DATALENGTH(h.Payload) END AS payload_size
                             FOR JSON PATH, INCLUDE_NULL_VALUES, WITHOUT_ARRAY_WRAPPER)
            FROM chokaq.JobsDLQ h WHERE h.Id = @JobId;

        IF @Place = 1
            UPDATE chokaq.JobsHot
            SET Priority = CASE WHEN @Mask & 4 = 4 THEN @Priority ELSE Priority END,
                Tags = CASE WHEN @Mask & 10 > 0 THEN @Tags ELSE Tags END,
                PayloadHash = CASE WHEN @Mask & 1 = 1 THEN @PayloadHash ELSE PayloadHash END,
                Payload = CASE WHEN @Mask & 1 = 1 THEN @Text ELSE Payload END
            WHERE Id = @JobId;
        IF @Place = 2
            UPDATE chokaq.JobsDLQ
            SET Priority = CASE WHEN @Mask & 4 = 4 THEN @Priority ELSE Priority END,
                Tags = CASE WHEN @Mask & 10 > 0 THEN @Tags ELSE Tags END,
                PayloadHash = CASE WHEN @Mask & 1 = 1 THEN @PayloadHash ELSE PayloadHash END,
                Payload = CASE WHEN @Mask & 1 = 1 THEN @Text ELSE Payload END,
                LastModifiedBy = @Actor
            WHERE Id = @JobId;
        IF @Place > 0
        BEGIN
            SET @Result = 0;
            INSERT INTO chokaq.AuditLog (AtUtc, Actor, Action, Target, Reason, BeforeState, AfterState, RequestId)
            VALUES (@Now, @Actor, 'edit', @JobId, NULLIF(@Reason, N''), @Before, @After, @RequestId);
        END;
        -- Where it stands now; Hot again, since it may be on its way back there.
        SELECT @Status = h.Status FROM chokaq.JobsHot h WHERE h.Id = @JobId;
        IF @Status IS NULL SELECT @Status = 3 FROM chokaq.JobsArchive h WHERE h.Id = @JobId;
        IF @Status IS NULL SELECT @Status = h.Status FROM chokaq.JobsDLQ h WHERE h.Id = @JobId;
        IF @Status IS NULL SELECT @Status = h.Status FROM chokaq.JobsHot h WHERE h.Id = @JobId;
        COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
        THROW;
    END CATCH;

    SELECT @JobId AS JobId, COALESCE(@Result, CASE WHEN @Status IS NULL THEN 2 ELSE 1 END) AS Result, @Status AS Status,
           CAST(NULL AS char(26)) AS Holder;
END;
GO
