SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ResurrectJobs: DLQ (Failed, Cancelled, Zombie) -> Pending, due at once, as a new life: attempts and crashes 0, a fresh age; the
--   lease number, priority, key, headers, tags, creator and owner are carried on, save for the edits. One AuditLog row per job
--   changed, in the same transaction; by its RequestId a repeat of the call knows what it did itself.
-- Called by: operators.
-- Parameters: @Jobs JSON array of {i: id}, not repeated, at most 1,000; @Mask what to edit in every one of them (1 @Payload, ASCII
--   JSON text with its @PayloadHash; 2 @Tags; 4 @Priority; 8 clear the tags); @WithoutKey 1: give their idempotency keys up;
--   @Actor; @Reason (empty: none); @RequestId a ULID of this call, the same when it is repeated (empty: none).
-- Result: JobId, Result (0 accepted, 1 wrong state, 2 unknown, 3 key conflict), Status (where it stands now, null: nowhere), Holder
--   (of a key conflict: the live job that holds the key), Queue (of an accepted job that is Pending: where it waits).
-- Table order: JobsDLQ, JobsHot, JobKeys, JobsArchive (read), AuditLog. The reverse of a move to the DLQ meets none: a job that
--   stands in the DLQ has no row in Hot. Keys are taken in Id order, not in key order as EnqueueJobs takes them; whoever becomes
--   the victim of that is called again. A caller's open transaction that holds the key is waited for.
CREATE OR ALTER PROCEDURE chokaq.ResurrectJobs
    @Jobs        nvarchar(max),
    @Mask        int,
    @Payload     varbinary(max),
    @PayloadHash varchar(32),
    @Tags        nvarchar(1000),
    @Priority    int,
    @WithoutKey  bit,
    @Actor       nvarchar(100),
    @Reason      nvarchar(1000),
    @RequestId   varchar(26)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @Now datetime2(3), @Try int = 0, @Error int, @Locked int, @Text varchar(max), @Size bigint;
    DECLARE @Set TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY);
    DECLARE @Found TABLE (
        JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
        DlqKey nvarchar(255) COLLATE Latin1_General_BIN2 NULL, BeforeState nvarchar(max) NULL, AfterState nvarchar(max) NULL);
    DECLARE @Answer TABLE (
        JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY, Result tinyint NOT NULL,
        Holder char(26) COLLATE Latin1_General_BIN2 NULL);
    DECLARE @Stands TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY, Status tinyint NOT NULL);
    SET @Reason = NULLIF(@Reason, N'');
    SET @RequestId = NULLIF(@RequestId, '');
    IF @Mask & 8 = 8 SET @Tags = NULL;
    SET @Text = CAST(@Payload AS varchar(max));
    SET @Size = DATALENGTH(@Payload);
    INSERT @Set (JobId) SELECT j.i FROM OPENJSON(@Jobs) WITH (i char(26) '$.i') j;

    -- Two resurrections, or an enqueue, may take one key at once: the unique index arbitrates, and the loser looks again.
    WHILE 1 = 1
    BEGIN
        SET @Try = @Try + 1;
        SET @Now = SYSUTCDATETIME();
        DELETE FROM @Found;
        DELETE FROM @Answer;
        DELETE FROM @Stands;
        BEGIN TRY
            BEGIN TRANSACTION;
            -- The rows, locked in Id order; then a write that changes nothing: it, and no hint, keeps a second operator out.
            SELECT @Locked = COUNT(*) FROM @Set s JOIN chokaq.JobsDLQ d WITH (UPDLOCK, ROWLOCK, FORCESEEK) ON d.Id = s.JobId
            OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
            UPDATE chokaq.JobsDLQ SET LeaseNumber = LeaseNumber
            FROM chokaq.JobsDLQ WITH (ROWLOCK, FORCESEEK)
            WHERE Id IN (SELECT DISTINCT TOP (1000) s.JobId FROM @Set s ORDER BY s.JobId)
            OPTION (LOOP JOIN, MAXDOP 1);

            -- What an earlier try of this call did, whatever became of it since.
            IF @RequestId IS NOT NULL
                INSERT @Answer (JobId, Result)
                SELECT s.JobId, 0 FROM @Set s
                WHERE EXISTS (SELECT 1 FROM chokaq.AuditLog a WITH (FORCESEEK)
                              WHERE a.Target = s.JobId AND a.RequestId = @RequestId AND a.Action = 'resurrect');
            INSERT @Found (JobId, DlqKey, BeforeState, AfterState)
            SELECT d.Id, CASE WHEN @WithoutKey = 0 THEN d.IdempotencyKey END,
                   (SELECT CASE d.Status WHEN 4 THEN 'Failed' WHEN 5 THEN 'Cancelled' ELSE 'Zombie' END AS status,
                           d.Queue AS queue, d.Type AS type, d.Priority AS priority, d.Tags AS tags,
                           d.IdempotencyKey AS idempotency_key, d.AttemptCount AS attempts, d.CrashCount AS crashes,
                           d.FailureReason AS failure_reason, d.PayloadHash AS payload_hash, DATALENGTH(d.Payload) AS payload_size
                    FOR JSON PATH, INCLUDE_NULL_VALUES, WITHOUT_ARRAY_WRAPPER),
                   (SELECT 'Pending' AS status, d.Queue AS queue, d.Type AS type,
                           CASE WHEN @Mask & 4 = 4 THEN @Priority ELSE d.Priority END AS priority,
                           CASE WHEN @Mask & 10 > 0 THEN @Tags ELSE d.Tags END AS tags,
                           CASE WHEN @WithoutKey = 0 THEN d.IdempotencyKey END AS idempotency_key,
                           0 AS attempts, 0 AS crashes, CAST(NULL AS int) AS failure_reason,
                           CASE WHEN @Mask & 1 = 1 THEN CAST(@PayloadHash AS char(32)) ELSE d.PayloadHash END AS payload_hash,
                           CASE WHEN @Mask & 1 = 1 THEN @Size ELSE DATALENGTH(d.Payload) END AS payload_size
                    FOR JSON PATH, INCLUDE_NULL_VALUES, WITHOUT_ARRAY_WRAPPER)
            FROM @Set s JOIN chokaq.JobsDLQ d WITH (FORCESEEK) ON d.Id = s.JobId
            WHERE d.Status IN (4, 5, 6) AND NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = s.JobId)
            OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);

            -- Whose key another live job holds; of several jobs of this call with one key the first by id goes.
            IF EXISTS (SELECT 1 FROM @Found f WHERE f.DlqKey IS NOT NULL)
            BEGIN
                INSERT @Answer (JobId, Result, Holder)
                SELECT f.JobId, 3, h.Id
                FROM @Found f JOIN chokaq.JobsHot h WITH (FORCESEEK, INDEX (UX_JobsHot_Key))
                    ON h.IdempotencyKey = f.DlqKey AND h.IdempotencyKey IS NOT NULL
                OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
                INSERT @Answer (JobId, Result, Holder)
                SELECT f.JobId, 3, k.JobId
                FROM @Found f JOIN chokaq.JobKeys k WITH (FORCESEEK) ON k.IdempotencyKey = f.DlqKey
                WHERE k.JobId <> f.JobId AND EXISTS (SELECT 1 FROM chokaq.JobsHot h WITH (FORCESEEK) WHERE h.Id = k.JobId)
                  AND NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = f.JobId)
                OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
                INSERT @Answer (JobId, Result, Holder)
                SELECT f.JobId, 3, MIN(g.JobId)
                FROM @Found f JOIN @Found g ON g.DlqKey = f.DlqKey
                WHERE g.JobId < f.JobId AND NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = f.JobId)
                GROUP BY f.JobId;
                DELETE FROM @Found WHERE JobId IN (SELECT a.JobId FROM @Answer a);
            END;

            IF EXISTS (SELECT 1 FROM @Found)
            BEGIN
                -- The edits first, where the rows still are: an OUTPUT takes no CASE on every engine.
                IF @Mask > 0 OR @WithoutKey = 1
                    UPDATE chokaq.JobsDLQ
                    SET Priority = CASE WHEN @Mask & 4 = 4 THEN @Priority ELSE Priority END,
                        Tags = CASE WHEN @Mask & 10 > 0 THEN @Tags ELSE Tags END,
                        PayloadHash = CASE WHEN @Mask & 1 = 1 THEN @PayloadHash ELSE PayloadHash END,
                        Payload = CASE WHEN @Mask & 1 = 1 THEN @Text ELSE Payload END,
                        KeyScope = CASE WHEN @WithoutKey = 1 THEN 0 ELSE KeyScope END,
                        IdempotencyKey = CASE WHEN @WithoutKey = 1 THEN NULL ELSE IdempotencyKey END
                    FROM chokaq.JobsDLQ WITH (ROWLOCK, FORCESEEK)
                    WHERE Id IN (SELECT DISTINCT TOP (1000) f.JobId FROM @Found f ORDER BY f.JobId)
                    OPTION (LOOP JOIN, MAXDOP 1);
                DELETE FROM chokaq.JobsDLQ
                OUTPUT deleted.Id, deleted.Queue, deleted.Type, 0, 1, deleted.Priority, @Now, deleted.LeaseNumber, 0, 0,
                       deleted.Progress, deleted.CreatedAtUtc, deleted.ScheduledAtUtc, @Now, deleted.KeyScope, deleted.PayloadHash,
                       deleted.IdempotencyKey, deleted.OwnerLogin, deleted.CreatedBy, deleted.Tags, deleted.Headers, deleted.Payload
                INTO chokaq.JobsHot
                    (Id, Queue, Type, Status, IsReady, Priority, DueAtUtc, LeaseNumber, AttemptCount, CrashCount, Progress,
                     CreatedAtUtc, ScheduledAtUtc, AgeFromUtc, KeyScope, PayloadHash, IdempotencyKey, OwnerLogin, CreatedBy, Tags,
                     Headers, Payload)
                FROM chokaq.JobsDLQ WITH (ROWLOCK, FORCESEEK)
                WHERE Id IN (SELECT DISTINCT TOP (1000) f.JobId FROM @Found f ORDER BY f.JobId)
                OPTION (LOOP JOIN, MAXDOP 1);
                IF @WithoutKey = 1
                    DELETE FROM chokaq.JobKeys WHERE JobId IN (SELECT DISTINCT TOP (1000) f.JobId FROM @Found f ORDER BY f.JobId);
                INSERT @Answer (JobId, Result) SELECT f.JobId, 0 FROM @Found f;
            END;

            -- Where each stands now, Hot before Archive before DLQ; Hot again, since a job may be on its way back there.
            INSERT @Stands (JobId, Status)
            SELECT p.JobId, MIN(p.Status)
            FROM (SELECT s.JobId, h.Status FROM @Set s JOIN chokaq.JobsHot h WITH (FORCESEEK) ON h.Id = s.JobId
                  UNION ALL
                  SELECT s.JobId, 3 FROM @Set s JOIN chokaq.JobsArchive a WITH (FORCESEEK) ON a.Id = s.JobId
                  UNION ALL
                  SELECT s.JobId, d.Status FROM @Set s JOIN chokaq.JobsDLQ d WITH (FORCESEEK) ON d.Id = s.JobId
                  UNION ALL
                  SELECT s.JobId, h.Status FROM @Set s JOIN chokaq.JobsHot h WITH (FORCESEEK) ON h.Id = s.JobId) p
            GROUP BY p.JobId
            OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);

            INSERT INTO chokaq.AuditLog (AtUtc, Actor, Action, Target, Reason, BeforeState, AfterState, RequestId)
            SELECT @Now, @Actor, 'resurrect', f.JobId, @Reason, f.BeforeState, f.AfterState, @RequestId
            FROM @Found f;
            COMMIT TRANSACTION;
            BREAK;
        END TRY
        BEGIN CATCH
            SET @Error = ERROR_NUMBER();
            IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
            IF @Error NOT IN (2601, 2627) OR @Try >= 10
                THROW;
        END CATCH;
    END;

    SELECT s.JobId AS JobId, COALESCE(a.Result, CASE WHEN t.JobId IS NULL THEN 2 ELSE 1 END) AS Result, t.Status AS Status,
           a.Holder AS Holder, h.Queue AS Queue
    FROM @Set s LEFT JOIN @Answer a ON a.JobId = s.JobId LEFT JOIN @Stands t ON t.JobId = s.JobId
    LEFT JOIN chokaq.JobsHot h WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK) ON h.Id = a.JobId AND h.Status = 0 AND a.Result = 0
    OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
END;
GO
