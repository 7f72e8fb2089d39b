-- tuning: options that only SQL Server knows. Re-runnable; applied after the numbered files where the engine supports them.
SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- Some thousand row locks must never become a lock on the table that every worker uses.
ALTER TABLE chokaq.JobsHot SET (LOCK_ESCALATION = DISABLE);
GO
-- Ids rise with time: many writers meet on the last page of these.
ALTER INDEX PK_JobsHot ON chokaq.JobsHot SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = ON);
ALTER INDEX PK_JobsArchive ON chokaq.JobsArchive SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = ON);
ALTER INDEX IX_JobsArchive_Finished ON chokaq.JobsArchive SET (OPTIMIZE_FOR_SEQUENTIAL_KEY = ON);
GO
-- The cold pillars are compressed; the hot one is not, since its rows must not move when they change state.
IF EXISTS (SELECT 1 FROM sys.partitions p WHERE p.object_id = OBJECT_ID('chokaq.JobsArchive') AND p.index_id = 1 AND p.data_compression <> 2)
    ALTER TABLE chokaq.JobsArchive REBUILD WITH (DATA_COMPRESSION = PAGE);
IF EXISTS (SELECT 1 FROM sys.partitions p WHERE p.object_id = OBJECT_ID('chokaq.JobsDLQ') AND p.index_id = 1 AND p.data_compression <> 2)
    ALTER TABLE chokaq.JobsDLQ REBUILD WITH (DATA_COMPRESSION = PAGE);
GO
