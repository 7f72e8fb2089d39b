SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- GetClock: the database's clock and the version of the installed schema.
-- Called by: every session when it opens, and Store.now(). Needs no right on any table.
-- Result: NowUtc, Version (null: no migration is recorded).
-- Table order: SchemaMigrations.
CREATE OR ALTER PROCEDURE chokaq.GetClock
AS
BEGIN
    SET NOCOUNT ON;
    SELECT SYSUTCDATETIME() AS NowUtc, (SELECT MAX(m.Version) FROM chokaq.SchemaMigrations m) AS Version;
END;
GO
