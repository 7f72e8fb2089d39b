-- 004: run claims, the memory of the idempotency middleware. Immutable once released.
SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- One row per key that a run has claimed or completed. State: running (the claim of JobId under LeaseNumber, renewed with the lease)
-- or done (the marker of a completed run). ExpiresAtUtc: until then other jobs of the key keep away; null: for ever (done only).
-- Result: what the handler returned, ASCII JSON, when it was to be kept.
CREATE TABLE chokaq.RunClaims (
    ClaimKey     nvarchar(255) COLLATE Latin1_General_BIN2 NOT NULL,
    JobId        char(26)      COLLATE Latin1_General_BIN2 NOT NULL,
    LeaseNumber  int           NOT NULL,
    WorkerId     char(26)      COLLATE Latin1_General_BIN2 NOT NULL,
    State        varchar(7)    COLLATE Latin1_General_BIN2 NOT NULL,
    ClaimedAtUtc datetime2(3)  NOT NULL,
    DoneAtUtc    datetime2(3)  NULL,
    ExpiresAtUtc datetime2(3)  NULL,
    Result       varchar(max)  COLLATE Latin1_General_BIN2 NULL,
    CONSTRAINT PK_RunClaims PRIMARY KEY CLUSTERED (ClaimKey)
);
CREATE INDEX IX_RunClaims_Job ON chokaq.RunClaims (JobId);
-- For the purge; an expiry moves with every renewal, but only jobs with an idempotency key have one.
CREATE INDEX IX_RunClaims_Expires ON chokaq.RunClaims (State, ExpiresAtUtc) WHERE ExpiresAtUtc IS NOT NULL;
GO
