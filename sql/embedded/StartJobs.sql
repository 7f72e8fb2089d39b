-- StartJobs: Fetched -> Processing, one execution counted. Called by the settle lane before a handler starts.
-- :jobs is a document of [id, lease]. Results: the ids moved now; `shown` those that an earlier call with the same lease moved.
-- Table order: JobsHot.

-- name: start
UPDATE JobsHot
SET Status = 2, AttemptCount = AttemptCount + 1, StartedAtUtc = :now, HeartbeatUtc = :now
FROM (SELECT value ->> 0 AS JobId, value ->> 1 AS Lease FROM json_each(:jobs)) AS g
WHERE Id = g.JobId AND LeaseNumber = g.Lease AND Status = 1
RETURNING Id, LeaseNumber;

-- name: shown
SELECT Id, LeaseNumber
FROM (SELECT value ->> 0 AS JobId, value ->> 1 AS Lease FROM json_each(:jobs)) AS g
CROSS JOIN JobsHot ON Id = g.JobId AND LeaseNumber = g.Lease
WHERE Status = 2;
