-- PurgeDLQ: delete old DLQ rows of one queue, or of all, with their keys, notes and attempts. Called by the maintenance
-- leader's retention.
-- Result: `old` the ids of at most :size rows, found in the index alone; jumps from queue to queue when none is named.
-- Table order: JobsDLQ, JobKeys, JobNotes, JobAttempts.

-- name: old
WITH RECURSIVE Named (Name) AS (
    SELECT COALESCE(:queue, (SELECT MIN(Queue) FROM JobsDLQ))
    UNION ALL
    SELECT (SELECT MIN(Queue) FROM JobsDLQ WHERE Queue > Name) FROM Named WHERE Name IS NOT NULL AND :queue IS NULL
)
SELECT Id FROM Named CROSS JOIN JobsDLQ INDEXED BY IX_JobsDLQ_Failed
WHERE Queue = Name AND FailedAtUtc < :before
LIMIT :size;

-- name: rows
DELETE FROM JobsDLQ WHERE Id IN (SELECT value FROM json_each(:ids));

-- name: keys
DELETE FROM JobKeys WHERE JobId IN (SELECT value FROM json_each(:ids));

-- name: notes
DELETE FROM JobNotes WHERE JobId IN (SELECT value FROM json_each(:ids));

-- name: attempts
DELETE FROM JobAttempts WHERE JobId IN (SELECT value FROM json_each(:ids));
