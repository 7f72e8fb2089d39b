-- PurgeArchive: delete old Archive rows of one queue, or of all, with their keys, notes and attempts. Called by the maintenance
-- leader's retention.
-- Result: `old` the ids of at most :size rows, found in the index alone; jumps from queue to queue when none is named.
-- Table order: JobsArchive, JobKeys, JobNotes, JobAttempts.

-- name: old
WITH RECURSIVE Named (Name) AS (
    SELECT COALESCE(:queue, (SELECT MIN(Queue) FROM JobsArchive))
    UNION ALL
    SELECT (SELECT MIN(Queue) FROM JobsArchive WHERE Queue > Name) FROM Named WHERE Name IS NOT NULL AND :queue IS NULL
)
SELECT Id FROM Named CROSS JOIN JobsArchive INDEXED BY IX_JobsArchive_Finished
WHERE Queue = Name AND FinishedAtUtc < :before
LIMIT :size;

-- name: rows
DELETE FROM JobsArchive WHERE Id IN (SELECT value FROM json_each(:ids));

-- name: keys
DELETE FROM JobKeys WHERE JobId IN (SELECT value FROM json_each(:ids));

-- name: notes
DELETE FROM JobNotes WHERE JobId IN (SELECT value FROM json_each(:ids));

-- name: attempts
DELETE FROM JobAttempts WHERE JobId IN (SELECT value FROM json_each(:ids));
