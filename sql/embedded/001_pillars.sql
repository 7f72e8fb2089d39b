-- 001: the embedded twin of sql/schema/001_pillars.sql. Times are integers: milliseconds since 1970-01-01 UTC by the host's clock.
-- Same tables, same column names; bit and enum columns are integers. The pillars keep SQLite's rowid: their wide rows change state
-- and move a quarter faster than in a tree ordered by Id; the narrow tables do without.
CREATE TABLE JobsHot (
    Id                   TEXT    NOT NULL PRIMARY KEY,
    Queue                TEXT    NOT NULL,
    Type                 TEXT    NOT NULL,
    Status               INTEGER NOT NULL,
    IsReady              INTEGER NOT NULL,
    Priority             INTEGER NOT NULL,
    DueAtUtc             INTEGER NOT NULL,
    LeaseNumber          INTEGER NOT NULL,
    AttemptCount         INTEGER NOT NULL,
    CrashCount           INTEGER NOT NULL,
    WorkerId             TEXT,
    FetchRequest         INTEGER,
    HeartbeatUtc         INTEGER,
    StartedAtUtc         INTEGER,
    CancelRequestedAtUtc INTEGER,
    Progress             INTEGER,
    CreatedAtUtc         INTEGER NOT NULL,
    ScheduledAtUtc       INTEGER,
    AgeFromUtc           INTEGER NOT NULL,
    KeyScope             INTEGER NOT NULL,
    PayloadHash          TEXT    NOT NULL,
    IdempotencyKey       TEXT,
    OwnerLogin           TEXT,
    CreatedBy            TEXT,
    Tags                 TEXT,
    Headers              TEXT,
    Payload              TEXT    NOT NULL
);
CREATE INDEX IX_JobsHot_Ready ON JobsHot (Queue, Priority DESC, DueAtUtc, Id) WHERE Status = 0 AND IsReady = 1;
CREATE INDEX IX_JobsHot_Due ON JobsHot (Queue, DueAtUtc, Id) WHERE Status = 0 AND IsReady = 0;
-- A job has a worker exactly while its Status is 1 or 2; said this way, the index stays as it is when a job starts.
CREATE INDEX IX_JobsHot_Lease ON JobsHot (Queue, WorkerId, Id) WHERE WorkerId IS NOT NULL;
CREATE UNIQUE INDEX UX_JobsHot_Key ON JobsHot (IdempotencyKey) WHERE IdempotencyKey IS NOT NULL;

CREATE TABLE JobsArchive (
    Id             TEXT    NOT NULL PRIMARY KEY,
    Queue          TEXT    NOT NULL,
    Type           TEXT    NOT NULL,
    Priority       INTEGER NOT NULL,
    DueAtUtc       INTEGER NOT NULL,
    LeaseNumber    INTEGER NOT NULL,
    AttemptCount   INTEGER NOT NULL,
    CrashCount     INTEGER NOT NULL,
    WorkerId       TEXT,
    StartedAtUtc   INTEGER,
    FinishedAtUtc  INTEGER NOT NULL,
    DurationMs     INTEGER,
    Progress       INTEGER,
    CreatedAtUtc   INTEGER NOT NULL,
    ScheduledAtUtc INTEGER,
    AgeFromUtc     INTEGER NOT NULL,
    KeyScope       INTEGER NOT NULL,
    PayloadHash    TEXT    NOT NULL,
    IdempotencyKey TEXT,
    OwnerLogin     TEXT,
    CreatedBy      TEXT,
    Tags           TEXT,
    Headers        TEXT,
    Payload        TEXT    NOT NULL
);
CREATE INDEX IX_JobsArchive_Finished ON JobsArchive (Queue, FinishedAtUtc, Id);

CREATE TABLE JobsDLQ (
    Id                   TEXT    NOT NULL PRIMARY KEY,
    Queue                TEXT    NOT NULL,
    Type                 TEXT    NOT NULL,
    Status               INTEGER NOT NULL,
    FailureReason        INTEGER NOT NULL,
    Priority             INTEGER NOT NULL,
    DueAtUtc             INTEGER NOT NULL,
    LeaseNumber          INTEGER NOT NULL,
    AttemptCount         INTEGER NOT NULL,
    CrashCount           INTEGER NOT NULL,
    WorkerId             TEXT,
    StartedAtUtc         INTEGER,
    FailedAtUtc          INTEGER NOT NULL,
    CancelRequestedAtUtc INTEGER,
    Progress             INTEGER,
    CreatedAtUtc         INTEGER NOT NULL,
    ScheduledAtUtc       INTEGER,
    AgeFromUtc           INTEGER NOT NULL,
    KeyScope             INTEGER NOT NULL,
    PayloadHash          TEXT    NOT NULL,
    IdempotencyKey       TEXT,
    OwnerLogin           TEXT,
    CreatedBy            TEXT,
    Tags                 TEXT,
    ErrorType            TEXT,
    ErrorMessage         TEXT,
    LastModifiedBy       TEXT,
    Headers              TEXT,
    Payload              TEXT    NOT NULL
);
CREATE INDEX IX_JobsDLQ_Failed ON JobsDLQ (Queue, FailedAtUtc, Id);
CREATE INDEX IX_JobsDLQ_Reason ON JobsDLQ (FailureReason, FailedAtUtc, Id);

CREATE TABLE JobKeys (
    IdempotencyKey TEXT    NOT NULL PRIMARY KEY,
    JobId          TEXT    NOT NULL,
    KeyScope       INTEGER NOT NULL,
    ExpiresAtUtc   INTEGER
) WITHOUT ROWID;
CREATE INDEX IX_JobKeys_Job ON JobKeys (JobId);
CREATE INDEX IX_JobKeys_Expires ON JobKeys (ExpiresAtUtc) WHERE ExpiresAtUtc IS NOT NULL;

CREATE TABLE CancelRequests (
    WorkerId       TEXT    NOT NULL,
    JobId          TEXT    NOT NULL,
    LeaseNumber    INTEGER NOT NULL,
    Actor          TEXT,
    Reason         TEXT,
    RequestedAtUtc INTEGER NOT NULL,
    PRIMARY KEY (WorkerId, JobId)
) WITHOUT ROWID;

CREATE TABLE JobNotes (
    JobId      TEXT    NOT NULL PRIMARY KEY,
    Note       TEXT    NOT NULL,
    NotedAtUtc INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE JobAttempts (
    JobId         TEXT    NOT NULL,
    LeaseNumber   INTEGER NOT NULL,
    AtUtc         INTEGER NOT NULL,
    WorkerId      TEXT,
    FailureReason INTEGER NOT NULL,
    ErrorType     TEXT    NOT NULL,
    ErrorMessage  TEXT    NOT NULL,
    Trace         TEXT,
    PRIMARY KEY (JobId, LeaseNumber)
) WITHOUT ROWID;

CREATE TABLE AuditLog (
    AuditId     INTEGER PRIMARY KEY AUTOINCREMENT,
    AtUtc       INTEGER NOT NULL,
    Actor       TEXT    NOT NULL,
    Action      TEXT    NOT NULL,
    Target      TEXT    NOT NULL,
    Reason      TEXT,
    BeforeState TEXT,
    AfterState  TEXT,
    RequestId   TEXT
);
CREATE INDEX IX_AuditLog_Target ON AuditLog (Target, AuditId);

CREATE TABLE Workers (
    WorkerId     TEXT    NOT NULL PRIMARY KEY,
    Queue        TEXT    NOT NULL,
    Slot         INTEGER NOT NULL,
    Host         TEXT    NOT NULL,
    Pid          INTEGER NOT NULL,
    Version      TEXT    NOT NULL,
    MaxWorkers   INTEGER NOT NULL,
    LastRequest  INTEGER NOT NULL,
    StartedAtUtc INTEGER NOT NULL,
    HeartbeatUtc INTEGER NOT NULL,
    EndedAtUtc   INTEGER,
    EndedCause   TEXT,
    DrainAtUtc   INTEGER,
    Running      INTEGER NOT NULL,
    Buffered     INTEGER NOT NULL,
    LoopLagMs    INTEGER NOT NULL,
    MemoryKb     INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX UX_Workers_Slot ON Workers (Slot) WHERE EndedAtUtc IS NULL;

CREATE TABLE Queues (
    Name               TEXT    NOT NULL PRIMARY KEY,
    MaxWorkers         INTEGER,
    FleetMaxWorkers    INTEGER,
    ExecutionTimeoutMs INTEGER,
    ZombieTimeoutMs    INTEGER,
    IsPaused           INTEGER NOT NULL,
    IsActive           INTEGER NOT NULL,
    Ticket             INTEGER NOT NULL,
    UpdatedAtUtc       INTEGER,
    UpdatedBy          TEXT
) WITHOUT ROWID;

CREATE TABLE Leadership (
    Role        TEXT    NOT NULL PRIMARY KEY,
    Holder      TEXT    NOT NULL,
    Term        INTEGER NOT NULL,
    LastPassUtc INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE MetricBuckets (
    Slot          INTEGER NOT NULL,
    Seconds       INTEGER NOT NULL,
    StartUtc      INTEGER NOT NULL,
    Queue         TEXT    NOT NULL,
    Outcome       INTEGER NOT NULL,
    FailureReason INTEGER NOT NULL,
    JobCount      INTEGER NOT NULL,
    DurationMs    INTEGER NOT NULL,
    MaxDurationMs INTEGER NOT NULL,
    Lag0 INTEGER NOT NULL, Lag1 INTEGER NOT NULL, Lag2  INTEGER NOT NULL, Lag3  INTEGER NOT NULL,
    Lag4 INTEGER NOT NULL, Lag5 INTEGER NOT NULL, Lag6  INTEGER NOT NULL, Lag7  INTEGER NOT NULL,
    Lag8 INTEGER NOT NULL, Lag9 INTEGER NOT NULL, Lag10 INTEGER NOT NULL, Lag11 INTEGER NOT NULL,
    PRIMARY KEY (Slot, Seconds, StartUtc, Queue, Outcome, FailureReason)
) WITHOUT ROWID;
CREATE INDEX IX_MetricBuckets_Start ON MetricBuckets (Seconds, StartUtc);

CREATE TABLE QueueTotals (
    Queue          TEXT    NOT NULL PRIMARY KEY,
    SucceededTotal INTEGER NOT NULL,
    FailedTotal    INTEGER NOT NULL,
    RetriedTotal   INTEGER NOT NULL
) WITHOUT ROWID;

CREATE VIEW Jobs AS
SELECT Id, Queue, Type, CASE Status WHEN 0 THEN 'Pending' WHEN 1 THEN 'Fetched' ELSE 'Processing' END AS Status, Priority,
       AttemptCount, CreatedAtUtc, DueAtUtc, StartedAtUtc, NULL AS FinishedAtUtc, NULL AS FailureReason, WorkerId, Tags, IdempotencyKey
FROM JobsHot
UNION ALL
SELECT Id, Queue, Type, 'Succeeded', Priority, AttemptCount, CreatedAtUtc, DueAtUtc, StartedAtUtc, FinishedAtUtc, NULL, WorkerId,
       Tags, IdempotencyKey
FROM JobsArchive
UNION ALL
SELECT Id, Queue, Type, CASE Status WHEN 4 THEN 'Failed' WHEN 5 THEN 'Cancelled' WHEN 6 THEN 'Zombie' ELSE 'Dropped' END, Priority,
       AttemptCount, CreatedAtUtc, DueAtUtc, StartedAtUtc, FailedAtUtc, FailureReason, WorkerId, Tags, IdempotencyKey
FROM JobsDLQ;
