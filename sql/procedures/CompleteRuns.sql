SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- CompleteRuns: claims become the markers of completed runs.
-- Called by: the settle lane of a child, before the jobs themselves are settled.
-- Parameters: @Mapped as for EnqueueJobs; @Claims JSON array of {n: number of the claim, i: id, l: lease, k: key (mapped), t: how
--   long the marker answers in ms (absent: for ever), ra/rn: result, as 1-based start and length in @Bytes (absent: none)}, no key
--   repeated, at most 1,000; @Bytes the results (ASCII JSON), one after the other. The fence is (key, id, lease).
-- Result: Number, Answer (0 stale: the claim is somebody else's, or gone; 1 applied by this call or an earlier one).
-- Table order: RunClaims.
CREATE OR ALTER PROCEDURE chokaq.CompleteRuns
    @Mapped nvarchar(33),
    @Claims nvarchar(max),
    @Bytes  varbinary(max)
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
        AskedId char(26) COLLATE Latin1_General_BIN2 NOT NULL, Lease int NOT NULL, TtlMs bigint NULL, ResultAt int NULL,
        ResultLength int NULL);
    INSERT @Set (AskedKey, Number, AskedId, Lease, TtlMs, ResultAt, ResultLength)
    SELECT TRANSLATE(j.k COLLATE Latin1_General_BIN2, @Mapped, @Plain), j.n, j.i, j.l, j.t, j.ra, j.rn
    FROM OPENJSON(@Claims) WITH (n int '$.n', i char(26) '$.i', l int '$.l', k nvarchar(255) '$.k', t bigint '$.t',
                                 ra int '$.ra', rn int '$.rn') j;

    UPDATE chokaq.RunClaims
    SET State = 'done', DoneAtUtc = @Now,
        Result = CASE WHEN s.ResultAt IS NOT NULL THEN CAST(SUBSTRING(@Bytes, s.ResultAt, s.ResultLength) AS varchar(max)) END,
        ExpiresAtUtc = CASE WHEN s.TtlMs IS NOT NULL THEN
                       DATEADD(MILLISECOND, CAST(s.TtlMs % 1000 AS int),
                       DATEADD(SECOND, CAST(s.TtlMs / 1000 % 86400 AS int),
                       DATEADD(DAY, CAST(s.TtlMs / 86400000 AS int), @Now))) END
    FROM @Set s
    WHERE ClaimKey = s.AskedKey AND JobId = s.AskedId AND LeaseNumber = s.Lease AND State = 'running'
    OPTION (LOOP JOIN, MAXDOP 1);

    SELECT s.Number AS Number, CASE WHEN c.ClaimKey IS NULL THEN 0 ELSE 1 END AS Answer
    FROM @Set s
    LEFT JOIN chokaq.RunClaims c ON c.ClaimKey = s.AskedKey AND c.JobId = s.AskedId AND c.LeaseNumber = s.Lease AND c.State = 'done'
    OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
END;
GO
