SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- RenewClaims: move the expiry of claims that are still held.
-- Called by: the pulse lane of a child, together with KeepAlive, when its handlers hold claims.
-- Parameters: @Mapped as for EnqueueJobs; @Claims JSON array of {n: number of the claim, i: id, l: lease, k: key (mapped), t: time
--   to live in ms, from now}, no key repeated, at most 1,000. The fence is (key, id, lease); a claim that has expired and was taken
--   by nobody is renewed as well.
-- Result: Number, Answer (0 stale: it is somebody else's, or the run has ended; 1 renewed).
-- Table order: RunClaims.
CREATE OR ALTER PROCEDURE chokaq.RenewClaims
    @Mapped nvarchar(33),
    @Claims nvarchar(max)
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
        AskedKey nvarchar(255) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY, Number int NOT NULL,
        AskedId char(26) COLLATE Latin1_General_BIN2 NOT NULL, Lease int NOT NULL, TtlMs bigint NOT NULL);
    INSERT @Set (AskedKey, Number, AskedId, Lease, TtlMs)
    SELECT TRANSLATE(j.k COLLATE Latin1_General_BIN2, @Mapped, @Plain), j.n, j.i, j.l, j.t
    FROM OPENJSON(@Claims) WITH (n int '$.n', i char(26) '$.i', l int '$.l', k nvarchar(255) '$.k', t bigint '$.t') j;

    UPDATE chokaq.RunClaims
    SET ExpiresAtUtc = DATEADD(MILLISECOND, CAST(s.TtlMs % 1000 AS int),
                       DATEADD(SECOND, CAST(s.TtlMs / 1000 % 86400 AS int),
                       DATEADD(DAY, CAST(s.TtlMs / 86400000 AS int), @Now)))
    FROM @Set s
    WHERE ClaimKey = s.AskedKey AND JobId = s.AskedId AND LeaseNumber = s.Lease AND State = 'running'
    OPTION (LOOP JOIN, MAXDOP 1);

    SELECT s.Number AS Number, CASE WHEN c.ClaimKey IS NULL THEN 0 ELSE 1 END AS Answer
    FROM @Set s
    LEFT JOIN chokaq.RunClaims c ON c.ClaimKey = s.AskedKey AND c.JobId = s.AskedId AND c.LeaseNumber = s.Lease AND c.State = 'running'
    OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
END;
GO
