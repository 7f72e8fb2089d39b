SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- PurgeLeftovers: delete what belongs to no job any more:
--   workers that ended, or were last heard of, over 7 days ago;
--   expired window keys whose job is not live;
--   minute buckets older than 30 days (second buckets go with RollUp);
--   what ended workers said of their circuits;
--   markers of completed runs that have expired, and claims of unfinished runs that expired over a day ago (until then a holder
--   that comes back may renew its own).
-- Called by: the maintenance leader.
-- Parameters:
--   @Size  rows of a kind at most (1 … 1,000).
-- Result: Purged, rows of all kinds.
-- Table order: Workers, JobKeys (JobsHot read), MetricBuckets, Circuits (Workers read), RunClaims; each statement is a
--   transaction of its own.
CREATE OR ALTER PROCEDURE chokaq.PurgeLeftovers
    @Size int
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SET DEADLOCK_PRIORITY LOW;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Limit datetime2(3), @Purged int;
    IF @Size > 1000 SET @Size = 1000;

    SET @Limit = DATEADD(DAY, -7, @Now);
    DELETE FROM chokaq.Workers
    WHERE WorkerId IN (SELECT TOP (@Size) w.WorkerId FROM chokaq.Workers w
                       WHERE w.EndedAtUtc < @Limit OR (w.EndedAtUtc IS NULL AND w.HeartbeatUtc < @Limit)
                       ORDER BY w.WorkerId)
      AND (EndedAtUtc < @Limit OR (EndedAtUtc IS NULL AND HeartbeatUtc < @Limit));
    SET @Purged = @@ROWCOUNT;

    DELETE FROM chokaq.JobKeys
    WHERE IdempotencyKey IN (SELECT TOP (@Size) k.IdempotencyKey FROM chokaq.JobKeys k
                             WHERE k.ExpiresAtUtc <= @Now
                               AND NOT EXISTS (SELECT 1 FROM chokaq.JobsHot h WHERE h.Id = k.JobId)
                             ORDER BY k.ExpiresAtUtc)
      AND ExpiresAtUtc <= @Now;
    SET @Purged = @Purged + @@ROWCOUNT;

    DECLARE @Old TABLE (
        OldSlot    int          NOT NULL,
        OldStart   datetime2(0) NOT NULL,
        OldQueue   varchar(255) COLLATE Latin1_General_BIN2 NOT NULL,
        OldOutcome tinyint      NOT NULL,
        OldReason  int          NOT NULL,
        PRIMARY KEY (OldSlot, OldStart, OldQueue, OldOutcome, OldReason)
    );
    INSERT @Old (OldSlot, OldStart, OldQueue, OldOutcome, OldReason)
    SELECT TOP (@Size) b.Slot, b.StartUtc, b.Queue, b.Outcome, b.FailureReason
    FROM chokaq.MetricBuckets b WITH (FORCESEEK, INDEX (IX_MetricBuckets_Start))
    WHERE b.Seconds = 60 AND b.StartUtc < DATEADD(DAY, -30, @Now) ORDER BY b.StartUtc;
    DELETE FROM chokaq.MetricBuckets
    WHERE Seconds = 60
      AND EXISTS (SELECT 1 FROM @Old o
                  WHERE o.OldSlot = Slot AND o.OldStart = StartUtc AND o.OldQueue = Queue
                    AND o.OldOutcome = Outcome AND o.OldReason = FailureReason);
    SET @Purged = @Purged + @@ROWCOUNT;

    DELETE FROM chokaq.Circuits
    WHERE WorkerId IN (SELECT TOP (@Size) c.WorkerId FROM chokaq.Circuits c
                       WHERE NOT EXISTS (SELECT 1 FROM chokaq.Workers w WHERE w.WorkerId = c.WorkerId AND w.EndedAtUtc IS NULL)
                       ORDER BY c.WorkerId);
    SET @Purged = @Purged + @@ROWCOUNT;

    DELETE FROM chokaq.RunClaims
    WHERE ClaimKey IN (SELECT TOP (@Size) c.ClaimKey FROM chokaq.RunClaims c
                       WHERE c.State = 'done' AND c.ExpiresAtUtc <= @Now
                       ORDER BY c.ExpiresAtUtc)
      AND State = 'done' AND ExpiresAtUtc <= @Now;
    SET @Purged = @Purged + @@ROWCOUNT;

    SET @Limit = DATEADD(DAY, -1, @Now);
    DELETE FROM chokaq.RunClaims
    WHERE ClaimKey IN (SELECT TOP (@Size) c.ClaimKey FROM chokaq.RunClaims c
                       WHERE c.State = 'running' AND c.ExpiresAtUtc <= @Limit
                       ORDER BY c.ExpiresAtUtc)
      AND State = 'running' AND ExpiresAtUtc <= @Limit;
    SET @Purged = @Purged + @@ROWCOUNT;

    SELECT @Purged AS Purged;
END;
GO
