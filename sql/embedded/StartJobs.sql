-- StartJobs: Fetched -> Processing, one execution counted. Called by the settle lane before a handler starts.
-- :jobs is a document of [id, lease]. Results: `start` none, but the number of rows it changed; where that is not all of them,
-- `shown` the jobs that stand started under their lease, by this call or by an earlier one.
-- Table order: JobsHot.

-- name: start
UPDATE JobsHot
SET Status = 2, AttemptCount = AttemptCount + 1, StartedAtUtc = :now, HeartbeatUtc = :now
FROM (SELECT value ->> 0 AS JobId, value ->> 1 AS Lease FROM json_each(:jobs)) AS g
WHERE Id = g.JobId AND LeaseNumber = g.Lease AND Status = 1;

-- name: shown
SELECT Id, LeaseNumber
FROM (SELECT value ->> 0 AS JobId, value ->> 1 AS Lease FROM json_each(:jobs)) AS g
CROSS JOIN JobsHot ON Id = g.JobId AND LeaseNumber = g.Lease
WHERE Status = 2;
