-- ClearArchived: delete the Archive rows of jobs that run once more, since a manual repair put them back into Hot and left the old
-- row: its success gives way to the one that comes, as an old row of the DLQ does. Called by the settle lane, when ArchiveSucceeded
-- met such a row; it calls that again afterwards.
-- :jobs is a document of [id, lease]. The fence is (id, lease, Processing).
-- Result: a row for each that went.
-- Table order: JobsHot, JobsArchive.

-- name: clear
DELETE FROM JobsArchive
WHERE Id IN (SELECT h.Id
             FROM (SELECT value ->> 0 AS JobId, value ->> 1 AS Lease FROM json_each(:jobs)) AS g
             CROSS JOIN JobsHot AS h ON h.Id = g.JobId AND h.LeaseNumber = g.Lease
             WHERE h.Status = 2)
RETURNING Id;
