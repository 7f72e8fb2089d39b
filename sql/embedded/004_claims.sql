-- 004: the embedded twin of sql/schema/004_claims.sql: what the idempotency middleware remembers.
CREATE TABLE RunClaims (
    ClaimKey     TEXT    NOT NULL PRIMARY KEY,
    JobId        TEXT    NOT NULL,
    LeaseNumber  INTEGER NOT NULL,
    WorkerId     TEXT    NOT NULL,
    State        TEXT    NOT NULL,
    ClaimedAtUtc INTEGER NOT NULL,
    DoneAtUtc    INTEGER,
    ExpiresAtUtc INTEGER,
    Result       TEXT
) WITHOUT ROWID;
CREATE INDEX IX_RunClaims_Job ON RunClaims (JobId);
CREATE INDEX IX_RunClaims_Expires ON RunClaims (State, ExpiresAtUtc) WHERE ExpiresAtUtc IS NOT NULL;
