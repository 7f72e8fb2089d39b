SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- PurgeLeftovers: delete what belongs to no job any more:
--   workers that ended, or were last heard of, over 7 days ago;
--   expired window keys whose job is not live;
--   minute buckets older than 30 days (second buckets go with RollUp);
--   what ended workers said of their circuits, and what circuits did over 7 days ago; of what each did since then the newest 1,000 tries
--   and the newest 2,000 other events stay;
--   sign-outs from The Deck whose session would have ended by now;
--   markers of completed runs that have expired, and claims of unfinished runs that expired over a day ago (until then a holder
--   that comes back may renew its own).
-- Called by: the maintenance leader.
-- Parameters:
--   @Size  rows of a kind at most (1 … 1,000).
-- Result: Purged, rows of all kinds.
-- Table order: Workers, JobKeys (JobsHot read), MetricBuckets, Circuits (Workers read), CircuitEvents, SignOuts, RunClaims; each statement is a
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

    DECLARE @Past TABLE (
        PastType varchar(255) COLLATE Latin1_General_BIN2 NOT NULL,
        PastAt   datetime2(3) NOT NULL,
        PastId   bigint       NOT NULL,
        PRIMARY KEY (PastType, PastAt, PastId)
    );
    INSERT @Past (PastType, PastAt, PastId)
    SELECT TOP (@Size) e.TypeKey, e.AtUtc, e.EventId
    FROM chokaq.CircuitEvents e WITH (FORCESEEK, INDEX (IX_CircuitEvents_At))
    WHERE e.AtUtc < @Limit ORDER BY e.AtUtc;
    INSERT @Past (PastType, PastAt, PastId)
    SELECT TOP (@Size) x.TypeKey, x.AtUtc, x.EventId
    FROM (SELECT e.TypeKey AS TypeKey, e.AtUtc AS AtUtc, e.EventId AS EventId,
                 CASE WHEN e.FromState > 0 AND e.ToState > 0 THEN 1000 ELSE 2000 END AS Kept,
                 ROW_NUMBER() OVER (PARTITION BY e.TypeKey, CASE WHEN e.FromState > 0 AND e.ToState > 0 THEN 1000 ELSE 2000 END
                                    ORDER BY e.AtUtc DESC, e.EventId DESC) AS Place
          FROM chokaq.CircuitEvents e WHERE e.AtUtc >= @Limit) x
    WHERE x.Place > x.Kept
    ORDER BY x.TypeKey, x.AtUtc, x.EventId
    OPTION (MAXDOP 1);
    DELETE FROM chokaq.CircuitEvents
    WHERE EXISTS (SELECT 1 FROM @Past p WHERE p.PastType = TypeKey AND p.PastAt = AtUtc AND p.PastId = EventId);
    SET @Purged = @Purged + @@ROWCOUNT;

    DELETE FROM chokaq.SignOuts
    WHERE SessionId IN (SELECT TOP (@Size) o.SessionId FROM chokaq.SignOuts o WHERE o.UntilUtc <= @Now ORDER BY o.SessionId)
      AND UntilUtc <= @Now;
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
