SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ListAttempts: the failed attempts of one job, oldest first, at most 1,000.
-- Called by: operators and readers.
-- Parameters:
--   @JobId  the job.
-- Result: JobId, LeaseNumber, AtUtc, WorkerId, FailureReason, ErrorType, ErrorMessage, Trace.
-- Table order: JobAttempts.
CREATE OR ALTER PROCEDURE chokaq.ListAttempts
    @JobId char(26)
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    SELECT TOP (1000) a.JobId AS JobId, a.LeaseNumber AS LeaseNumber, a.AtUtc AS AtUtc, a.WorkerId AS WorkerId,
           a.FailureReason AS FailureReason, a.ErrorType AS ErrorType, a.ErrorMessage AS ErrorMessage, a.Trace AS Trace
    FROM chokaq.JobAttempts a
    WHERE a.JobId = @JobId
    ORDER BY a.LeaseNumber;
END;
GO
