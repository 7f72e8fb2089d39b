SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- GetClock: the database's clock, and which programs the installed procedures serve.
-- Called by: every session when it opens, and Store.now(). Needs no right on any table, and reads none: the numbers are those of the
--   procedures, which are replaced all together, after the tables.
-- Result: NowUtc, Version (for programs of version 4, release 0.1.0, which want to see exactly that: 4 as long as they are served),
--   SchemaVersion (the number of the last schema file), OldestProgram (programs from this version on are served).
-- Table order: none.
CREATE OR ALTER PROCEDURE chokaq.GetClock
AS
BEGIN
    SET NOCOUNT ON;
    DECLARE @SchemaVersion int = 6, @OldestProgram int = 4;
    SELECT SYSUTCDATETIME() AS NowUtc, CASE WHEN @OldestProgram <= 4 THEN 4 ELSE @SchemaVersion END AS Version,
           @SchemaVersion AS SchemaVersion, @OldestProgram AS OldestProgram;
END;
GO
