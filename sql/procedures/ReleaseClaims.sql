SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ReleaseClaims: give up claims whose run has not completed, so that another may run. The fence is (key, id, lease); the marker of
--   a completed run stays.
-- Called by: the settle lane of a child, before the jobs themselves are settled.
-- Parameters:
--   @Mapped  33 characters that no text of the call holds; they stand for " \ and U+0001 … U+001F, in this order.
--   @Claims  JSON array, one object per claim, no key twice, at most 1,000: n number of the claim, i id, l lease, k key (mapped).
-- Result: Number, Answer (1: the key is free, by this call or an earlier one; 0 stale: it is somebody else's, or done).
-- Table order: RunClaims.
CREATE OR ALTER PROCEDURE chokaq.ReleaseClaims
    @Mapped nvarchar(33),
    @Claims nvarchar(max)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    -- What a JSON string would have to escape travels as one of @Mapped instead, and is put back by TRANSLATE.
    DECLARE @Plain nvarchar(33) = N'"\'
        + NCHAR(1) + NCHAR(2) + NCHAR(3) + NCHAR(4) + NCHAR(5) + NCHAR(6) + NCHAR(7) + NCHAR(8) + NCHAR(9) + NCHAR(10) + NCHAR(11)
        + NCHAR(12) + NCHAR(13) + NCHAR(14) + NCHAR(15) + NCHAR(16) + NCHAR(17) + NCHAR(18) + NCHAR(19) + NCHAR(20) + NCHAR(21)
        + NCHAR(22) + NCHAR(23) + NCHAR(24) + NCHAR(25) + NCHAR(26) + NCHAR(27) + NCHAR(28) + NCHAR(29) + NCHAR(30) + NCHAR(31);
    DECLARE @Set TABLE (
        AskedKey nvarchar(255) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
        Number   int           NOT NULL,
        AskedId  char(26)      COLLATE Latin1_General_BIN2 NOT NULL,
        Lease    int           NOT NULL
    );

    INSERT @Set (AskedKey, Number, AskedId, Lease)
    SELECT TRANSLATE(j.k COLLATE Latin1_General_BIN2, @Mapped, @Plain), j.n, j.i, j.l
    FROM OPENJSON(@Claims) WITH (n int '$.n', i char(26) '$.i', l int '$.l', k nvarchar(255) '$.k') j;

    DELETE FROM chokaq.RunClaims
    WHERE State = 'running'
      AND ClaimKey IN (SELECT DISTINCT TOP (1000) s.AskedKey FROM @Set s ORDER BY s.AskedKey)
      AND EXISTS (SELECT 1 FROM @Set s WHERE s.AskedKey = ClaimKey AND s.AskedId = JobId AND s.Lease = LeaseNumber)
    OPTION (LOOP JOIN, MAXDOP 1);

    SELECT s.Number AS Number, CASE WHEN c.ClaimKey IS NULL THEN 1 ELSE 0 END AS Answer
    FROM @Set s LEFT JOIN chokaq.RunClaims c ON c.ClaimKey = s.AskedKey
    OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
END;
GO
