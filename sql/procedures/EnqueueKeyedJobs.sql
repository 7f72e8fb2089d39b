SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- EnqueueKeyedJobs: accept new jobs, some of them with idempotency keys, durably, each at most once per id and per key.
-- Called by: the client, on its own connection (@InCaller 0: one transaction of its own) or inside an application's transaction
--   (@InCaller 1: nothing is begun or committed here, an error rolls back to a savepoint of this call, and reads are READ COMMITTED
--   whatever the caller's isolation level).
-- Parameters:
--   @Mapped    33 characters that occur in no text of the call; they stand for " \ and U+0001 … U+001F, in this order, in free text.
--   @Jobs      JSON array, one object per job, ids and keys not repeated, sorted by key: i id, qa/qn queue, ta/tn type,
--              ha/hn headers (null: none), pa/pn payload (each as 1-based start and length in @Bytes), p priority, d delay in ms,
--              u due instant in ms since 1970 (wins over d), z payload hash, g tags, c created by, k idempotency key, s key scope
--              (0 active, 1 retained, 2 window), w key window in ms. Free text (g, c, k) is mapped.
--   @Bytes     the ASCII texts of the call, one after the other.
--   @InCaller  1 inside an application's transaction.
-- Result: one row per job: JobId, AnswerId, Created, Status, PayloadHash (of the job that answers). Inside an application's
--   transaction an error comes as one row of two columns, ErrorNumber and ErrorText: thrown, it ends that transaction on some engines.
-- Errors: 50001 a key stayed contended for ten tries, or its holder is invisible to a snapshot; 50002 unreadable document.
-- Table order: JobsHot, JobsArchive, JobsDLQ, JobKeys. Writes no shared row, since a caller may stay open for long.
CREATE OR ALTER PROCEDURE chokaq.EnqueueKeyedJobs
    @Mapped   nvarchar(33),
    @Jobs     nvarchar(max),
    @Bytes    varbinary(max),
    @InCaller bit
AS
BEGIN
    SET NOCOUNT ON;
    -- A caught duplicate must never doom a caller's transaction.
    SET XACT_ABORT OFF;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Epoch datetime2(3) = '1970-01-01';
    DECLARE @Ours bit = CASE WHEN @InCaller = 0 AND @@TRANCOUNT = 0 THEN 1 ELSE 0 END, @Saved bit = 0;
    DECLARE @Count int, @Moved int, @Try int = 0;
    DECLARE @Error int, @ErrorText nvarchar(4000), @Login nvarchar(128) = COALESCE(ORIGINAL_LOGIN(), SUSER_SNAME());
    -- What a JSON string would have to escape travels as one of @Mapped instead, and is put back by TRANSLATE.
    DECLARE @Plain nvarchar(33) = N'"\'
        + NCHAR(1) + NCHAR(2) + NCHAR(3) + NCHAR(4) + NCHAR(5) + NCHAR(6) + NCHAR(7) + NCHAR(8) + NCHAR(9) + NCHAR(10) + NCHAR(11)
        + NCHAR(12) + NCHAR(13) + NCHAR(14) + NCHAR(15) + NCHAR(16) + NCHAR(17) + NCHAR(18) + NCHAR(19) + NCHAR(20) + NCHAR(21)
        + NCHAR(22) + NCHAR(23) + NCHAR(24) + NCHAR(25) + NCHAR(26) + NCHAR(27) + NCHAR(28) + NCHAR(29) + NCHAR(30) + NCHAR(31);

    DECLARE @New TABLE (
        JobId          char(26)       COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
        Queue          varchar(255)   COLLATE Latin1_General_BIN2 NULL,
        Type           varchar(255)   COLLATE Latin1_General_BIN2 NULL,
        Priority       int            NULL,
        DelayMs        bigint         NULL,
        DueMs          bigint         NULL,
        HeadersAt      int            NULL,
        HeadersLength  int            NULL,
        PayloadAt      int            NULL,
        PayloadLength  int            NULL,
        PayloadHash    char(32)       COLLATE Latin1_General_BIN2 NULL,
        IdempotencyKey nvarchar(255)  COLLATE Latin1_General_BIN2 NULL,
        KeyScope       tinyint        NULL,
        WindowMs       bigint         NULL,
        CreatedBy      nvarchar(100)  NULL,
        Tags           nvarchar(1000) NULL
    );
    DECLARE @Taken TABLE (
        JobId    char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
        HolderId char(26) COLLATE Latin1_General_BIN2 NOT NULL
    );
    DECLARE @Fresh TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY);
    DECLARE @Live TABLE (
        JobId    char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
        HolderId char(26) COLLATE Latin1_General_BIN2 NOT NULL
    );
    DECLARE @Answer TABLE (
        JobId       char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
        AnswerId    char(26) COLLATE Latin1_General_BIN2 NOT NULL,
        Created     bit      NOT NULL,
        Status      tinyint  NOT NULL,
        PayloadHash char(32) COLLATE Latin1_General_BIN2 NOT NULL
    );

    -- TRY_CONVERT everywhere: a conversion error would doom a caller's transaction.
    INSERT @New (JobId, Queue, Type, Priority, DelayMs, DueMs, HeadersAt, HeadersLength, PayloadAt, PayloadLength,
                 PayloadHash, IdempotencyKey, KeyScope, WindowMs, CreatedBy, Tags)
    SELECT j.i,
           CAST(SUBSTRING(@Bytes, TRY_CONVERT(int, j.qa), TRY_CONVERT(int, j.qn)) AS varchar(255)),
           CAST(SUBSTRING(@Bytes, TRY_CONVERT(int, j.ta), TRY_CONVERT(int, j.tn)) AS varchar(255)),
           TRY_CONVERT(int, j.p), TRY_CONVERT(bigint, j.d), TRY_CONVERT(bigint, j.u),
           TRY_CONVERT(int, j.ha), TRY_CONVERT(int, j.hn), TRY_CONVERT(int, j.pa), TRY_CONVERT(int, j.pn), j.z,
           TRANSLATE(j.k COLLATE Latin1_General_BIN2, @Mapped, @Plain), TRY_CONVERT(tinyint, j.s), TRY_CONVERT(bigint, j.w),
           TRANSLATE(j.c COLLATE Latin1_General_BIN2, @Mapped, @Plain),
           TRANSLATE(j.g COLLATE Latin1_General_BIN2, @Mapped, @Plain)
    FROM OPENJSON(@Jobs) WITH (
        i char(26) '$.i', qa nvarchar(20) '$.qa', qn nvarchar(20) '$.qn', ta nvarchar(20) '$.ta',
        tn nvarchar(20) '$.tn', p nvarchar(20) '$.p', d nvarchar(30) '$.d', u nvarchar(30) '$.u', ha nvarchar(20) '$.ha',
        hn nvarchar(20) '$.hn', pa nvarchar(20) '$.pa', pn nvarchar(20) '$.pn', z char(32) '$.z', k nvarchar(255) '$.k',
        s nvarchar(20) '$.s', w nvarchar(30) '$.w', c nvarchar(100) '$.c', g nvarchar(1000) '$.g') j;
    SET @Count = @@ROWCOUNT;

    IF EXISTS (SELECT 1 FROM @New WHERE Queue IS NULL OR Type IS NULL OR Priority IS NULL OR DelayMs IS NULL
                                     OR PayloadAt IS NULL OR PayloadLength IS NULL OR PayloadHash IS NULL OR KeyScope IS NULL
                                     OR KeyScope > 2 OR (KeyScope = 2 AND WindowMs IS NULL))
        THROW 50002, 'chokaq: the document of EnqueueKeyedJobs is not readable', 1;

    BEGIN TRY
        IF @Ours = 1 BEGIN TRANSACTION;
        ELSE IF @@TRANCOUNT > 0
        BEGIN
            SAVE TRANSACTION ChokaqEnqueue;
            SET @Saved = 1;
        END;
        WHILE (SELECT COUNT(*) FROM @Answer) < @Count
        BEGIN
            SET @Try = @Try + 1;
            SET @Error = 0;
            DELETE FROM @Fresh;
            IF @Try > 10
                THROW 50001,
                    'chokaq: an idempotency key stayed contended, or its holder is invisible to a snapshot: retry the transaction', 1;

            -- A repeat of an enqueue finds its own job first, wherever it stands by now.
            INSERT @Answer (JobId, AnswerId, Created, Status, PayloadHash)
            SELECT n.JobId, n.JobId, 1, h.Status, h.PayloadHash
            FROM @New n JOIN chokaq.JobsHot h WITH (READCOMMITTEDLOCK, FORCESEEK) ON h.Id = n.JobId
            WHERE NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = n.JobId)
            OPTION (LOOP JOIN, MAXDOP 1);
            INSERT @Answer (JobId, AnswerId, Created, Status, PayloadHash)
            SELECT n.JobId, n.JobId, 1, 3, h.PayloadHash
            FROM @New n JOIN chokaq.JobsArchive h WITH (READCOMMITTEDLOCK, FORCESEEK) ON h.Id = n.JobId
            WHERE NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = n.JobId)
            OPTION (LOOP JOIN, MAXDOP 1);
            INSERT @Answer (JobId, AnswerId, Created, Status, PayloadHash)
            SELECT n.JobId, n.JobId, 1, h.Status, h.PayloadHash
            FROM @New n JOIN chokaq.JobsDLQ h WITH (READCOMMITTEDLOCK, FORCESEEK) ON h.Id = n.JobId
            WHERE NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = n.JobId)
            OPTION (LOOP JOIN, MAXDOP 1);

            -- Step 1: retained and windowed keys.
            DELETE FROM @Taken;
            INSERT @Taken (JobId, HolderId)
            SELECT n.JobId, k.JobId
            FROM @New n JOIN chokaq.JobKeys k WITH (READCOMMITTEDLOCK, FORCESEEK) ON k.IdempotencyKey = n.IdempotencyKey
            WHERE k.JobId <> n.JobId
              AND (k.KeyScope = 1 OR k.ExpiresAtUtc > @Now
                   OR EXISTS (SELECT 1 FROM chokaq.JobsHot h WITH (READCOMMITTEDLOCK) WHERE h.Id = k.JobId))
              AND NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = n.JobId)
            OPTION (LOOP JOIN, MAXDOP 1);

            -- Step 2: the unique index over live keys arbitrates. In key order, so that two callers lock in one order.
            BEGIN TRY
                INSERT INTO chokaq.JobsHot
                      (Id, Queue, Type,
                       Status, IsReady, Priority, DueAtUtc, LeaseNumber, AttemptCount, CrashCount, CreatedAtUtc,
                       ScheduledAtUtc, AgeFromUtc, KeyScope, PayloadHash,
                       IdempotencyKey, OwnerLogin, CreatedBy, Tags,
                       Headers,
                       Payload)
                OUTPUT inserted.Id INTO @Fresh (JobId)
                SELECT n.JobId, n.Queue, n.Type,
                       0, CASE WHEN t.DueAtUtc <= @Now THEN 1 ELSE 0 END, n.Priority, t.DueAtUtc, 0, 0, 0, @Now,
                       CASE WHEN n.DueMs IS NOT NULL OR n.DelayMs > 0 THEN t.DueAtUtc END, t.DueAtUtc, n.KeyScope, n.PayloadHash,
                       n.IdempotencyKey, @Login, n.CreatedBy, n.Tags,
                       CAST(SUBSTRING(@Bytes, n.HeadersAt, n.HeadersLength) AS varchar(4000)),
                       CAST(SUBSTRING(@Bytes, n.PayloadAt, n.PayloadLength) AS varchar(max))
                FROM @New n
                CROSS APPLY (SELECT CASE WHEN n.DueMs IS NULL
                    THEN DATEADD(MILLISECOND, CAST(n.DelayMs % 1000 AS int),
                         DATEADD(SECOND, CAST(n.DelayMs / 1000 % 86400 AS int),
                         DATEADD(DAY, CAST(n.DelayMs / 86400000 AS int), @Now)))
                    ELSE DATEADD(MILLISECOND, CAST(n.DueMs % 1000 AS int),
                         DATEADD(SECOND, CAST(n.DueMs / 1000 % 86400 AS int),
                         DATEADD(DAY, CAST(n.DueMs / 86400000 AS int), @Epoch)))
                    END AS DueAtUtc) t
                WHERE NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = n.JobId)
                  AND NOT EXISTS (SELECT 1 FROM @Taken x WHERE x.JobId = n.JobId)
                  AND NOT EXISTS (SELECT 1 FROM chokaq.JobsHot h WITH (READCOMMITTEDLOCK) WHERE h.Id = n.JobId)
                  AND NOT EXISTS (SELECT 1 FROM chokaq.JobsHot h WITH (READCOMMITTEDLOCK)
                      WHERE h.IdempotencyKey = n.IdempotencyKey AND h.IdempotencyKey IS NOT NULL)
                ORDER BY n.IdempotencyKey, n.JobId
                OPTION (LOOP JOIN, MAXDOP 1);
            END TRY
            BEGIN CATCH
                SET @Error = ERROR_NUMBER();
                IF @Error NOT IN (2601, 2627) OR XACT_STATE() <> 1
                    THROW;
            END CATCH;
            IF @Error <> 0 CONTINUE;

            -- Did a job of ours leave Hot before the insert? It is the one that stands; the fresh row goes.
            INSERT @Answer (JobId, AnswerId, Created, Status, PayloadHash)
            SELECT n.JobId, n.JobId, 1, 3, h.PayloadHash
            FROM @New n JOIN chokaq.JobsArchive h WITH (READCOMMITTEDLOCK, FORCESEEK) ON h.Id = n.JobId
            WHERE NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = n.JobId)
            OPTION (LOOP JOIN, MAXDOP 1);
            SET @Moved = @@ROWCOUNT;
            INSERT @Answer (JobId, AnswerId, Created, Status, PayloadHash)
            SELECT n.JobId, n.JobId, 1, h.Status, h.PayloadHash
            FROM @New n JOIN chokaq.JobsDLQ h WITH (READCOMMITTEDLOCK, FORCESEEK) ON h.Id = n.JobId
            WHERE NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = n.JobId)
            OPTION (LOOP JOIN, MAXDOP 1);
            IF @Moved + @@ROWCOUNT > 0
                DELETE FROM chokaq.JobsHot
                FROM chokaq.JobsHot WITH (ROWLOCK, FORCESEEK)
                WHERE Id IN (SELECT f.JobId FROM @Fresh f JOIN @Answer a ON a.JobId = f.JobId
                             WHERE a.AnswerId = a.JobId AND a.Status > 2)
                OPTION (LOOP JOIN, MAXDOP 1);

            -- Step 3: an entry that was committed between steps 1 and 2 wins over the fresh row.
            INSERT @Taken (JobId, HolderId)
            SELECT n.JobId, k.JobId
            FROM @New n JOIN chokaq.JobKeys k WITH (READCOMMITTEDLOCK, FORCESEEK) ON k.IdempotencyKey = n.IdempotencyKey
            WHERE k.JobId <> n.JobId
              AND (k.KeyScope = 1 OR k.ExpiresAtUtc > @Now
                   OR EXISTS (SELECT 1 FROM chokaq.JobsHot h WITH (READCOMMITTEDLOCK) WHERE h.Id = k.JobId))
              AND NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = n.JobId)
              AND NOT EXISTS (SELECT 1 FROM @Taken x WHERE x.JobId = n.JobId)
            OPTION (LOOP JOIN, MAXDOP 1);
            IF @@ROWCOUNT > 0
                DELETE FROM chokaq.JobsHot
                FROM chokaq.JobsHot WITH (ROWLOCK, FORCESEEK)
                WHERE Id IN (SELECT f.JobId FROM @Fresh f JOIN @Taken x ON x.JobId = f.JobId)
                OPTION (LOOP JOIN, MAXDOP 1);

            -- Step 4: the entry of a fresh row whose scope has one; an expired entry of a job that is gone is replaced.
            IF EXISTS (SELECT 1 FROM @New n JOIN chokaq.JobKeys k WITH (READCOMMITTEDLOCK, FORCESEEK)
                           ON k.IdempotencyKey = n.IdempotencyKey
                       WHERE n.KeyScope IN (1, 2) AND k.JobId <> n.JobId
                         AND NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = n.JobId))
                UPDATE chokaq.JobKeys
                SET JobId = n.JobId, KeyScope = n.KeyScope,
                    ExpiresAtUtc = CASE WHEN n.KeyScope = 2
                        THEN DATEADD(MILLISECOND, CAST(n.WindowMs % 1000 AS int),
                             DATEADD(SECOND, CAST(n.WindowMs / 1000 % 86400 AS int),
                             DATEADD(DAY, CAST(n.WindowMs / 86400000 AS int), @Now)))
                        END
                FROM @New n
                WHERE n.IdempotencyKey = JobKeys.IdempotencyKey AND n.KeyScope IN (1, 2) AND JobKeys.JobId <> n.JobId
                  AND NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = n.JobId)
                  AND EXISTS (SELECT 1 FROM chokaq.JobsHot h WITH (READCOMMITTEDLOCK) WHERE h.Id = n.JobId)
                OPTION (LOOP JOIN, MAXDOP 1);
            INSERT INTO chokaq.JobKeys (IdempotencyKey, JobId, KeyScope, ExpiresAtUtc)
            SELECT n.IdempotencyKey, n.JobId, n.KeyScope,
                   CASE WHEN n.KeyScope = 2
                       THEN DATEADD(MILLISECOND, CAST(n.WindowMs % 1000 AS int),
                            DATEADD(SECOND, CAST(n.WindowMs / 1000 % 86400 AS int),
                            DATEADD(DAY, CAST(n.WindowMs / 86400000 AS int), @Now)))
                       END
            FROM @New n
            WHERE n.IdempotencyKey IS NOT NULL AND n.KeyScope IN (1, 2)
              AND NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = n.JobId)
              AND EXISTS (SELECT 1 FROM chokaq.JobsHot h WITH (READCOMMITTEDLOCK) WHERE h.Id = n.JobId)
              AND NOT EXISTS (SELECT 1 FROM chokaq.JobKeys k WITH (READCOMMITTEDLOCK) WHERE k.IdempotencyKey = n.IdempotencyKey);

            -- Who else holds a key: the live job under it, or the job of its entry, wherever that stands.
            -- Ids from the index alone, then rows by primary key: a lookup would lock key, then row, against every mover.
            DELETE FROM @Live;
            INSERT @Live (JobId, HolderId)
            SELECT n.JobId, h.Id
            FROM @New n JOIN chokaq.JobsHot h WITH (READCOMMITTEDLOCK, FORCESEEK, INDEX (UX_JobsHot_Key))
                ON h.IdempotencyKey = n.IdempotencyKey AND h.IdempotencyKey IS NOT NULL
            WHERE h.Id <> n.JobId AND NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = n.JobId)
            OPTION (LOOP JOIN, MAXDOP 1);
            INSERT @Answer (JobId, AnswerId, Created, Status, PayloadHash)
            SELECT x.JobId, h.Id, 0, h.Status, h.PayloadHash
            FROM @Live x JOIN chokaq.JobsHot h WITH (READCOMMITTEDLOCK, FORCESEEK) ON h.Id = x.HolderId
            OPTION (LOOP JOIN, MAXDOP 1);
            IF EXISTS (SELECT 1 FROM @Taken)
            BEGIN
                INSERT @Answer (JobId, AnswerId, Created, Status, PayloadHash)
                SELECT x.JobId, h.Id, 0, h.Status, h.PayloadHash
                FROM @Taken x JOIN chokaq.JobsHot h WITH (READCOMMITTEDLOCK, FORCESEEK) ON h.Id = x.HolderId
                WHERE NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = x.JobId);
                INSERT @Answer (JobId, AnswerId, Created, Status, PayloadHash)
                SELECT x.JobId, h.Id, 0, 3, h.PayloadHash
                FROM @Taken x JOIN chokaq.JobsArchive h WITH (READCOMMITTEDLOCK, FORCESEEK) ON h.Id = x.HolderId
                WHERE NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = x.JobId);
                INSERT @Answer (JobId, AnswerId, Created, Status, PayloadHash)
                SELECT x.JobId, h.Id, 0, h.Status, h.PayloadHash
                FROM @Taken x JOIN chokaq.JobsDLQ h WITH (READCOMMITTEDLOCK, FORCESEEK) ON h.Id = x.HolderId
                WHERE NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = x.JobId);
            END;

            -- What is in Hot under its own id now was accepted.
            INSERT @Answer (JobId, AnswerId, Created, Status, PayloadHash)
            SELECT n.JobId, n.JobId, 1, h.Status, h.PayloadHash
            FROM @New n JOIN chokaq.JobsHot h WITH (READCOMMITTEDLOCK, FORCESEEK) ON h.Id = n.JobId
            WHERE NOT EXISTS (SELECT 1 FROM @Answer a WHERE a.JobId = n.JobId)
            OPTION (LOOP JOIN, MAXDOP 1);
        END;
        IF @Ours = 1 COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @InCaller = 1 AND XACT_STATE() = 1
        BEGIN
            SELECT @Error = ERROR_NUMBER(), @ErrorText = ERROR_MESSAGE();
            -- Without a savepoint there was no transaction yet: what the first statement here began holds nothing of the caller's.
            IF @Saved = 1 ROLLBACK TRANSACTION ChokaqEnqueue;
            ELSE ROLLBACK TRANSACTION;
            SELECT @Error AS ErrorNumber, @ErrorText AS ErrorText;
            RETURN;
        END;
        IF @Ours = 1 AND @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
        THROW;
    END CATCH;

    SELECT a.JobId AS JobId, a.AnswerId AS AnswerId, a.Created AS Created, a.Status AS Status, a.PayloadHash AS PayloadHash
    FROM @Answer a;
END;
GO
