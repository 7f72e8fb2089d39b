-- 002: the view of all jobs by the names of their states, and the roles. What a role may execute stands in grants.sql.
SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- Every job in whichever pillar it stands, readable without a legend.
CREATE VIEW chokaq.Jobs
AS
SELECT h.Id AS Id, h.Queue AS Queue, h.Type AS Type,
       CAST(CASE h.Status WHEN 0 THEN 'Pending' WHEN 1 THEN 'Fetched' ELSE 'Processing' END AS varchar(10)) AS Status,
       h.Priority AS Priority, h.AttemptCount AS AttemptCount, h.CreatedAtUtc AS CreatedAtUtc, h.DueAtUtc AS DueAtUtc,
       h.StartedAtUtc AS StartedAtUtc, CAST(NULL AS datetime2(3)) AS FinishedAtUtc, CAST(NULL AS int) AS FailureReason,
       h.WorkerId AS WorkerId, h.Tags AS Tags, h.IdempotencyKey AS IdempotencyKey
FROM chokaq.JobsHot h
UNION ALL
SELECT a.Id, a.Queue, a.Type, CAST('Succeeded' AS varchar(10)), a.Priority, a.AttemptCount, a.CreatedAtUtc, a.DueAtUtc,
       a.StartedAtUtc, a.FinishedAtUtc, CAST(NULL AS int), a.WorkerId, a.Tags, a.IdempotencyKey
FROM chokaq.JobsArchive a
UNION ALL
SELECT d.Id, d.Queue, d.Type,
       CAST(CASE d.Status WHEN 4 THEN 'Failed' WHEN 5 THEN 'Cancelled' WHEN 6 THEN 'Zombie' ELSE 'Dropped' END AS varchar(10)),
       d.Priority, d.AttemptCount, d.CreatedAtUtc, d.DueAtUtc, d.StartedAtUtc, d.FailedAtUtc, d.FailureReason, d.WorkerId, d.Tags,
       d.IdempotencyKey
FROM chokaq.JobsDLQ d;
GO
IF DATABASE_PRINCIPAL_ID('chokaq_client') IS NULL CREATE ROLE chokaq_client;
IF DATABASE_PRINCIPAL_ID('chokaq_worker') IS NULL CREATE ROLE chokaq_worker;
IF DATABASE_PRINCIPAL_ID('chokaq_operator') IS NULL CREATE ROLE chokaq_operator;
IF DATABASE_PRINCIPAL_ID('chokaq_reader') IS NULL CREATE ROLE chokaq_reader;
GO
