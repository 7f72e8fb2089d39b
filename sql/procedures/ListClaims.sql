SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ListClaims: the keys that a job's runs hold or have completed, by key, at most 100.
-- Called by: operators and readers, for the view of one job.
-- Parameters:
--   @JobId  the job.
-- Result: ClaimKey, JobId, LeaseNumber, WorkerId, State (running or done), ClaimedAtUtc, DoneAtUtc, ExpiresAtUtc (null: never),
--   Result.
-- Table order: RunClaims.
CREATE OR ALTER PROCEDURE chokaq.ListClaims
    @JobId char(26)
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    SELECT TOP (100) c.ClaimKey AS ClaimKey, c.JobId AS JobId, c.LeaseNumber AS LeaseNumber, c.WorkerId AS WorkerId,
           c.State AS State, c.ClaimedAtUtc AS ClaimedAtUtc, c.DoneAtUtc AS DoneAtUtc, c.ExpiresAtUtc AS ExpiresAtUtc,
           c.Result AS Result
    FROM chokaq.RunClaims c
    WHERE c.JobId = @JobId
    ORDER BY c.ClaimKey;
END;
GO
