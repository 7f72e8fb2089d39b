SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ListFamilies: the largest families of errors among the newest 10,000 jobs of the DLQ (by id), Dropped ones left out.
-- Called by: The Deck.
-- Parameters: @Queue (empty: all); @Limit families.
-- Result: FailureReason, ErrorType, JobCount, LatestUtc, Message (of the newest job, 200 characters), the largest first.
-- Table order: JobsDLQ.
CREATE OR ALTER PROCEDURE chokaq.ListFamilies
    @Queue varchar(255),
    @Limit int
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SELECT f.FailureReason AS FailureReason, f.ErrorType AS ErrorType, f.JobCount AS JobCount, f.LatestUtc AS LatestUtc,
        COALESCE(LEFT(m.ErrorMessage, 200), N'') AS Message
    FROM (SELECT TOP (@Limit) x.FailureReason AS FailureReason, x.ErrorType AS ErrorType, COUNT(*) AS JobCount,
              MAX(x.FailedAtUtc) AS LatestUtc, MAX(x.Id) AS NewestId
          FROM (SELECT TOP (10000) d.Id AS Id, d.FailureReason AS FailureReason, d.FailedAtUtc AS FailedAtUtc,
                    d.ErrorType COLLATE Latin1_General_BIN2 AS ErrorType
                FROM chokaq.JobsDLQ d
                WHERE (@Queue = '' OR d.Queue = @Queue) AND d.Status <> 7
                ORDER BY d.Id DESC) x
          GROUP BY x.FailureReason, x.ErrorType
          ORDER BY COUNT(*) DESC, MAX(x.Id) DESC) f
    JOIN chokaq.JobsDLQ m ON m.Id = f.NewestId
    ORDER BY f.JobCount DESC, f.NewestId DESC
    OPTION (RECOMPILE);
END;
GO
