-- 001: the three pillars and what stands around them. Immutable once released.
-- Times are UTC by the server's clock. Ids are ULIDs. Names are ASCII in a binary collation. No foreign keys on hot tables.
SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- Live work. Columns that change after the insert are of fixed width: a row never grows when it changes state.
CREATE TABLE chokaq.JobsHot (
    Id                   char(26)       COLLATE Latin1_General_BIN2 NOT NULL,
    Queue                varchar(255)   COLLATE Latin1_General_BIN2 NOT NULL,
    Type                 varchar(255)   COLLATE Latin1_General_BIN2 NOT NULL,
    Status               tinyint        NOT NULL,
    IsReady              bit            NOT NULL,
    Priority             int            NOT NULL,
    DueAtUtc             datetime2(3)   NOT NULL,
    LeaseNumber          int            NOT NULL,
    AttemptCount         int            NOT NULL,
    CrashCount           int            NOT NULL,
    WorkerId             char(26)       COLLATE Latin1_General_BIN2 NULL,
    FetchRequest         bigint         NULL,
    HeartbeatUtc         datetime2(3)   NULL,
    StartedAtUtc         datetime2(3)   NULL,
    CancelRequestedAtUtc datetime2(3)   NULL,
    Progress             tinyint        NULL,
    CreatedAtUtc         datetime2(3)   NOT NULL,
    ScheduledAtUtc       datetime2(3)   NULL,
    AgeFromUtc           datetime2(3)   NOT NULL,
    KeyScope             tinyint        NOT NULL,
    PayloadHash          char(32)       COLLATE Latin1_General_BIN2 NOT NULL,
    IdempotencyKey       nvarchar(255)  COLLATE Latin1_General_BIN2 NULL,
    OwnerLogin           nvarchar(128)  NULL,
    CreatedBy            nvarchar(100)  NULL,
    Tags                 nvarchar(1000) NULL,
    Headers              varchar(4000)  COLLATE Latin1_General_BIN2 NULL,
    Payload              varchar(max)   COLLATE Latin1_General_BIN2 NOT NULL,
    CONSTRAINT PK_JobsHot PRIMARY KEY CLUSTERED (Id)
);
-- The claim: ready rows of a queue in the order they are served.
CREATE INDEX IX_JobsHot_Ready ON chokaq.JobsHot (Queue, Priority DESC, DueAtUtc, Id) WHERE Status = 0 AND IsReady = 1;
-- The promotion: waiting rows of a queue by due time.
CREATE INDEX IX_JobsHot_Due ON chokaq.JobsHot (Queue, DueAtUtc, Id) WHERE Status = 0 AND IsReady = 0;
-- Leases held: the fleet cap counts them, release and rescue walk them.
CREATE INDEX IX_JobsHot_Lease ON chokaq.JobsHot (Queue, WorkerId, Id) WHERE Status IN (1, 2);
-- One live job per idempotency key.
CREATE UNIQUE INDEX UX_JobsHot_Key ON chokaq.JobsHot (IdempotencyKey) WHERE IdempotencyKey IS NOT NULL;
GO
-- Succeeded work, with everything an audit or a repeated call needs.
CREATE TABLE chokaq.JobsArchive (
    Id             char(26)       COLLATE Latin1_General_BIN2 NOT NULL,
    Queue          varchar(255)   COLLATE Latin1_General_BIN2 NOT NULL,
    Type           varchar(255)   COLLATE Latin1_General_BIN2 NOT NULL,
    Priority       int            NOT NULL,
    DueAtUtc       datetime2(3)   NOT NULL,
    LeaseNumber    int            NOT NULL,
    AttemptCount   int            NOT NULL,
    CrashCount     int            NOT NULL,
    WorkerId       char(26)       COLLATE Latin1_General_BIN2 NULL,
    StartedAtUtc   datetime2(3)   NULL,
    FinishedAtUtc  datetime2(3)   NOT NULL,
    DurationMs     bigint         NULL,
    Progress       tinyint        NULL,
    CreatedAtUtc   datetime2(3)   NOT NULL,
    ScheduledAtUtc datetime2(3)   NULL,
    AgeFromUtc     datetime2(3)   NOT NULL,
    KeyScope       tinyint        NOT NULL,
    PayloadHash    char(32)       COLLATE Latin1_General_BIN2 NOT NULL,
    IdempotencyKey nvarchar(255)  COLLATE Latin1_General_BIN2 NULL,
    OwnerLogin     nvarchar(128)  NULL,
    CreatedBy      nvarchar(100)  NULL,
    Tags           nvarchar(1000) NULL,
    Headers        varchar(4000)  COLLATE Latin1_General_BIN2 NULL,
    Payload        varchar(max)   COLLATE Latin1_General_BIN2 NOT NULL,
    CONSTRAINT PK_JobsArchive PRIMARY KEY CLUSTERED (Id)
);
CREATE INDEX IX_JobsArchive_Finished ON chokaq.JobsArchive (Queue, FinishedAtUtc, Id);
GO
-- Stopped work, kept until someone says otherwise. Status: 4 Failed, 5 Cancelled, 6 Zombie, 7 Dropped.
CREATE TABLE chokaq.JobsDLQ (
    Id                   char(26)       COLLATE Latin1_General_BIN2 NOT NULL,
    Queue                varchar(255)   COLLATE Latin1_General_BIN2 NOT NULL,
    Type                 varchar(255)   COLLATE Latin1_General_BIN2 NOT NULL,
    Status               tinyint        NOT NULL,
    FailureReason        int            NOT NULL,
    Priority             int            NOT NULL,
    DueAtUtc             datetime2(3)   NOT NULL,
    LeaseNumber          int            NOT NULL,
    AttemptCount         int            NOT NULL,
    CrashCount           int            NOT NULL,
    WorkerId             char(26)       COLLATE Latin1_General_BIN2 NULL,
    StartedAtUtc         datetime2(3)   NULL,
    FailedAtUtc          datetime2(3)   NOT NULL,
    CancelRequestedAtUtc datetime2(3)   NULL,
    Progress             tinyint        NULL,
    CreatedAtUtc         datetime2(3)   NOT NULL,
    ScheduledAtUtc       datetime2(3)   NULL,
    AgeFromUtc           datetime2(3)   NOT NULL,
    KeyScope             tinyint        NOT NULL,
    PayloadHash          char(32)       COLLATE Latin1_General_BIN2 NOT NULL,
    IdempotencyKey       nvarchar(255)  COLLATE Latin1_General_BIN2 NULL,
    OwnerLogin           nvarchar(128)  NULL,
    CreatedBy            nvarchar(100)  NULL,
    Tags                 nvarchar(1000) NULL,
    ErrorType            nvarchar(255)  NULL,
    ErrorMessage         nvarchar(4000) NULL,
    LastModifiedBy       nvarchar(100)  NULL,
    Headers              varchar(4000)  COLLATE Latin1_General_BIN2 NULL,
    Payload              varchar(max)   COLLATE Latin1_General_BIN2 NOT NULL,
    CONSTRAINT PK_JobsDLQ PRIMARY KEY CLUSTERED (Id)
);
CREATE INDEX IX_JobsDLQ_Failed ON chokaq.JobsDLQ (Queue, FailedAtUtc, Id);
CREATE INDEX IX_JobsDLQ_Reason ON chokaq.JobsDLQ (FailureReason, FailedAtUtc, Id);
GO
-- Retained and windowed idempotency keys: written with their job, gone with its purge.
CREATE TABLE chokaq.JobKeys (
    IdempotencyKey nvarchar(255) COLLATE Latin1_General_BIN2 NOT NULL,
    JobId          char(26)      COLLATE Latin1_General_BIN2 NOT NULL,
    KeyScope       tinyint       NOT NULL,
    ExpiresAtUtc   datetime2(3)  NULL,
    CONSTRAINT PK_JobKeys PRIMARY KEY CLUSTERED (IdempotencyKey)
);
CREATE INDEX IX_JobKeys_Job ON chokaq.JobKeys (JobId);
CREATE INDEX IX_JobKeys_Expires ON chokaq.JobKeys (ExpiresAtUtc) WHERE ExpiresAtUtc IS NOT NULL;
GO
-- Cancellations asked of a running job, read by its worker; gone when the job moves.
CREATE TABLE chokaq.CancelRequests (
    WorkerId       char(26)       COLLATE Latin1_General_BIN2 NOT NULL,
    JobId          char(26)       COLLATE Latin1_General_BIN2 NOT NULL,
    LeaseNumber    int            NOT NULL,
    Actor          nvarchar(100)  NULL,
    Reason         nvarchar(1000) NULL,
    RequestedAtUtc datetime2(3)   NOT NULL,
    CONSTRAINT PK_CancelRequests PRIMARY KEY CLUSTERED (WorkerId, JobId)
);
-- The last progress note of a running job.
CREATE TABLE chokaq.JobNotes (
    JobId        char(26)       COLLATE Latin1_General_BIN2 NOT NULL,
    Note         nvarchar(1000) NOT NULL,
    NotedAtUtc   datetime2(3)   NOT NULL,
    CONSTRAINT PK_JobNotes PRIMARY KEY CLUSTERED (JobId)
);
-- One row per failed attempt; also the evidence that a reschedule was applied.
CREATE TABLE chokaq.JobAttempts (
    JobId         char(26)       COLLATE Latin1_General_BIN2 NOT NULL,
    LeaseNumber   int            NOT NULL,
    AtUtc         datetime2(3)   NOT NULL,
    WorkerId      char(26)       COLLATE Latin1_General_BIN2 NULL,
    FailureReason int            NOT NULL,
    ErrorType     nvarchar(255)  NOT NULL,
    ErrorMessage  nvarchar(4000) NOT NULL,
    Trace         nvarchar(max)  NULL,
    CONSTRAINT PK_JobAttempts PRIMARY KEY CLUSTERED (JobId, LeaseNumber)
);
-- Every operator action: who, when, what, why, before, after. RequestId names the call: its repeat finds what it did itself.
CREATE TABLE chokaq.AuditLog (
    AuditId     bigint IDENTITY(1, 1) NOT NULL,
    AtUtc       datetime2(3)   NOT NULL,
    Actor       nvarchar(100)  NOT NULL,
    Action      varchar(50)    NOT NULL,
    Target      varchar(255)   COLLATE Latin1_General_BIN2 NOT NULL,
    Reason      nvarchar(1000) NULL,
    BeforeState nvarchar(max)  NULL,
    AfterState  nvarchar(max)  NULL,
    RequestId   char(26)       COLLATE Latin1_General_BIN2 NULL,
    CONSTRAINT PK_AuditLog PRIMARY KEY CLUSTERED (AuditId)
);
CREATE INDEX IX_AuditLog_Target ON chokaq.AuditLog (Target, AuditId);
GO
-- Every process that works here, with its live figures. Ended rows are kept 7 days. DrainAtUtc: an operator asked it to end.
CREATE TABLE chokaq.Workers (
    WorkerId     char(26)      COLLATE Latin1_General_BIN2 NOT NULL,
    Queue        varchar(255)  COLLATE Latin1_General_BIN2 NOT NULL,
    Slot         int           NOT NULL,
    Host         nvarchar(255) NOT NULL,
    Pid          int           NOT NULL,
    Version      varchar(50)   NOT NULL,
    MaxWorkers   int           NOT NULL,
    LastRequest  bigint        NOT NULL,
    StartedAtUtc datetime2(3)  NOT NULL,
    HeartbeatUtc datetime2(3)  NOT NULL,
    EndedAtUtc   datetime2(3)  NULL,
    EndedCause   varchar(255)  NULL,
    DrainAtUtc   datetime2(3)  NULL,
    Running      int           NOT NULL,
    Buffered     int           NOT NULL,
    LoopLagMs    int           NOT NULL,
    MemoryKb     bigint        NOT NULL,
    CONSTRAINT PK_Workers PRIMARY KEY CLUSTERED (WorkerId)
);
-- A slot has one live owner, so that no counter row has two writers.
CREATE UNIQUE INDEX UX_Workers_Slot ON chokaq.Workers (Slot) WHERE EndedAtUtc IS NULL;
-- Operators' overrides (null: the YAML rules). Ticket serialises the fetches of a capped queue.
CREATE TABLE chokaq.Queues (
    Name               varchar(255)  COLLATE Latin1_General_BIN2 NOT NULL,
    MaxWorkers         int           NULL,
    FleetMaxWorkers    int           NULL,
    ExecutionTimeoutMs bigint        NULL,
    ZombieTimeoutMs    bigint        NULL,
    IsPaused           bit           NOT NULL,
    IsActive           bit           NOT NULL,
    Ticket             bigint        NOT NULL,
    UpdatedAtUtc       datetime2(3)  NULL,
    UpdatedBy          nvarchar(100) NULL,
    CONSTRAINT PK_Queues PRIMARY KEY CLUSTERED (Name)
);
-- Who leads the maintenance, by a term that the database issues.
CREATE TABLE chokaq.Leadership (
    Role        varchar(50)  COLLATE Latin1_General_BIN2 NOT NULL,
    Holder      char(26)     COLLATE Latin1_General_BIN2 NOT NULL,
    Term        bigint       NOT NULL,
    LastPassUtc datetime2(3) NOT NULL,
    CONSTRAINT PK_Leadership PRIMARY KEY CLUSTERED (Role)
);
GO
-- Outcomes per second and slot (one writer each), rolled up into minutes (Slot 0, Seconds 60). Lag0 … Lag11: pickup lag up to
-- 1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576 ms, and more.
CREATE TABLE chokaq.MetricBuckets (
    Slot          int          NOT NULL,
    Seconds       smallint     NOT NULL,
    StartUtc      datetime2(0) NOT NULL,
    Queue         varchar(255) COLLATE Latin1_General_BIN2 NOT NULL,
    Outcome       tinyint      NOT NULL,
    FailureReason int          NOT NULL,
    JobCount      bigint       NOT NULL,
    DurationMs    bigint       NOT NULL,
    MaxDurationMs bigint       NOT NULL,
    Lag0 int NOT NULL, Lag1 int NOT NULL, Lag2  int NOT NULL, Lag3  int NOT NULL,
    Lag4 int NOT NULL, Lag5 int NOT NULL, Lag6  int NOT NULL, Lag7  int NOT NULL,
    Lag8 int NOT NULL, Lag9 int NOT NULL, Lag10 int NOT NULL, Lag11 int NOT NULL,
    CONSTRAINT PK_MetricBuckets PRIMARY KEY CLUSTERED (Slot, Seconds, StartUtc, Queue, Outcome, FailureReason)
);
CREATE INDEX IX_MetricBuckets_Start ON chokaq.MetricBuckets (Seconds, StartUtc);
-- Lifetime totals; they never shrink. What has not been rolled up yet stands in MetricBuckets with Seconds = 1.
CREATE TABLE chokaq.QueueTotals (
    Queue          varchar(255) COLLATE Latin1_General_BIN2 NOT NULL,
    SucceededTotal bigint       NOT NULL,
    FailedTotal    bigint       NOT NULL,
    RetriedTotal   bigint       NOT NULL,
    CONSTRAINT PK_QueueTotals PRIMARY KEY CLUSTERED (Queue)
);
GO
