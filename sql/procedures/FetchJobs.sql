SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- FetchJobs: claim ready jobs of a queue (Pending -> Fetched), and tell the worker what else it should know.
-- Called by: the claim lane of a child, with request numbers 1, 2, 3 …; a used number answers the same rows again.
-- Parameters:
--   @WorkerId  who claims.
--   @Queue     its queue.
--   @Request   the number of this request.
--   @Size      jobs wanted, at most 1,000 (0: only what else there is to know).
--   @FleetCap  the YAML's cap on leases held in the queue by all workers (-1: none; the override in Queues wins).
-- Results, in this order:
--   1. Retired, Replayed, NowUtc, MaxWorkers, FleetMaxWorkers, ExecutionTimeoutMs, ZombieTimeoutMs, IsPaused, IsActive,
--      NextDueMs (0: ready jobs wait; null: nothing waits), Chosen (how many jobs the claim is about to take), IsDraining (an
--      operator asked the worker to end), CircuitOrder (number of the latest order to circuits; 0: there was none).
--   2. Cancellations meant for this worker: JobId, LeaseNumber, Actor, Reason.
--   3. The jobs, unordered: Id, Type, Payload, LeaseNumber, Priority, AttemptCount, CrashCount, CreatedAtUtc, DueAtUtc,
--      AgeFromUtc, Tags, CreatedBy, Headers. Read after the claim, by what it stamped on them, and not by its OUTPUT: one engine
--      answers there with other columns' values when the claim had to wait for a row.
-- Errors: 50003 the queue has no row (RegisterWorker inserts it).
-- Table order: Queues, Workers, JobsHot; CancelRequests is read. The probe before it is a plain read (of CircuitOrders, too) and
-- writes nothing.
CREATE OR ALTER PROCEDURE chokaq.FetchJobs
    @WorkerId char(26),
    @Queue    varchar(255),
    @Request  bigint,
    @Size     int,
    @FleetCap int
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @NextDue datetime2(3), @LastRequest bigint, @Ended datetime2(3);
    DECLARE @MaxWorkers int, @FleetMaxWorkers int, @ExecutionTimeoutMs bigint, @ZombieTimeoutMs bigint,
            @IsPaused bit = 0, @IsActive bit = 1, @Draining bit = 0, @CircuitOrder bigint = 0;
    DECLARE @Retired bit = 0, @Replayed bit = 0, @Ready bit = 0, @Due bit = 0,
            @Cap int, @Held int, @Take int, @Chosen int = 0, @Found int, @Ids varchar(max);

    -- The probe. Waiting rows may be held by a caller's open transaction for as long as it likes: READPAST.
    SELECT @MaxWorkers = q.MaxWorkers, @FleetMaxWorkers = q.FleetMaxWorkers, @ExecutionTimeoutMs = q.ExecutionTimeoutMs,
           @ZombieTimeoutMs = q.ZombieTimeoutMs, @IsPaused = q.IsPaused, @IsActive = q.IsActive
    FROM chokaq.Queues q WHERE q.Name = @Queue;
    SELECT @LastRequest = w.LastRequest, @Ended = w.EndedAtUtc, @Draining = CASE WHEN w.DrainAtUtc IS NULL THEN 0 ELSE 1 END
    FROM chokaq.Workers w WHERE w.WorkerId = @WorkerId;
    SELECT @CircuitOrder = o.OrderNumber FROM chokaq.CircuitOrders o WHERE o.TypeKey = '';
    -- In the order of the index: an EXISTS may be answered by a scan.
    SELECT TOP (1) @Ready = 1
    FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Ready))
    WHERE Queue = @Queue AND Status = 0 AND IsReady = 1 ORDER BY Priority DESC, DueAtUtc, Id;
    SELECT TOP (1) @NextDue = DueAtUtc
    FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Due))
    WHERE Queue = @Queue AND Status = 0 AND IsReady = 0 ORDER BY DueAtUtc, Id;
    IF @NextDue <= @Now SET @Due = 1;

    IF @LastRequest IS NULL OR @Ended IS NOT NULL SET @Retired = 1;
    ELSE IF @LastRequest >= @Request SET @Replayed = 1;
    SET @Cap = COALESCE(@FleetMaxWorkers, CASE WHEN @FleetCap >= 0 THEN @FleetCap END);

    IF @Retired = 0 AND @Replayed = 0 AND @Size > 0 AND @IsPaused = 0 AND @IsActive = 1 AND (@Ready = 1 OR @Due = 1)
    BEGIN
        BEGIN TRY
            BEGIN TRANSACTION;
            IF @Cap IS NOT NULL
            BEGIN
                -- The ticket serialises the fetches of a capped queue; what decides is read again after it.
                UPDATE chokaq.Queues SET Ticket = Ticket + 1 WHERE Name = @Queue;
                IF @@ROWCOUNT = 0
                    THROW 50003, 'chokaq: the queue has no row in Queues; RegisterWorker inserts it', 1;
                SELECT @FleetMaxWorkers = q.FleetMaxWorkers, @IsPaused = q.IsPaused, @IsActive = q.IsActive
                FROM chokaq.Queues q WHERE q.Name = @Queue;
                SET @Cap = COALESCE(@FleetMaxWorkers, CASE WHEN @FleetCap >= 0 THEN @FleetCap END);
            END;
            UPDATE chokaq.Workers SET LastRequest = @Request
            WHERE WorkerId = @WorkerId AND LastRequest < @Request AND EndedAtUtc IS NULL;
            IF @@ROWCOUNT = 0
            BEGIN
                IF EXISTS (SELECT 1 FROM chokaq.Workers w WHERE w.WorkerId = @WorkerId AND w.EndedAtUtc IS NULL)
                    SET @Replayed = 1;
                ELSE
                    SET @Retired = 1;
            END;
            ELSE
            BEGIN
                -- What an operator set since the probe. A cap that appeared needs the ticket, which comes first: claim nothing now.
                SELECT @FleetMaxWorkers = q.FleetMaxWorkers, @IsPaused = q.IsPaused, @IsActive = q.IsActive
                FROM chokaq.Queues q WHERE q.Name = @Queue;
                IF @Cap IS NULL AND @FleetMaxWorkers IS NOT NULL SET @Size = 0;
                IF @Due = 1
                BEGIN
                    SET @Now = SYSUTCDATETIME();
                    SELECT @Ids = STRING_AGG(CAST(r.Id AS varchar(max)), ',')
                    FROM (SELECT TOP (1000) Id
                          FROM chokaq.JobsHot
                              WITH (UPDLOCK, READPAST, READCOMMITTEDLOCK, ROWLOCK, FORCESEEK, INDEX (IX_JobsHot_Due))
                          WHERE Queue = @Queue AND Status = 0 AND IsReady = 0 AND DueAtUtc <= @Now
                          ORDER BY DueAtUtc, Id) r;
                    UPDATE chokaq.JobsHot SET IsReady = 1
                    FROM chokaq.JobsHot WITH (ROWLOCK, READPAST, READCOMMITTEDLOCK, FORCESEEK)
                    WHERE Status = 0 AND IsReady = 0
                      AND Id IN (SELECT DISTINCT TOP (1000) CAST(s.value AS char(26)) COLLATE Latin1_General_BIN2 AS JobId
                                 FROM STRING_SPLIT(@Ids, ',') s ORDER BY JobId)
                    OPTION (LOOP JOIN, MAXDOP 1);
                    SET @NextDue = NULL;
                    SELECT TOP (1) @NextDue = DueAtUtc
                    FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Due))
                    WHERE Queue = @Queue AND Status = 0 AND IsReady = 0 ORDER BY DueAtUtc, Id;
                END;
                SET @Take = CASE WHEN @IsPaused = 1 OR @IsActive = 0 THEN 0 WHEN @Size > 1000 THEN 1000 ELSE @Size END;
                IF @Cap IS NOT NULL
                BEGIN
                    -- A new statement, without READPAST: every lease committed before the ticket was ours counts.
                    SELECT @Held = COUNT(*) FROM chokaq.JobsHot WITH (FORCESEEK, INDEX (IX_JobsHot_Lease))
                    WHERE Queue = @Queue AND Status IN (1, 2);
                    IF @Take > @Cap - @Held SET @Take = @Cap - @Held;
                    IF @Take < 0 SET @Take = 0;
                END;
                SELECT @Ids = STRING_AGG(CAST(r.Id AS varchar(max)), ','), @Chosen = COUNT(*)
                FROM (SELECT TOP (@Take) Id
                      FROM chokaq.JobsHot WITH (UPDLOCK, READPAST, READCOMMITTEDLOCK, ROWLOCK, FORCESEEK, INDEX (IX_JobsHot_Ready))
                      WHERE Queue = @Queue AND Status = 0 AND IsReady = 1
                      ORDER BY Priority DESC, DueAtUtc, Id) r;
                SET @Ready = 0;
                IF @Chosen >= @Take
                BEGIN
                    -- Are there ready rows beyond those taken?
                    SELECT @Found = COUNT(*)
                    FROM (SELECT TOP (@Chosen + 1) Id
                          FROM chokaq.JobsHot WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK, INDEX (IX_JobsHot_Ready))
                          WHERE Queue = @Queue AND Status = 0 AND IsReady = 1
                          ORDER BY Priority DESC, DueAtUtc, Id) r;
                    IF @Found > @Chosen SET @Ready = 1;
                END;
            END;

            SELECT @Retired AS Retired, @Replayed AS Replayed, @Now AS NowUtc, @MaxWorkers AS MaxWorkers,
                   @FleetMaxWorkers AS FleetMaxWorkers, @ExecutionTimeoutMs AS ExecutionTimeoutMs,
                   @ZombieTimeoutMs AS ZombieTimeoutMs, @IsPaused AS IsPaused, @IsActive AS IsActive,
                   CASE WHEN @Ready = 1 OR @NextDue <= @Now THEN 0 ELSE DATEDIFF_BIG(MILLISECOND, @Now, @NextDue) END AS NextDueMs,
                   @Chosen AS Chosen, @Draining AS IsDraining, @CircuitOrder AS CircuitOrder;
            SELECT TOP (1000) c.JobId AS JobId, c.LeaseNumber AS LeaseNumber, c.Actor AS Actor, c.Reason AS Reason
            FROM chokaq.CancelRequests c WHERE c.WorkerId = @WorkerId ORDER BY c.JobId;
            IF @Chosen > 0
            BEGIN
                -- In the order of ids, like every set. One expression, so that an engine that knows no hints does not take the rows
                -- that fit for so few that reading the table is cheapest.
                UPDATE chokaq.JobsHot
                SET Status = 1, LeaseNumber = LeaseNumber + 1, WorkerId = @WorkerId, FetchRequest = @Request, HeartbeatUtc = @Now
                FROM chokaq.JobsHot WITH (ROWLOCK, READPAST, READCOMMITTEDLOCK, FORCESEEK)
                WHERE CASE WHEN Status = 0 AND IsReady = 1 THEN 1 ELSE 0 END > 0
                  AND Id IN (SELECT DISTINCT TOP (@Chosen) CAST(s.value AS char(26)) COLLATE Latin1_General_BIN2 AS JobId
                             FROM STRING_SPLIT(@Ids, ',') s ORDER BY JobId)
                OPTION (LOOP JOIN, MAXDOP 1);
                -- One lookup per id, in the order of the key: a join, or an equality, might be planned while the table is empty,
                -- and then read all of it.
                SELECT h.Id AS Id, h.Type AS Type, h.Payload AS Payload, h.LeaseNumber AS LeaseNumber, h.Priority AS Priority,
                       h.AttemptCount AS AttemptCount, h.CrashCount AS CrashCount, h.CreatedAtUtc AS CreatedAtUtc,
                       h.DueAtUtc AS DueAtUtc, h.AgeFromUtc AS AgeFromUtc, h.Tags AS Tags, h.CreatedBy AS CreatedBy,
                       h.Headers AS Headers
                FROM STRING_SPLIT(@Ids, ',') s
                CROSS APPLY (SELECT TOP (1) j.Id, j.Type, j.Payload, j.LeaseNumber, j.Priority, j.AttemptCount, j.CrashCount,
                                    j.CreatedAtUtc, j.DueAtUtc, j.AgeFromUtc, j.Tags, j.CreatedBy, j.Headers,
                                    j.Status, j.WorkerId, j.FetchRequest
                             FROM chokaq.JobsHot j WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK)
                             WHERE j.Id >= CAST(s.value AS char(26)) COLLATE Latin1_General_BIN2 ORDER BY j.Id) h
                WHERE h.Id = CAST(s.value AS char(26)) COLLATE Latin1_General_BIN2
                  AND h.WorkerId = @WorkerId AND h.FetchRequest = @Request AND h.Status = 1
                OPTION (LOOP JOIN, MAXDOP 1);
            END;
            COMMIT TRANSACTION;
            IF @Replayed = 0 RETURN;
        END TRY
        BEGIN CATCH
            IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
            THROW;
        END CATCH;
    END;
    ELSE
    BEGIN
        SELECT @Retired AS Retired, @Replayed AS Replayed, @Now AS NowUtc, @MaxWorkers AS MaxWorkers,
               @FleetMaxWorkers AS FleetMaxWorkers, @ExecutionTimeoutMs AS ExecutionTimeoutMs,
               @ZombieTimeoutMs AS ZombieTimeoutMs, @IsPaused AS IsPaused, @IsActive AS IsActive,
               CASE WHEN @Ready = 1 OR @NextDue <= @Now THEN 0 ELSE DATEDIFF_BIG(MILLISECOND, @Now, @NextDue) END AS NextDueMs,
               0 AS Chosen, @Draining AS IsDraining, @CircuitOrder AS CircuitOrder;
        SELECT TOP (1000) c.JobId AS JobId, c.LeaseNumber AS LeaseNumber, c.Actor AS Actor, c.Reason AS Reason
        FROM chokaq.CancelRequests c WHERE c.WorkerId = @WorkerId ORDER BY c.JobId;
    END;

    -- A used number: the rows still Fetched under it. Ids from the lease index first, then the rows by primary key.
    IF @Replayed = 1
        SELECT h.Id AS Id, h.Type AS Type, h.Payload AS Payload, h.LeaseNumber AS LeaseNumber, h.Priority AS Priority,
               h.AttemptCount AS AttemptCount, h.CrashCount AS CrashCount, h.CreatedAtUtc AS CreatedAtUtc, h.DueAtUtc AS DueAtUtc,
               h.AgeFromUtc AS AgeFromUtc, h.Tags AS Tags, h.CreatedBy AS CreatedBy, h.Headers AS Headers
        FROM (SELECT TOP (2000) Id AS JobId FROM chokaq.JobsHot WITH (FORCESEEK, INDEX (IX_JobsHot_Lease))
              WHERE Queue = @Queue AND WorkerId = @WorkerId AND Status IN (1, 2) ORDER BY Id) i
        JOIN chokaq.JobsHot h WITH (FORCESEEK) ON h.Id = i.JobId
        WHERE h.WorkerId = @WorkerId AND h.FetchRequest = @Request AND h.Status = 1
        OPTION (LOOP JOIN, FORCE ORDER, MAXDOP 1);
END;
GO
