-- 005: since when a worker claims no more; and GetClock as programs of version 4 need it from here on. Immutable once released.
-- Serves: programs from version 4 on.
SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- Null: it claims. Told by the worker itself; DrainAtUtc, an operator's wish, comes before it. Programs of version 4 leave it null.
ALTER TABLE chokaq.Workers ADD DrainingAtUtc datetime2(3) NULL;
GO
-- Release 0.1.0 (version 4) refuses a schema of another version, and its GetClock told the highest number in the ledger. So that
-- its programs can go on connecting, GetClock says what the procedures at hand are: this one, until sql/procedures brings its own.
CREATE OR ALTER PROCEDURE chokaq.GetClock
AS
BEGIN
    SET NOCOUNT ON;
    SELECT SYSUTCDATETIME() AS NowUtc, 4 AS Version, 4 AS SchemaVersion, 4 AS OldestProgram;
END;
GO
-- An engine without CREATE OR ALTER has forgotten them.
GRANT EXECUTE ON chokaq.GetClock TO chokaq_client;
GRANT EXECUTE ON chokaq.GetClock TO chokaq_worker;
GRANT EXECUTE ON chokaq.GetClock TO chokaq_operator;
GRANT EXECUTE ON chokaq.GetClock TO chokaq_reader;
GO
