SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- GetScaleRecommendation: how many replicas a queue wants. Reads only, and may be asked every few seconds.
-- Called by: an autoscaler (KEDA's mssql scaler, which wants one number in one row), operators and readers.
-- Example: EXEC chokaq.GetScaleRecommendation @Queue = 'emails', @MinReplicas = 1, @MaxReplicas = 20
-- Parameters:
--   @Queue            the one that is asked for; an unknown one is an empty one.
--   @MinReplicas      the answer is never less (0 … 10,000), and
--   @MaxReplicas      never more (@MinReplicas … 10,000).
--   @TargetLagMs      milliseconds a due job may wait: only when one has waited longer the answer rises (0 … 86,400,000).
--   @CatchUpMs        milliseconds within which what waits is to be worked off (1,000 … 86,400,000).
--   @ReplicaHandlers  handlers that one replica runs at a time for the queue, max_workers x processes (0: as the live ones tell).
--   @FleetCap         the YAML's fleet_max_workers (-1: none; the override in Queues wins).
--   @BusyPercent      how busy handlers should be after a rise, in percent (@IdlePercent + 1 … 100).
--   @IdlePercent      how busy they should be after a fall (1 … @BusyPercent - 1); between the two nothing changes.
--   @Unit             replica: whatever one host name runs (a pod); process: one child.
--   @Explain          1: also the second result.
-- Formula: divisions round up; chokaq/lifecycle/scale.py has it once more, and the tests compare.
--   live    = replicas with a worker of the queue that has neither ended nor said that it drains, whose heartbeat is at most a
--             minute older than the newest heartbeat of any worker, and at most ten minutes old.
--   need    = max(jobs running, handlers busy on average over five minutes); while the oldest due job has waited longer than
--             @TargetLagMs, or nothing is live: + waiting jobs x min(mean run time, @CatchUpMs) / @CatchUpMs.
--   low     = need / (handlers per replica x @BusyPercent), at least 1 for a queue with jobs and nothing live, and not above what
--             the fleet cap can use.       high = need / (handlers per replica x @IdlePercent), at least low.
--   answer  = live; raised to low while a job waits too long or nothing is live; lowered to high when none waits too long and none
--             that ended within five minutes did; within the bounds. Between low and high nothing changes.
--   held    = the answer is the present number while the queue is inactive or paused, while a circuit of it is open or being
--             tried, and while as many leases are held as the fleet cap allows: live replicas that have been there for a minute,
--             at least 1 when any is live. (What a deploy starts beside the old ones does not count: else each would raise it.)
--   Mean run time: of the jobs that succeeded within five minutes; unknown: @CatchUpMs. A circuit whose next try has been due for
--   two minutes, or that has been tried for ten, holds nothing: no job of its type waits.
-- Results, in this order:
--   1. Replicas.
--   2. With @Explain = 1: Replicas, Reason (inactive, paused, circuit, fleet_cap: held; lag: more; idle: fewer; steady; minimum,
--      maximum: a bound decided), Live, Settled, ReplicaHandlers, Due, OldestDueMs (null: none), Buffered, Running, BusyHandlers,
--      MeanRunMs (null: unknown), Late (jobs that began within five minutes and had waited longer than @TargetLagMs, counted in the
--      steps of the lag histogram), OpenCircuits, FleetCap (null: none), Low, High, IsPaused, IsActive. Counts of jobs
--      stop at 100,000.
-- Errors: 50004 a parameter outside its bounds.
-- Table order: Queues, Workers, Circuits, MetricBuckets, JobsHot.
CREATE OR ALTER PROCEDURE chokaq.GetScaleRecommendation
    @Queue           varchar(255),
    @MinReplicas     int         = 0,
    @MaxReplicas     int         = 100,
    @TargetLagMs     bigint      = 5000,
    @CatchUpMs       bigint      = 60000,
    @ReplicaHandlers int         = 0,
    @FleetCap        int         = -1,
    @BusyPercent     int         = 80,
    @IdlePercent     int         = 50,
    @Unit            varchar(10) = 'replica',
    @Explain         bit         = 0
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    IF @MinReplicas IS NULL OR @MaxReplicas IS NULL
       OR NOT (0 <= @MinReplicas AND @MinReplicas <= @MaxReplicas AND @MaxReplicas <= 10000)
        THROW 50004, 'chokaq: GetScaleRecommendation wants 0 <= @MinReplicas <= @MaxReplicas <= 10000', 1;
    IF @TargetLagMs IS NULL OR @TargetLagMs NOT BETWEEN 0 AND 86400000
        THROW 50004, 'chokaq: GetScaleRecommendation wants @TargetLagMs from 0 to 86400000', 1;
    IF @CatchUpMs IS NULL OR @CatchUpMs NOT BETWEEN 1000 AND 86400000
        THROW 50004, 'chokaq: GetScaleRecommendation wants @CatchUpMs from 1000 to 86400000', 1;
    IF @ReplicaHandlers IS NULL OR @ReplicaHandlers NOT BETWEEN 0 AND 1000000
        THROW 50004, 'chokaq: GetScaleRecommendation wants @ReplicaHandlers from 0 to 1000000', 1;
    IF @BusyPercent IS NULL OR @IdlePercent IS NULL
       OR NOT (1 <= @IdlePercent AND @IdlePercent < @BusyPercent AND @BusyPercent <= 100)
        THROW 50004, 'chokaq: GetScaleRecommendation wants 1 <= @IdlePercent < @BusyPercent <= 100', 1;
    IF @Unit IS NULL OR @Unit NOT IN ('replica', 'process')
        THROW 50004, 'chokaq: GetScaleRecommendation knows the units replica and process', 1;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Heard datetime2(3), @Earliest datetime2(3);
    DECLARE @IsPaused bit = 0, @IsActive bit = 1, @MaxWorkers int, @Cap int, @Live int, @Settled int, @Handlers bigint,
            @Open int, @Finished bigint, @RunMs bigint, @SpentMs bigint, @Busy bigint, @MeanMs bigint, @Late bigint;
    DECLARE @Ready int, @Due int, @Buffered int, @Running int, @Priority int, @Found int, @Oldest datetime2(3),
            @OneDue datetime2(3), @Turn int, @OldestMs bigint;
    DECLARE @Lags bit = 0, @Need bigint, @Low bigint, @High bigint, @Wanted bigint, @Reason varchar(10);

    SELECT @IsPaused = q.IsPaused, @IsActive = q.IsActive, @MaxWorkers = q.MaxWorkers, @Cap = q.FleetMaxWorkers
    FROM chokaq.Queues q WHERE q.Name = @Queue;
    IF @Cap IS NULL AND @FleetCap >= 0 SET @Cap = @FleetCap;

    -- After an outage of the database every heartbeat is old: the newest one is the measure then, for ten minutes.
    SELECT @Heard = MAX(w.HeartbeatUtc) FROM chokaq.Workers w WHERE w.EndedAtUtc IS NULL;
    SET @Heard = CASE WHEN @Heard IS NULL OR @Heard > @Now THEN @Now ELSE @Heard END;
    SET @Earliest = DATEADD(MINUTE, -10, @Now);
    IF DATEADD(MINUTE, -1, @Heard) > @Earliest SET @Earliest = DATEADD(MINUTE, -1, @Heard);
    SELECT @Live = COUNT(*), @Settled = COALESCE(SUM(x.Settled), 0), @Handlers = COALESCE(SUM(x.Handlers), 0)
    FROM (SELECT u.Unit AS Unit, SUM(u.Handlers) AS Handlers, MAX(u.Settled) AS Settled
          FROM (SELECT CASE @Unit WHEN 'process' THEN CAST(w.WorkerId AS nvarchar(255)) COLLATE Latin1_General_BIN2
                                  ELSE w.Host COLLATE Latin1_General_BIN2 END AS Unit,
                       CAST(COALESCE(@MaxWorkers, w.MaxWorkers) AS bigint) AS Handlers,
                       CASE WHEN w.StartedAtUtc <= DATEADD(MINUTE, -1, @Now) THEN 1 ELSE 0 END AS Settled
                FROM chokaq.Workers w
                WHERE w.Queue = @Queue AND w.EndedAtUtc IS NULL AND w.DrainAtUtc IS NULL AND w.DrainingAtUtc IS NULL
                  AND w.HeartbeatUtc >= @Earliest) u
          GROUP BY u.Unit) x;
    IF @Live > 0 AND @Settled = 0 SET @Settled = 1;
    IF @ReplicaHandlers > 0
        SET @Handlers = @ReplicaHandlers;
    ELSE IF @Live > 0
        SET @Handlers = @Handlers / @Live;
    ELSE
    BEGIN
        SET @Handlers = NULL;
        SELECT TOP (1) @Handlers = COALESCE(@MaxWorkers, w.MaxWorkers)
        FROM chokaq.Workers w WHERE w.Queue = @Queue ORDER BY w.StartedAtUtc DESC, w.WorkerId DESC;
        SET @Handlers = COALESCE(@Handlers, @MaxWorkers, 50);
    END;
    IF @Handlers < 1 SET @Handlers = 1;

    SELECT @Open = COUNT(DISTINCT c.TypeKey)
    FROM chokaq.Circuits c JOIN chokaq.Workers w ON w.WorkerId = c.WorkerId
    WHERE c.Queue = @Queue AND w.EndedAtUtc IS NULL AND w.HeartbeatUtc >= @Earliest
      AND ((c.State = 1 AND (c.NextProbeUtc IS NULL OR c.NextProbeUtc > DATEADD(MINUTE, -2, @Now)))
           OR (c.State = 2 AND c.ChangedAtUtc > DATEADD(MINUTE, -10, @Now)));

    SELECT @SpentMs = COALESCE(SUM(b.DurationMs), 0),
           @RunMs = COALESCE(SUM(CASE WHEN b.Outcome = 0 THEN b.DurationMs ELSE 0 END), 0),
           @Finished = COALESCE(SUM(CASE WHEN b.Outcome = 0 THEN b.JobCount ELSE 0 END), 0),
           @Late = COALESCE(SUM(CAST(CASE WHEN @TargetLagMs < 1       THEN b.Lag0  ELSE 0 END
                                   + CASE WHEN @TargetLagMs < 4       THEN b.Lag1  ELSE 0 END
                                   + CASE WHEN @TargetLagMs < 16      THEN b.Lag2  ELSE 0 END
                                   + CASE WHEN @TargetLagMs < 64      THEN b.Lag3  ELSE 0 END
                                   + CASE WHEN @TargetLagMs < 256     THEN b.Lag4  ELSE 0 END
                                   + CASE WHEN @TargetLagMs < 1024    THEN b.Lag5  ELSE 0 END
                                   + CASE WHEN @TargetLagMs < 4096    THEN b.Lag6  ELSE 0 END
                                   + CASE WHEN @TargetLagMs < 16384   THEN b.Lag7  ELSE 0 END
                                   + CASE WHEN @TargetLagMs < 65536   THEN b.Lag8  ELSE 0 END
                                   + CASE WHEN @TargetLagMs < 262144  THEN b.Lag9  ELSE 0 END
                                   + CASE WHEN @TargetLagMs < 1048576 THEN b.Lag10 ELSE 0 END
                                   + b.Lag11 AS bigint)), 0)
    FROM chokaq.MetricBuckets b
    WHERE b.Seconds = 1 AND b.StartUtc >= DATEADD(MINUTE, -5, @Now) AND b.Queue = @Queue;
    SET @Busy = (@SpentMs + 299999) / 300000;
    IF @Finished > 0 SET @MeanMs = CASE WHEN @RunMs > 0 THEN (@RunMs + @Finished - 1) / @Finished ELSE 1 END;

    -- Waiting rows may be held by a caller's open transaction for as long as it likes: READPAST.
    SELECT @Ready = COUNT(*)
    FROM (SELECT TOP (100000) Id
          FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Ready))
          WHERE Queue = @Queue AND Status = 0 AND IsReady = 1) x;
    SELECT @Due = COUNT(*)
    FROM (SELECT TOP (100000) Id
          FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Due))
          WHERE Queue = @Queue AND Status = 0 AND IsReady = 0 AND DueAtUtc <= @Now) x;
    SET @Due = CASE WHEN @Ready + @Due > 100000 THEN 100000 ELSE @Ready + @Due END;
    SELECT @Buffered = COALESCE(SUM(CASE WHEN x.Status = 1 THEN 1 ELSE 0 END), 0),
           @Running  = COALESCE(SUM(CASE WHEN x.Status = 2 THEN 1 ELSE 0 END), 0)
    FROM (SELECT TOP (100000) Status
          FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Lease))
          WHERE Queue = @Queue AND Status IN (1, 2)) x;
    -- The earliest due time of the ready rows takes one look per priority in use.
    SELECT @Oldest = NULL, @Priority = 2147483647, @Turn = 0;
    WHILE @Priority IS NOT NULL AND @Turn < 1000
    BEGIN
        SELECT @Found = NULL, @Turn = @Turn + 1;
        SELECT TOP (1) @Found = Priority, @OneDue = DueAtUtc
        FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Ready))
        WHERE Queue = @Queue AND Status = 0 AND IsReady = 1 AND Priority < @Priority
        ORDER BY Priority DESC, DueAtUtc, Id;
        IF @Found IS NOT NULL AND (@Oldest IS NULL OR @OneDue < @Oldest) SET @Oldest = @OneDue;
        SET @Priority = @Found;
    END;
    SET @OneDue = NULL;
    SELECT TOP (1) @OneDue = DueAtUtc
    FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Due))
    WHERE Queue = @Queue AND Status = 0 AND IsReady = 0 ORDER BY DueAtUtc, Id;
    IF @OneDue <= @Now AND (@Oldest IS NULL OR @OneDue < @Oldest) SET @Oldest = @OneDue;
    SET @OldestMs = DATEDIFF_BIG(MILLISECOND, @Oldest, @Now);

    IF @OldestMs > @TargetLagMs SET @Lags = 1;
    SET @Need = CASE WHEN @Running > @Busy THEN @Running ELSE @Busy END;
    IF @Lags = 1 OR @Live = 0
        SET @Need = @Need
            + ((@Due + @Buffered) * CASE WHEN @MeanMs < @CatchUpMs THEN @MeanMs ELSE @CatchUpMs END + @CatchUpMs - 1) / @CatchUpMs;
    SET @Low  = (@Need * 100 + @Handlers * @BusyPercent - 1) / (@Handlers * @BusyPercent);
    SET @High = (@Need * 100 + @Handlers * @IdlePercent - 1) / (@Handlers * @IdlePercent);
    IF @Live = 0 AND @Low = 0 AND @Due + @Buffered + @Running > 0 SET @Low = 1;
    IF @Low > (@Cap + @Handlers - 1) / @Handlers SET @Low = (@Cap + @Handlers - 1) / @Handlers;
    IF @High < @Low SET @High = @Low;

    SET @Reason = CASE WHEN @IsActive = 0 THEN 'inactive'
                       WHEN @IsPaused = 1 THEN 'paused'
                       WHEN @Open > 0 THEN 'circuit'
                       WHEN @Live > 0 AND @Buffered + @Running >= @Cap THEN 'fleet_cap' END;
    SET @Wanted = CASE WHEN @Reason IS NOT NULL THEN @Settled
                       WHEN (@Lags = 1 OR @Live = 0) AND @Low > @Live THEN @Low
                       WHEN @Lags = 0 AND @Late = 0 AND @High < @Live THEN @High
                       ELSE @Live END;
    IF @Reason IS NULL
        SET @Reason = CASE WHEN @Wanted > @Live THEN 'lag' WHEN @Wanted < @Live THEN 'idle' ELSE 'steady' END;
    IF @Wanted < @MinReplicas SELECT @Wanted = @MinReplicas, @Reason = 'minimum';
    IF @Wanted > @MaxReplicas SELECT @Wanted = @MaxReplicas, @Reason = 'maximum';

    SELECT CAST(@Wanted AS int) AS Replicas;
    IF @Explain = 1
        SELECT CAST(@Wanted AS int) AS Replicas, @Reason AS Reason, @Live AS Live, @Settled AS Settled,
               @Handlers AS ReplicaHandlers, @Due AS Due, @OldestMs AS OldestDueMs, @Buffered AS Buffered, @Running AS Running,
               @Busy AS BusyHandlers, @MeanMs AS MeanRunMs, @Late AS Late, @Open AS OpenCircuits, @Cap AS FleetCap,
               @Low AS Low, @High AS High, @IsPaused AS IsPaused, @IsActive AS IsActive;
END;
GO
