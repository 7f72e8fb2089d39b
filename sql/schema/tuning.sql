-- tuning: options that only SQL Server (2019 and later, Azure SQL) knows. Re-runnable; applied after the numbered files where the
-- engine supports them, each batch by itself and never inside a transaction. Nothing is altered that is already as it should be: an
-- ALTER waits for everybody who uses the table, and everybody waits for it. docs/sqlserver.md has the reasons, and what stays yours
-- to decide.
SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- The cold pillars are compressed; the hot one is not, since its rows must not move when they change state. A pillar that has grown
-- uncompressed is left alone: a rebuild would keep everybody from it for as long as it takes (docs/sqlserver.md says how to do it).
IF EXISTS (SELECT 1 FROM sys.partitions p
           WHERE p.object_id = OBJECT_ID('chokaq.JobsArchive') AND p.index_id = 1 AND p.data_compression <> 2 AND p.rows < 10000)
BEGIN
    ALTER TABLE chokaq.JobsArchive REBUILD WITH (DATA_COMPRESSION = PAGE);
    ALTER INDEX IX_JobsArchive_Finished ON chokaq.JobsArchive REBUILD WITH (DATA_COMPRESSION = PAGE);
END;
GO
IF EXISTS (SELECT 1 FROM sys.partitions p
           WHERE p.object_id = OBJECT_ID('chokaq.JobsDLQ') AND p.index_id = 1 AND p.data_compression <> 2 AND p.rows < 10000)
BEGIN
    ALTER TABLE chokaq.JobsDLQ REBUILD WITH (DATA_COMPRESSION = PAGE);
    ALTER INDEX IX_JobsDLQ_Failed ON chokaq.JobsDLQ REBUILD WITH (DATA_COMPRESSION = PAGE);
    ALTER INDEX IX_JobsDLQ_Reason ON chokaq.JobsDLQ REBUILD WITH (DATA_COMPRESSION = PAGE);
END;
GO
-- Some thousand row locks must never become a lock on a table that every worker writes. JobsHot: a call takes up to a thousand rows
-- and their entries in several indexes. JobAttempts: the purge of a thousand jobs takes all attempts of each.
IF EXISTS (SELECT 1 FROM sys.tables t WHERE t.object_id = OBJECT_ID('chokaq.JobsHot') AND t.lock_escalation_desc <> 'DISABLE')
    ALTER TABLE chokaq.JobsHot SET (LOCK_ESCALATION = DISABLE);
IF EXISTS (SELECT 1 FROM sys.tables t WHERE t.object_id = OBJECT_ID('chokaq.JobAttempts') AND t.lock_escalation_desc <> 'DISABLE')
    ALTER TABLE chokaq.JobAttempts SET (LOCK_ESCALATION = DISABLE);
GO
-- Ids rise with time: many writers meet on the last page of these.
IF EXISTS (SELECT 1 FROM sys.indexes i
           WHERE i.object_id = OBJECT_ID('chokaq.JobsHot') AND i.name = 'PK_JobsHot' AND i.optimize_for_sequential_key = 0)
    ALTER INDEX PK_JobsHot ON chokaq.JobsHot SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = ON);
IF EXISTS (SELECT 1 FROM sys.indexes i
           WHERE i.object_id = OBJECT_ID('chokaq.JobsArchive') AND i.name = 'PK_JobsArchive' AND i.optimize_for_sequential_key = 0)
    ALTER INDEX PK_JobsArchive ON chokaq.JobsArchive SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = ON);
IF EXISTS (SELECT 1 FROM sys.indexes i
           WHERE i.object_id = OBJECT_ID('chokaq.JobsArchive') AND i.name = 'IX_JobsArchive_Finished'
             AND i.optimize_for_sequential_key = 0)
    ALTER INDEX IX_JobsArchive_Finished ON chokaq.JobsArchive SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = ON);
GO
