SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ReadChanges: marks to compare with those of the time before, and the jobs that somebody looks at. Once a second per process.
-- Called by: The Deck.
-- Parameters: @Jobs JSON array of {i: id}, not repeated, at most 500; @SignedOutSince seconds of which the sign-outs are told as well
--   (-1: none are).
-- Results: 1. NowUtc, AuditId (newest; 0: none), OrderNumber (latest order to circuits), CircuitRows, CircuitFailures,
--   CircuitChangedUtc, LiveWorkers, DrainingWorkers, WorkerBeatUtc; 2. Id, Queue of the 50 newest jobs of Hot, newest first;
--   3. AtSecond (since 2020), Queue, Outcome, JobCount of the last 10 s, at most 5,000; 4. Queue, Leases held, counted up to 100,000;
--   5. of @Jobs: JobId, Pillar, Status, LeaseNumber, AttemptCount, Priority, Progress, Cancelled (1: asked for), NotedAtUtc;
--   6. only with @SignedOutSince: SessionId, RemainingMs of the sessions that were ended before their time, at most the newest 1,000.
-- Table order: Workers, Circuits, CircuitOrders, AuditLog, JobsHot, MetricBuckets, JobNotes, JobsArchive, JobsDLQ, JobsHot again, SignOuts.
CREATE OR ALTER PROCEDURE chokaq.ReadChanges
    @Jobs           nvarchar(max),
    @SignedOutSince int = -1
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Audit bigint, @Order bigint, @Rows int, @Failures bigint, @Changed datetime2(3);
    DECLARE @Live int, @Draining int, @Beat datetime2(3);
    DECLARE @Set TABLE (JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY);
    DECLARE @Found TABLE (
        JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY, Pillar varchar(10) NOT NULL, Status tinyint NOT NULL,
        LeaseNumber int NOT NULL, AttemptCount int NOT NULL, Priority int NOT NULL, Progress tinyint NULL, Cancelled bit NOT NULL);
    SELECT @Live = COUNT(*), @Draining = COALESCE(SUM(CASE WHEN w.DrainAtUtc IS NULL THEN 0 ELSE 1 END), 0),
        @Beat = MAX(w.HeartbeatUtc)
    FROM chokaq.Workers w WHERE w.EndedAtUtc IS NULL;
    SELECT @Rows = COUNT(*), @Failures = COALESCE(SUM(CAST(c.Failures AS bigint)), 0), @Changed = MAX(c.ChangedAtUtc)
    FROM chokaq.Circuits c;
    SELECT @Order = MAX(o.OrderNumber) FROM chokaq.CircuitOrders o WHERE o.TypeKey = '';
    SELECT @Audit = MAX(a.AuditId) FROM chokaq.AuditLog a;
    SELECT @Now AS NowUtc, COALESCE(@Audit, 0) AS AuditId, COALESCE(@Order, 0) AS OrderNumber, @Rows AS CircuitRows,
        @Failures AS CircuitFailures, @Changed AS CircuitChangedUtc, @Live AS LiveWorkers, @Draining AS DrainingWorkers,
        @Beat AS WorkerBeatUtc;

    SELECT TOP (50) h.Id AS Id, h.Queue AS Queue
    FROM chokaq.JobsHot h WITH (READPAST, READCOMMITTEDLOCK) ORDER BY h.Id DESC;

    SELECT TOP (5000) DATEDIFF(SECOND, '2020-01-01', b.StartUtc) AS AtSecond, b.Queue AS Queue, b.Outcome AS Outcome,
        SUM(b.JobCount) AS JobCount
    FROM chokaq.MetricBuckets b
    WHERE b.Seconds = 1 AND b.StartUtc >= DATEADD(SECOND, -10, @Now)
    GROUP BY b.StartUtc, b.Queue, b.Outcome
    ORDER BY b.StartUtc DESC, b.Queue, b.Outcome;

    SELECT x.Queue AS Queue, COUNT(*) AS Leases
    FROM (SELECT TOP (100000) h.Queue FROM chokaq.JobsHot h WITH (READPAST, READCOMMITTEDLOCK, INDEX (IX_JobsHot_Lease))
          WHERE h.Status IN (1, 2)) x
    GROUP BY x.Queue ORDER BY x.Queue;

    INSERT @Set (JobId) SELECT TOP (500) j.i FROM OPENJSON(@Jobs) WITH (i char(26) '$.i') j;
    -- Hot first and last, so that a moving job is seen; who is locked by a transition is told of next time.
    INSERT @Found (JobId, Pillar, Status, LeaseNumber, AttemptCount, Priority, Progress, Cancelled)
    SELECT s.JobId, 'hot', h.Status, h.LeaseNumber, h.AttemptCount, h.Priority, h.Progress,
        CASE WHEN h.CancelRequestedAtUtc IS NULL THEN 0 ELSE 1 END
    FROM @Set s JOIN chokaq.JobsHot h WITH (FORCESEEK) ON h.Id = s.JobId
    OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
    INSERT @Found (JobId, Pillar, Status, LeaseNumber, AttemptCount, Priority, Progress, Cancelled)
    SELECT s.JobId, 'archive', 3, h.LeaseNumber, h.AttemptCount, h.Priority, h.Progress, 0
    FROM @Set s JOIN chokaq.JobsArchive h WITH (FORCESEEK) ON h.Id = s.JobId
    WHERE NOT EXISTS (SELECT 1 FROM @Found f WHERE f.JobId = s.JobId)
    OPTION (LOOP JOIN, MAXDOP 1);
    INSERT @Found (JobId, Pillar, Status, LeaseNumber, AttemptCount, Priority, Progress, Cancelled)
    SELECT s.JobId, 'dlq', h.Status, h.LeaseNumber, h.AttemptCount, h.Priority, h.Progress,
        CASE WHEN h.CancelRequestedAtUtc IS NULL THEN 0 ELSE 1 END
    FROM @Set s JOIN chokaq.JobsDLQ h WITH (FORCESEEK) ON h.Id = s.JobId
    WHERE NOT EXISTS (SELECT 1 FROM @Found f WHERE f.JobId = s.JobId)
    OPTION (LOOP JOIN, MAXDOP 1);
    INSERT @Found (JobId, Pillar, Status, LeaseNumber, AttemptCount, Priority, Progress, Cancelled)
    SELECT s.JobId, 'hot', h.Status, h.LeaseNumber, h.AttemptCount, h.Priority, h.Progress,
        CASE WHEN h.CancelRequestedAtUtc IS NULL THEN 0 ELSE 1 END
    FROM @Set s JOIN chokaq.JobsHot h WITH (FORCESEEK) ON h.Id = s.JobId
    WHERE NOT EXISTS (SELECT 1 FROM @Found f WHERE f.JobId = s.JobId)
    OPTION (LOOP JOIN, MAXDOP 1);
    SELECT f.JobId AS JobId, f.Pillar AS Pillar, f.Status AS Status, f.LeaseNumber AS LeaseNumber, f.AttemptCount AS AttemptCount,
        f.Priority AS Priority, f.Progress AS Progress, f.Cancelled AS Cancelled, n.NotedAtUtc AS NotedAtUtc
    FROM @Found f LEFT JOIN chokaq.JobNotes n ON n.JobId = f.JobId
    ORDER BY f.JobId;

    IF @SignedOutSince >= 0
        SELECT TOP (1000) o.SessionId AS SessionId, DATEDIFF_BIG(MILLISECOND, @Now, o.UntilUtc) AS RemainingMs
        FROM chokaq.SignOuts o
        WHERE o.EndedAtUtc >= DATEADD(SECOND, -@SignedOutSince, @Now) AND o.UntilUtc > @Now
        ORDER BY o.EndedAtUtc DESC;
END;
GO
