-- 003: the embedded twin of sql/schema/003_circuits.sql. Times are integers, as in 001_pillars.sql.
CREATE TABLE Circuits (
    WorkerId     TEXT    NOT NULL,
    TypeKey      TEXT    NOT NULL,
    Queue        TEXT    NOT NULL,
    State        INTEGER NOT NULL,
    Failures     INTEGER NOT NULL,
    Generation   INTEGER NOT NULL,
    ChangedAtUtc INTEGER NOT NULL,
    NextProbeUtc INTEGER,
    LastError    TEXT,
    PRIMARY KEY (WorkerId, TypeKey)
) WITHOUT ROWID;

CREATE TABLE CircuitOrders (
    TypeKey     TEXT    NOT NULL PRIMARY KEY,
    Forced      INTEGER NOT NULL,
    Actor       TEXT    NOT NULL,
    Reason      TEXT,
    AtUtc       INTEGER NOT NULL,
    OrderNumber INTEGER NOT NULL
) WITHOUT ROWID;
