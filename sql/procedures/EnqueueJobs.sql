SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- EnqueueJobs: accept new jobs without idempotency keys durably, each at most once per id. (With keys: EnqueueKeyedJobs.)
-- Called by: the client, on its own connection (@InCaller 0: one transaction of its own) or inside an application's transaction
--   (@InCaller 1: nothing is begun or committed here, and an error rolls back to a savepoint of this call).
-- Parameters:
--   @Mapped    33 characters that occur in no text of the call; they stand for " \ and U+0001 … U+001F, in this order, in free text.
--   @Ids       the ids of the call, the smallest first: id,id,…
--   @Jobs      JSON array, one object per job, ids not repeated: i id, qa/qn queue, ta/tn type, ha/hn headers (null: none), pa/pn
--              payload (each as 1-based start and length in @Bytes), p priority, d delay in ms, u due instant in ms since 1970 (wins
--              over d), z payload hash, s key scope, g tags, c created by. Free text (g, c) is mapped.
--   @Bytes     the ASCII texts of the call, one after the other.
--   @InCaller  1 inside an application's transaction.
-- Result: nothing when every job was accepted now. Else one row per job, wherever it stands by now: JobId, AnswerId, Created, Status,
--   PayloadHash. Inside an application's transaction an error comes as one row of two columns, ErrorNumber and ErrorText: thrown, it
--   ends that transaction on some engines.
-- Errors: 50001 a job was there and gone again in ten tries; 50002 unreadable document.
-- Table order: JobsHot, JobsArchive, JobsDLQ. Writes no shared row, since a caller may stay open for long.
CREATE OR ALTER PROCEDURE chokaq.EnqueueJobs
    @Mapped   nvarchar(33),
    @Ids      varchar(max),
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
    DECLARE @Count int = LEN(@Ids) - LEN(REPLACE(@Ids, ',', '')) + 1, @Inserted int = -1, @Try int = 0;
    DECLARE @Error int, @ErrorText nvarchar(4000), @Newest char(26);
    DECLARE @Login nvarchar(128) = COALESCE(ORIGINAL_LOGIN(), SUSER_SNAME());
    -- What a JSON string would have to escape travels as one of @Mapped instead, and is put back by TRANSLATE.
    DECLARE @Plain nvarchar(33) = N'"\'
        + NCHAR(1) + NCHAR(2) + NCHAR(3) + NCHAR(4) + NCHAR(5) + NCHAR(6) + NCHAR(7) + NCHAR(8) + NCHAR(9) + NCHAR(10) + NCHAR(11)
        + NCHAR(12) + NCHAR(13) + NCHAR(14) + NCHAR(15) + NCHAR(16) + NCHAR(17) + NCHAR(18) + NCHAR(19) + NCHAR(20) + NCHAR(21)
        + NCHAR(22) + NCHAR(23) + NCHAR(24) + NCHAR(25) + NCHAR(26) + NCHAR(27) + NCHAR(28) + NCHAR(29) + NCHAR(30) + NCHAR(31);
    IF LEN(@Ids) = 0 RETURN;

    BEGIN TRY
        IF @Ours = 1 BEGIN TRANSACTION;
        ELSE IF @@TRANCOUNT > 0
        BEGIN
            SAVE TRANSACTION ChokaqEnqueue;
            SET @Saved = 1;
        END;

        WHILE @Inserted < 0
        BEGIN
            SET @Try = @Try + 1;
            IF @Try > 10
                THROW 50001, 'chokaq: a job was there and gone again in ten tries: retry the transaction', 1;
            BEGIN TRY
                INSERT INTO chokaq.JobsHot
                      (Id, Queue, Type,
                       Status, IsReady, Priority, DueAtUtc, LeaseNumber, AttemptCount, CrashCount, CreatedAtUtc,
                       ScheduledAtUtc, AgeFromUtc, KeyScope, PayloadHash,
                       OwnerLogin, CreatedBy, Tags, Headers, Payload)
                SELECT t.JobId, t.Queue, t.Type,
                       0, CASE WHEN t.DueAtUtc <= @Now THEN 1 ELSE 0 END, t.Priority, t.DueAtUtc, 0, 0, 0, @Now,
                       CASE WHEN t.DueMs IS NOT NULL OR t.DelayMs > 0 THEN t.DueAtUtc END, t.DueAtUtc, t.KeyScope, t.PayloadHash,
                       @Login, t.CreatedBy, t.Tags, t.Headers, t.Payload
                FROM (SELECT j.i AS JobId, j.z AS PayloadHash, j.p AS Priority, j.s AS KeyScope, j.d AS DelayMs, j.u AS DueMs,
                             CAST(SUBSTRING(@Bytes, j.qa, j.qn) AS varchar(255)) AS Queue,
                             CAST(SUBSTRING(@Bytes, j.ta, j.tn) AS varchar(255)) AS Type,
                             CAST(SUBSTRING(@Bytes, j.ha, j.hn) AS varchar(4000)) AS Headers,
                             CAST(SUBSTRING(@Bytes, j.pa, j.pn) AS varchar(max)) AS Payload,
                             TRANSLATE(j.c COLLATE Latin1_General_BIN2, @Mapped, @Plain) AS CreatedBy,
                             TRANSLATE(j.g COLLATE Latin1_General_BIN2, @Mapped, @Plain) AS Tags,
                             CASE WHEN j.u IS NULL
                                 THEN DATEADD(MILLISECOND, CAST(j.d % 1000 AS int),
                                      DATEADD(SECOND, CAST(j.d / 1000 % 86400 AS int),
                                      DATEADD(DAY, CAST(j.d / 86400000 AS int), @Now)))
                                 ELSE DATEADD(MILLISECOND, CAST(j.u % 1000 AS int),
                                      DATEADD(SECOND, CAST(j.u / 1000 % 86400 AS int),
                                      DATEADD(DAY, CAST(j.u / 86400000 AS int), @Epoch)))
                             END AS DueAtUtc
                      FROM OPENJSON(@Jobs) WITH (
                          i char(26) '$.i', z char(32) '$.z', p int '$.p', s tinyint '$.s', d bigint '$.d', u bigint '$.u',
                          qa int '$.qa', qn int '$.qn', ta int '$.ta', tn int '$.tn', ha int '$.ha', hn int '$.hn',
                          pa int '$.pa', pn int '$.pn', c nvarchar(100) '$.c', g nvarchar(1000) '$.g') j) t
                WHERE @Try = 1
                   OR (NOT EXISTS (SELECT 1 FROM chokaq.JobsHot h WITH (READCOMMITTEDLOCK) WHERE h.Id = t.JobId)
                       AND NOT EXISTS (SELECT 1 FROM chokaq.JobsArchive a WITH (READCOMMITTEDLOCK) WHERE a.Id = t.JobId)
                       AND NOT EXISTS (SELECT 1 FROM chokaq.JobsDLQ d WITH (READCOMMITTEDLOCK) WHERE d.Id = t.JobId));
                SET @Inserted = @@ROWCOUNT;
            END TRY
            BEGIN CATCH
                -- The first try looks nowhere: new ids stand nowhere. A duplicate is the repeat of a call, and the next try looks.
                SET @Error = ERROR_NUMBER();
                IF @Error = 515
                    THROW 50002, 'chokaq: the document of EnqueueJobs is not readable', 1;
                IF @Error NOT IN (2601, 2627) OR XACT_STATE() <> 1
                    THROW;
            END CATCH;
        END;

        -- Did a job of a repeated call leave Hot before the insert? It is the one that stands; the fresh row goes. Ids grow with
        -- time: what is greater than every id that has left Hot is spared the look.
        SELECT @Newest = MAX(t.Id)
        FROM (SELECT MAX(Id) AS Id FROM chokaq.JobsArchive WITH (READCOMMITTEDLOCK)
              UNION ALL
              SELECT MAX(Id) FROM chokaq.JobsDLQ WITH (READCOMMITTEDLOCK)) t;
        IF @Newest >= CAST(LEFT(@Ids, CHARINDEX(',', @Ids + ',') - 1) AS char(26)) COLLATE Latin1_General_BIN2
           AND (EXISTS (SELECT 1 FROM chokaq.JobsArchive a WITH (READCOMMITTEDLOCK, FORCESEEK)
                        WHERE a.Id IN (SELECT DISTINCT TOP (1000) CAST(s.value AS char(26)) COLLATE Latin1_General_BIN2 AS JobId
                                       FROM STRING_SPLIT(@Ids, ',') s ORDER BY JobId))
                OR EXISTS (SELECT 1 FROM chokaq.JobsDLQ d WITH (READCOMMITTEDLOCK, FORCESEEK)
                           WHERE d.Id IN (SELECT DISTINCT TOP (1000) CAST(s.value AS char(26)) COLLATE Latin1_General_BIN2 AS JobId
                                          FROM STRING_SPLIT(@Ids, ',') s ORDER BY JobId)))
        BEGIN
            DELETE FROM chokaq.JobsHot
            FROM chokaq.JobsHot WITH (ROWLOCK, FORCESEEK)
            WHERE Status = 0 AND LeaseNumber = 0 AND CreatedAtUtc = @Now
              AND Id IN (SELECT DISTINCT TOP (1000) CAST(s.value AS char(26)) COLLATE Latin1_General_BIN2 AS JobId
                         FROM STRING_SPLIT(@Ids, ',') s ORDER BY JobId)
              AND (Id IN (SELECT a.Id FROM chokaq.JobsArchive a WITH (READCOMMITTEDLOCK)
                          WHERE a.Id IN (SELECT CAST(s.value AS char(26)) COLLATE Latin1_General_BIN2
                                         FROM STRING_SPLIT(@Ids, ',') s))
                   OR Id IN (SELECT d.Id FROM chokaq.JobsDLQ d WITH (READCOMMITTEDLOCK)
                             WHERE d.Id IN (SELECT CAST(s.value AS char(26)) COLLATE Latin1_General_BIN2
                                            FROM STRING_SPLIT(@Ids, ',') s)))
            OPTION (MAXDOP 1);
            SET @Inserted = 0;
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

    IF @Inserted < @Count
        SELECT t.JobId AS JobId, t.JobId AS AnswerId, 1 AS Created, t.Status AS Status, t.PayloadHash AS PayloadHash
        FROM (SELECT h.Id AS JobId, h.Status AS Status, h.PayloadHash AS PayloadHash
              FROM chokaq.JobsHot h WITH (READCOMMITTEDLOCK, FORCESEEK)
              WHERE h.Id IN (SELECT DISTINCT TOP (1000) CAST(s.value AS char(26)) COLLATE Latin1_General_BIN2 AS JobId
                             FROM STRING_SPLIT(@Ids, ',') s ORDER BY JobId)
              UNION ALL
              SELECT a.Id, 3, a.PayloadHash FROM chokaq.JobsArchive a WITH (READCOMMITTEDLOCK, FORCESEEK)
              WHERE a.Id IN (SELECT DISTINCT TOP (1000) CAST(s.value AS char(26)) COLLATE Latin1_General_BIN2 AS JobId
                             FROM STRING_SPLIT(@Ids, ',') s ORDER BY JobId)
              UNION ALL
              SELECT d.Id, d.Status, d.PayloadHash FROM chokaq.JobsDLQ d WITH (READCOMMITTEDLOCK, FORCESEEK)
              WHERE d.Id IN (SELECT DISTINCT TOP (1000) CAST(s.value AS char(26)) COLLATE Latin1_General_BIN2 AS JobId
                             FROM STRING_SPLIT(@Ids, ',') s ORDER BY JobId)) t;
END;
GO
