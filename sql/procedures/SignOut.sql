SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- SignOut: a session of The Deck was ended before its time. A repeat changes nothing.
-- Called by: The Deck, when somebody signs out.
-- Parameters:
--   @SessionId    names the sign-in.
--   @RemainingMs  for how long the session would have gone on (0 … 400 days).
-- Result: none. ReadChanges tells it to every process of The Deck.
-- Table order: SignOuts.
CREATE OR ALTER PROCEDURE chokaq.SignOut
    @SessionId   varchar(64),
    @RemainingMs bigint
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Until datetime2(3);
    IF @RemainingMs > 34560000000 SET @RemainingMs = 34560000000;
    SET @Until = DATEADD(MILLISECOND, CAST(@RemainingMs % 86400000 AS int), DATEADD(DAY, CAST(@RemainingMs / 86400000 AS int), @Now));
    BEGIN TRY
        INSERT INTO chokaq.SignOuts (SessionId, EndedAtUtc, UntilUtc)
        SELECT @SessionId, @Now, @Until
        WHERE @RemainingMs > 0 AND NOT EXISTS (SELECT 1 FROM chokaq.SignOuts o WHERE o.SessionId = @SessionId);
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
        -- Two at once: the key arbitrates, and the session is over either way.
        IF ERROR_NUMBER() NOT IN (2601, 2627)
            THROW;
    END CATCH;
END;
GO
