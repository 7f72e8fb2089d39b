-- 003: the circuit breakers of the fleet as people see them, and the operators' orders.
SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- What each child last said of the circuit of a type: its own rows only, so that no row has two writers. Those of ended workers do not
-- count, and go with PurgeLeftovers. TypeKey in lower case. State: 0 closed, 1 open, 2 half-open.
CREATE TABLE chokaq.Circuits (
    WorkerId     char(26)      COLLATE Latin1_General_BIN2 NOT NULL,
    TypeKey      varchar(255)  COLLATE Latin1_General_BIN2 NOT NULL,
    Queue        varchar(255)  COLLATE Latin1_General_BIN2 NOT NULL,
    State        tinyint       NOT NULL,
    Failures     int           NOT NULL,
    Generation   bigint        NOT NULL,
    ChangedAtUtc datetime2(3)  NOT NULL,
    NextProbeUtc datetime2(3)  NULL,
    LastError    nvarchar(255) NULL,
    CONSTRAINT PK_Circuits PRIMARY KEY CLUSTERED (WorkerId, TypeKey)
);
-- The last order per type (Forced: 0 none, 1 open, 2 closed). The row with the empty TypeKey is the ticket: it holds the number of the
-- latest order, and orders take their numbers from it one after the other, so that a larger number was committed later.
CREATE TABLE chokaq.CircuitOrders (
    TypeKey     varchar(255)   COLLATE Latin1_General_BIN2 NOT NULL,
    Forced      tinyint        NOT NULL,
    Actor       nvarchar(100)  NOT NULL,
    Reason      nvarchar(1000) NULL,
    AtUtc       datetime2(3)   NOT NULL,
    OrderNumber bigint         NOT NULL,
    CONSTRAINT PK_CircuitOrders PRIMARY KEY CLUSTERED (TypeKey)
);
GO
