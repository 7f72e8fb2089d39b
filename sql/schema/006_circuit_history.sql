-- 006: what circuits did, the audit log by actor and by action, and who has signed out of The Deck. Immutable once released.
-- Serves: programs from version 4 on.
SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- What circuits did, as their children told it, and what operators ordered. AtUtc: when the state was entered, by the database's clock.
-- FromState and ToState as State of Circuits; both above 0: a try that failed, or is under way. Failures: in a row, those that led to it;
-- of a closing, those it ended. An order (Forced as in CircuitOrders) has Actor and Reason instead, and no state, worker or failures.
-- Kept for 7 days, and of each TypeKey (in lower case) the newest 1,000 tries and the newest 2,000 others.
CREATE TABLE chokaq.CircuitEvents (
    EventId   bigint IDENTITY(1, 1) NOT NULL,
    TypeKey   varchar(255)   COLLATE Latin1_General_BIN2 NOT NULL,
    AtUtc     datetime2(3)   NOT NULL,
    FromState tinyint        NULL,
    ToState   tinyint        NULL,
    WorkerId  char(26)       COLLATE Latin1_General_BIN2 NULL,
    Host      nvarchar(255)  NULL,
    Queue     varchar(255)   COLLATE Latin1_General_BIN2 NULL,
    Failures  int            NULL,
    LastError nvarchar(255)  NULL,
    Forced    tinyint        NULL,
    Actor     nvarchar(100)  NULL,
    Reason    nvarchar(1000) NULL,
    CONSTRAINT PK_CircuitEvents PRIMARY KEY CLUSTERED (TypeKey, AtUtc, EventId)
);
-- For the purge.
CREATE INDEX IX_CircuitEvents_At ON chokaq.CircuitEvents (AtUtc);
GO
-- Pages of the audit log by who and by what, newest first.
CREATE INDEX IX_AuditLog_Actor ON chokaq.AuditLog (Actor, AuditId);
CREATE INDEX IX_AuditLog_Action ON chokaq.AuditLog (Action, AuditId);
GO
-- Sessions of The Deck that were signed out before their time, until that time: each of its processes refuses them. SessionId names a
-- sign-in; it opens nothing, since a session counts with its signature only.
CREATE TABLE chokaq.SignOuts (
    SessionId  varchar(64)  COLLATE Latin1_General_BIN2 NOT NULL,
    EndedAtUtc datetime2(3) NOT NULL,
    UntilUtc   datetime2(3) NOT NULL,
    CONSTRAINT PK_SignOuts PRIMARY KEY CLUSTERED (SessionId)
);
CREATE INDEX IX_SignOuts_Ended ON chokaq.SignOuts (EndedAtUtc, UntilUtc);
GO
