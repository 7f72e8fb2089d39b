SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ReportCircuits: a child tells what has changed about its circuits; nothing is written for a worker that has ended. A circuit that has
--   entered another state, or was opened again, leaves an event.
-- Called by: the claim lane of a child, when something has changed, at most once a second.
-- Parameters:
--   @WorkerId  whose circuits.
--   @Mapped    33 characters that no text of the call holds; they stand for " \ and U+0001 … U+001F, in this order.
--   @Circuits  JSON array, one object per circuit, none twice, at most 1,000: t type key in lower case (mapped), s state,
--              f failures in a row, g generation, c ms since the state was entered, n ms until the first probe (absent: none),
--              e type of the last error that counted (absent: none; mapped).
-- Result: none.
-- Table order: Workers (read), Circuits (own rows only: nobody else writes them), CircuitEvents, Circuits.
CREATE OR ALTER PROCEDURE chokaq.ReportCircuits
    @WorkerId char(26),
    @Mapped   nvarchar(33),
    @Circuits nvarchar(max)
AS
BEGIN
    SET NOCOUNT ON;
    SET XACT_ABORT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;

    DECLARE @Now datetime2(3) = SYSUTCDATETIME(), @Queue varchar(255), @Host nvarchar(255);
    -- What a JSON string would have to escape travels as one of @Mapped instead, and is put back by TRANSLATE.
    DECLARE @Plain nvarchar(33) = N'"\'
        + NCHAR(1) + NCHAR(2) + NCHAR(3) + NCHAR(4) + NCHAR(5) + NCHAR(6) + NCHAR(7) + NCHAR(8) + NCHAR(9) + NCHAR(10) + NCHAR(11)
        + NCHAR(12) + NCHAR(13) + NCHAR(14) + NCHAR(15) + NCHAR(16) + NCHAR(17) + NCHAR(18) + NCHAR(19) + NCHAR(20) + NCHAR(21)
        + NCHAR(22) + NCHAR(23) + NCHAR(24) + NCHAR(25) + NCHAR(26) + NCHAR(27) + NCHAR(28) + NCHAR(29) + NCHAR(30) + NCHAR(31);

    SELECT @Queue = w.Queue, @Host = w.Host FROM chokaq.Workers w WHERE w.WorkerId = @WorkerId AND w.EndedAtUtc IS NULL;
    IF @Queue IS NULL RETURN;

    DECLARE @Set TABLE (
        NewType       varchar(255)  COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY,
        NewState      tinyint       NOT NULL,
        NewFailures   int           NOT NULL,
        NewGeneration bigint        NOT NULL,
        NewChanged    datetime2(3)  NOT NULL,
        NewProbe      datetime2(3)  NULL,
        NewError      nvarchar(255) NULL
    );
    INSERT @Set (NewType, NewState, NewFailures, NewGeneration, NewChanged, NewProbe, NewError)
    SELECT CAST(TRANSLATE(j.t COLLATE Latin1_General_BIN2, @Mapped, @Plain) AS varchar(255)), j.s, j.f, j.g,
           DATEADD(MILLISECOND, -j.c, @Now),
           CASE WHEN j.n IS NOT NULL THEN DATEADD(MILLISECOND, j.n, @Now) END,
           TRANSLATE(j.e COLLATE Latin1_General_BIN2, @Mapped, @Plain)
    FROM OPENJSON(@Circuits) WITH (t nvarchar(255) '$.t', s tinyint '$.s', f int '$.f', g bigint '$.g',
                                   c int '$.c', n int '$.n', e nvarchar(255) '$.e') j;

    BEGIN TRY
        BEGIN TRANSACTION;
        -- A circuit begins closed. A repeat of the call finds what the first one wrote, and leaves no second event.
        INSERT INTO chokaq.CircuitEvents
              (TypeKey, AtUtc, FromState, ToState, WorkerId, Host, Queue,
               Failures,
               LastError)
        SELECT s.NewType, s.NewChanged, COALESCE(c.State, 0), s.NewState, @WorkerId, @Host, @Queue,
               CASE WHEN s.NewState = 0 THEN c.Failures ELSE s.NewFailures END,
               s.NewError
        FROM @Set s LEFT JOIN chokaq.Circuits c WITH (UPDLOCK) ON c.WorkerId = @WorkerId AND c.TypeKey = s.NewType
        WHERE s.NewState <> COALESCE(c.State, 0) OR (s.NewState = 1 AND s.NewGeneration <> c.Generation)
        ORDER BY s.NewChanged, s.NewType;
        UPDATE chokaq.Circuits
        SET State = s.NewState, Failures = s.NewFailures, Generation = s.NewGeneration,
            ChangedAtUtc = s.NewChanged, NextProbeUtc = s.NewProbe, LastError = s.NewError
        FROM @Set s
        WHERE Circuits.WorkerId = @WorkerId AND Circuits.TypeKey = s.NewType;
        INSERT INTO chokaq.Circuits
              (WorkerId, TypeKey, Queue, State, Failures, Generation,
               ChangedAtUtc, NextProbeUtc, LastError)
        SELECT @WorkerId, s.NewType, @Queue, s.NewState, s.NewFailures, s.NewGeneration,
               s.NewChanged, s.NewProbe, s.NewError
        FROM @Set s
        WHERE NOT EXISTS (SELECT 1 FROM chokaq.Circuits c WHERE c.WorkerId = @WorkerId AND c.TypeKey = s.NewType);
        COMMIT TRANSACTION;
    END TRY
    BEGIN CATCH
        IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;
        THROW;
    END CATCH;
END;
GO
