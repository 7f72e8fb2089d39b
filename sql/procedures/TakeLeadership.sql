SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- TakeLeadership: take or renew the maintenance lead. Leading only saves work: every maintenance step is safe with two leaders.
-- Called by: every maintenance process before a pass.
-- Parameters:
--   @WorkerId    the caller.
--   @IntervalMs  its interval; a holder that has not passed for three of them loses the lead.
-- Result: Leading, Holder, Term (raised by the database with every change of holder), LastPassAgeMs (of the pass before this one,
--   whoever made it; null: there was none), NowUtc.
-- Errors: 2627 another process took the very first lead at the same moment; call again.
-- Table order: Leadership.
CREATE OR ALTER PROCEDURE chokaq.TakeLeadership
    @WorkerId   char(26),
    @IntervalMs bigint
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME(),
            @Holder char(26), @Term bigint, @Last datetime2(3), @Age bigint, @Leading bit = 0;

    BEGIN TRY
        BEGIN TRANSACTION;
        SELECT @Holder = l.Holder, @Term = l.Term, @Last = l.LastPassUtc
        FROM chokaq.Leadership l WHERE l.Role = 'maintenance';
        -- Clocks may be set back: an age is never negative.
        SET @Age = DATEDIFF_BIG(MILLISECOND, @Last, @Now);
        IF @Age < 0 SET @Age = 0;
        IF @Holder IS NULL
        BEGIN
            -- Of two first ones the primary key lets one in; the other is told to call again.
            INSERT INTO chokaq.Leadership (Role, Holder, Term, LastPassUtc) VALUES ('maintenance', @WorkerId, 1, @Now);
            SELECT @Holder = @WorkerId, @Term = 1, @Leading = 1;
        END;
        ELSE IF @Holder = @WorkerId OR @Age > 3 * @IntervalMs
        BEGIN
            -- Only over the row that was read: of two takers one wins.
            UPDATE chokaq.Leadership
            SET Holder = @WorkerId, LastPassUtc = @Now, Term = CASE WHEN Holder = @WorkerId THEN Term ELSE Term + 1 END
            WHERE Role = 'maintenance' AND Holder = @Holder AND Term = @Term AND LastPassUtc = @Last;
            IF @@ROWCOUNT = 1 SET @Leading = 1;
            SELECT @Holder = l.Holder, @Term = l.Term FROM chokaq.Leadership l WHERE l.Role = 'maintenance';
        END;
        COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
        THROW;
    END CATCH;

    SELECT @Leading AS Leading, @Holder AS Holder, @Term AS Term, @Age AS LastPassAgeMs, @Now AS NowUtc;
END;
GO
