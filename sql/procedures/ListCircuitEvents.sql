SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ListCircuitEvents: what the circuits of one job type did and what operators ordered about it, newest first.
-- Called by: operators and readers.
-- Parameters:
--   @TypeKey  in lower case.
--   @Limit    rows.
--   @AfterMs  the AtUtc of the last row of the page before, in milliseconds since 1970.
--   @AfterId  its EventId (0: the first page).
--   @SinceMs  only what was within the last so many milliseconds (-1: all that is kept).
--   @Tries    0: leave out the tries of open circuits that failed, or are under way.
-- Result: EventId, TypeKey, AtUtc, FromState, ToState, WorkerId, Host, Queue, Failures, LastError, Forced, Actor, Reason (the last three
--   of orders only), EndedAtUtc of the worker (null: it has not ended, or is not known any more).
-- Table order: CircuitEvents, Workers.
CREATE OR ALTER PROCEDURE chokaq.ListCircuitEvents
    @TypeKey varchar(255),
    @Limit   int,
    @AfterMs bigint,
    @AfterId bigint,
    @SinceMs bigint,
    @Tries   bit
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    DECLARE @Epoch datetime2(3) = '1970-01-01', @Now datetime2(3) = SYSUTCDATETIME(), @Since datetime2(3) = '0001-01-01';
    DECLARE @AfterUtc datetime2(3) = '9999-12-31';
    IF @AfterId > 0
        SET @AfterUtc = DATEADD(MILLISECOND, CAST(@AfterMs % 1000 AS int), DATEADD(SECOND, CAST(@AfterMs / 1000 % 86400 AS int),
            DATEADD(DAY, CAST(@AfterMs / 86400000 AS int), @Epoch)));
    IF @SinceMs >= 0
        SET @Since = DATEADD(MILLISECOND, -CAST(@SinceMs % 86400000 AS int), DATEADD(DAY, -CAST(@SinceMs / 86400000 AS int), @Now));

    SELECT TOP (@Limit) e.EventId AS EventId, e.TypeKey AS TypeKey, e.AtUtc AS AtUtc, e.FromState AS FromState, e.ToState AS ToState,
           e.WorkerId AS WorkerId, e.Host AS Host, e.Queue AS Queue, e.Failures AS Failures, e.LastError AS LastError,
           e.Forced AS Forced, e.Actor AS Actor, e.Reason AS Reason, w.EndedAtUtc AS EndedAtUtc
    FROM chokaq.CircuitEvents e WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK)
    LEFT JOIN chokaq.Workers w WITH (FORCESEEK) ON w.WorkerId = e.WorkerId
    WHERE e.TypeKey = @TypeKey AND e.AtUtc >= @Since AND e.AtUtc <= @AfterUtc
      AND (e.AtUtc < @AfterUtc OR e.EventId < @AfterId)
      AND (@Tries = 1 OR e.FromState IS NULL OR e.FromState = 0 OR e.ToState = 0)
    ORDER BY e.AtUtc DESC, e.EventId DESC
    OPTION (LOOP JOIN, MAXDOP 1);
END;
GO
