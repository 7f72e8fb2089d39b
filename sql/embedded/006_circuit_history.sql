-- 006: the embedded twin of sql/schema/006_circuit_history.sql. Times are integers, as in 001_pillars.sql.
-- Serves: programs from version 4 on.
CREATE TABLE CircuitEvents (
    EventId   INTEGER PRIMARY KEY AUTOINCREMENT,
    TypeKey   TEXT    NOT NULL,
    AtUtc     INTEGER NOT NULL,
    FromState INTEGER,
    ToState   INTEGER,
    WorkerId  TEXT,
    Host      TEXT,
    Queue     TEXT,
    Failures  INTEGER,
    LastError TEXT,
    Forced    INTEGER,
    Actor     TEXT,
    Reason    TEXT
);
CREATE INDEX IX_CircuitEvents_Type ON CircuitEvents (TypeKey, AtUtc, EventId);
CREATE INDEX IX_CircuitEvents_At ON CircuitEvents (AtUtc);

CREATE INDEX IX_AuditLog_Actor ON AuditLog (Actor COLLATE NOCASE, AuditId);
CREATE INDEX IX_AuditLog_Action ON AuditLog (Action COLLATE NOCASE, AuditId);

CREATE TABLE SignOuts (
    SessionId  TEXT    NOT NULL PRIMARY KEY,
    EndedAtUtc INTEGER NOT NULL,
    UntilUtc   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IX_SignOuts_Ended ON SignOuts (EndedAtUtc, UntilUtc);
