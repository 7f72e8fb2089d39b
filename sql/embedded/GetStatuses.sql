-- GetStatuses: the state of each job of a set. Called by clients that wait for jobs.
-- Result: one row (id, status) per job found, in no order.
-- Table order: JobsHot, JobsArchive, JobsDLQ.

-- name: get
SELECT Id, Status FROM JobsHot WHERE Id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT Id, 3 FROM JobsArchive WHERE Id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT Id, Status FROM JobsDLQ WHERE Id IN (SELECT value FROM json_each(:ids));
