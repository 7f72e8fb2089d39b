SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ForceCircuit: order the circuits of a type to be open or closed everywhere, or to follow their own rule again. An AuditLog row
--   holds before and after and a CircuitEvents row the order, in the same transaction; by the RequestId a repeat of the call changes nothing.
-- Called by: operators.
-- Parameters:
--   @TypeKey    in lower case.
--   @Forced     0 none, 1 open, 2 closed.
--   @Actor      who orders it.
--   @Reason     for people (empty: none).
--   @RequestId  a ULID of this call, the same when it is repeated (empty: none).
-- Result: TypeKey, Forced, Actor, Reason, AtUtc, OrderNumber of the order that stands now.
-- Table order: CircuitOrders (the ticket first), AuditLog, CircuitEvents.
CREATE OR ALTER PROCEDURE chokaq.ForceCircuit
    @TypeKey   varchar(255),
    @Forced    int,
    @Actor     nvarchar(100),
    @Reason    nvarchar(1000),
    @RequestId varchar(26)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    DECLARE @Now datetime2(3), @Number bigint, @Before int, @Try int = 0, @Done bit = 0;
    SET @Reason    = NULLIF(@Reason, N'');
    SET @RequestId = NULLIF(@RequestId, '');

    WHILE @Done = 0
    BEGIN
        SET @Try = @Try + 1;
        BEGIN TRY
            BEGIN TRANSACTION;
            SET @Now = SYSUTCDATETIME();
            -- A write first: it orders two operators, so that each one's before is the other's after, and numbers rise by commit.
            UPDATE chokaq.CircuitOrders SET OrderNumber = OrderNumber + 1, AtUtc = @Now WHERE TypeKey = '';
            IF @@ROWCOUNT = 0
                INSERT INTO chokaq.CircuitOrders (TypeKey, Forced, Actor, Reason, AtUtc, OrderNumber)
                VALUES ('', 0, N'', NULL, @Now, 1);
            IF EXISTS (SELECT 1 FROM chokaq.AuditLog a
                       WHERE a.Target = @TypeKey AND a.RequestId = @RequestId AND a.Action = 'force_circuit')
                ROLLBACK TRANSACTION;
            ELSE
            BEGIN
                SELECT @Number = o.OrderNumber FROM chokaq.CircuitOrders o WHERE o.TypeKey = '';
                SET @Before = NULL;
                SELECT @Before = o.Forced FROM chokaq.CircuitOrders o WHERE o.TypeKey = @TypeKey;
                UPDATE chokaq.CircuitOrders
                SET Forced = @Forced, Actor = @Actor, Reason = @Reason, AtUtc = @Now, OrderNumber = @Number
                WHERE TypeKey = @TypeKey;
                IF @@ROWCOUNT = 0
                    INSERT INTO chokaq.CircuitOrders (TypeKey, Forced, Actor, Reason, AtUtc, OrderNumber)
                    VALUES (@TypeKey, @Forced, @Actor, @Reason, @Now, @Number);
                INSERT INTO chokaq.AuditLog
                      (AtUtc, Actor, Action, Target, Reason,
                       BeforeState,
                       AfterState,
                       RequestId)
                VALUES (@Now, @Actor, 'force_circuit', @TypeKey, @Reason,
                        CASE @Before WHEN 1 THEN N'{"forced":"open"}'
                                     WHEN 2 THEN N'{"forced":"closed"}'
                                     ELSE N'{"forced":null}' END,
                        CASE @Forced WHEN 1 THEN N'{"forced":"open"}'
                                     WHEN 2 THEN N'{"forced":"closed"}'
                                     ELSE N'{"forced":null}' END,
                        @RequestId);
                INSERT INTO chokaq.CircuitEvents (TypeKey, AtUtc, Forced, Actor, Reason)
                VALUES (@TypeKey, @Now, @Forced, @Actor, @Reason);
                COMMIT TRANSACTION;
            END;
            SET @Done = 1;
        END TRY
        BEGIN CATCH
            IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
            -- The very first two orders may both insert the ticket: the key arbitrates, and the later one begins again.
            IF ERROR_NUMBER() NOT IN (2601, 2627) OR @Try >= 10
                THROW;
        END CATCH;
    END;

    SELECT o.TypeKey AS TypeKey, o.Forced AS Forced, o.Actor AS Actor, o.Reason AS Reason, o.AtUtc AS AtUtc,
           o.OrderNumber AS OrderNumber
    FROM chokaq.CircuitOrders o WHERE o.TypeKey = @TypeKey;
END;
GO
