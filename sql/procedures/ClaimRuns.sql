SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ClaimRuns: running jobs claim the keys under which their work must be done once. A key is free when nobody holds it or what is
--   there has expired; a job enters its own claim again, under the same lease or a newer one. A job that is not Processing under
--   the lease claims nothing.
-- Called by: the claim lane of a child, for handlers behind the idempotency middleware.
-- Parameters:
--   @WorkerId  the worker of those who claim.
--   @Mapped    33 characters that no text of the call holds; they stand for " \ and U+0001 … U+001F, in this order.
--   @Claims    JSON array, one object per claim, no key twice, at most 1,000: n number of the claim, i id, l lease, k key (mapped),
--              t time to live in ms.
-- Result: Number, Answer (0 stale: the lease is lost, 1 claimed, 2 busy: another job's unfinished run, 3 done), HolderId,
--   ExpiresInMs (null: never), Result (of a completed run).
-- Table order: JobsHot (read), RunClaims.
CREATE OR ALTER PROCEDURE chokaq.ClaimRuns
    @WorkerId char(26),
    @Mapped   nvarchar(33),
    @Claims   nvarchar(max)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    DECLARE @Now datetime2(3), @Try int = 0, @Left int = 1;
    -- What a JSON string would have to escape travels as one of @Mapped instead, and is put back by TRANSLATE.
    DECLARE @Plain nvarchar(33) = N'"\'
        + NCHAR(1) + NCHAR(2) + NCHAR(3) + NCHAR(4) + NCHAR(5) + NCHAR(6) + NCHAR(7) + NCHAR(8) + NCHAR(9) + NCHAR(10) + NCHAR(11)
        + NCHAR(12) + NCHAR(13) + NCHAR(14) + NCHAR(15) + NCHAR(16) + NCHAR(17) + NCHAR(18) + NCHAR(19) + NCHAR(20) + NCHAR(21)
        + NCHAR(22) + NCHAR(23) + NCHAR(24) + NCHAR(25) + NCHAR(26) + NCHAR(27) + NCHAR(28) + NCHAR(29) + NCHAR(30) + NCHAR(31);
    DECLARE @Set TABLE (
        AskedKey nvarchar(255) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
        Number   int           NOT NULL,
        AskedId  char(26)      COLLATE Latin1_General_BIN2 NOT NULL,
        Lease    int           NOT NULL,
        TtlMs    bigint        NOT NULL,
        Holds    bit           NOT NULL
    );

    INSERT @Set (AskedKey, Number, AskedId, Lease, TtlMs, Holds)
    SELECT TRANSLATE(j.k COLLATE Latin1_General_BIN2, @Mapped, @Plain), j.n, j.i, j.l, j.t, 0
    FROM OPENJSON(@Claims) WITH (n int '$.n', i char(26) '$.i', l int '$.l', k nvarchar(255) '$.k', t bigint '$.t') j;
    UPDATE @Set SET Holds = 1
    WHERE EXISTS (SELECT 1 FROM chokaq.JobsHot h WITH (FORCESEEK)
                  WHERE h.Id = AskedId AND h.LeaseNumber = Lease AND h.Status = 2)
    OPTION (LOOP JOIN, MAXDOP 1);

    WHILE @Left > 0 AND @Try < 10
    BEGIN
        SET @Try = @Try + 1;
        BEGIN TRY
            BEGIN TRANSACTION;
            SET @Now = SYSUTCDATETIME();
            -- DATEADD takes an int: days, seconds and milliseconds are added apart.
            UPDATE chokaq.RunClaims
            SET JobId = s.AskedId, LeaseNumber = s.Lease, WorkerId = @WorkerId, State = 'running', ClaimedAtUtc = @Now,
                DoneAtUtc = NULL, Result = NULL,
                ExpiresAtUtc = DATEADD(MILLISECOND, CAST(s.TtlMs % 1000 AS int),
                               DATEADD(SECOND, CAST(s.TtlMs / 1000 % 86400 AS int),
                               DATEADD(DAY, CAST(s.TtlMs / 86400000 AS int), @Now)))
            FROM @Set s
            WHERE ClaimKey = s.AskedKey AND s.Holds = 1
              AND (ExpiresAtUtc <= @Now OR (State = 'running' AND JobId = s.AskedId AND LeaseNumber <= s.Lease))
            OPTION (LOOP JOIN, MAXDOP 1);
            INSERT INTO chokaq.RunClaims
                  (ClaimKey, JobId, LeaseNumber, WorkerId, State, ClaimedAtUtc,
                   ExpiresAtUtc)
            SELECT s.AskedKey, s.AskedId, s.Lease, @WorkerId, 'running', @Now,
                   DATEADD(MILLISECOND, CAST(s.TtlMs % 1000 AS int),
                   DATEADD(SECOND, CAST(s.TtlMs / 1000 % 86400 AS int),
                   DATEADD(DAY, CAST(s.TtlMs / 86400000 AS int), @Now)))
            FROM @Set s
            WHERE s.Holds = 1
              AND NOT EXISTS (SELECT 1 FROM chokaq.RunClaims c WHERE c.ClaimKey = s.AskedKey);
            COMMIT TRANSACTION;
        END TRY
        BEGIN CATCH
            IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
            -- The primary key arbitrates between jobs that claim one key at once: look again who has it.
            IF ERROR_NUMBER() NOT IN (2601, 2627) OR @Try >= 10
                THROW;
        END CATCH;
        -- Keys whose holder let go between our look and now are asked for once more.
        SELECT @Left = COUNT(*)
        FROM @Set s
        WHERE s.Holds = 1
          AND NOT EXISTS (SELECT 1 FROM chokaq.RunClaims c WHERE c.ClaimKey = s.AskedKey);
    END;

    SET @Now = SYSUTCDATETIME();
    SELECT s.Number AS Number,
           CASE WHEN s.Holds = 0 THEN 0
                WHEN c.ClaimKey IS NULL THEN 2
                WHEN c.State = 'done' THEN 3
                WHEN c.JobId <> s.AskedId THEN 2
                WHEN c.LeaseNumber = s.Lease THEN 1
                ELSE 0 END AS Answer,
           c.JobId AS HolderId,
           CASE WHEN c.ExpiresAtUtc <= @Now THEN 0 ELSE DATEDIFF_BIG(MILLISECOND, @Now, c.ExpiresAtUtc) END AS ExpiresInMs,
           c.Result AS Result
    FROM @Set s LEFT JOIN chokaq.RunClaims c ON c.ClaimKey = s.AskedKey
    OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
END;
GO
