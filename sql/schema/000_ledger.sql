-- 000: what has been applied here. Made first and by itself, so that a version can be read wherever anything is installed.
SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- One row per numbered schema file.
CREATE TABLE chokaq.SchemaMigrations (
    Version      int           NOT NULL,
    Name         varchar(255)  NOT NULL,
    Sha256       char(64)      NOT NULL,
    AppliedAtUtc datetime2(3)  NOT NULL,
    CONSTRAINT PK_SchemaMigrations PRIMARY KEY CLUSTERED (Version)
);
-- One row per re-runnable script (procedures, grants, tuning): the hash of the text that was applied last.
CREATE TABLE chokaq.SchemaObjects (
    Name   varchar(255) NOT NULL,
    Sha256 char(64)     NOT NULL,
    CONSTRAINT PK_SchemaObjects PRIMARY KEY CLUSTERED (Name)
);
GO
