-- ReadHealth: what a worker's probes ask: the schema's version, and how long the oldest due job of each of its queues has waited.
-- Counts nothing: the cost does not depend on how many jobs there are. Called by the process that answers probes, when it is asked, at
-- most once a second. :queues is a document of names.
-- (The version is read from the ledgers, as when a session is opened.)
-- Results: `queues` Name, IsPaused, IsActive, one row per name, sorted; `oldest`
-- the earliest due time of one queue. Looks at 1,000 priorities at most, the highest.
-- Table order: Queues, JobsHot.

-- name: queues
SELECT n.value, COALESCE(q.IsPaused, 0), COALESCE(q.IsActive, 1)
FROM json_each(:queues) AS n LEFT JOIN Queues AS q ON q.Name = n.value
ORDER BY n.value;

-- name: oldest
WITH RECURSIVE Used (Priority) AS (
    SELECT MAX(Priority) FROM JobsHot INDEXED BY IX_JobsHot_Ready WHERE Queue = :queue AND Status = 0 AND IsReady = 1
    UNION ALL
    SELECT (SELECT MAX(h.Priority) FROM JobsHot AS h INDEXED BY IX_JobsHot_Ready
            WHERE h.Queue = :queue AND h.Status = 0 AND h.IsReady = 1 AND h.Priority < Used.Priority)
    FROM Used WHERE Used.Priority IS NOT NULL
    LIMIT 1000
)
SELECT MIN(Due) FROM (
    SELECT (SELECT h.DueAtUtc FROM JobsHot AS h INDEXED BY IX_JobsHot_Ready
            WHERE h.Queue = :queue AND h.Status = 0 AND h.IsReady = 1 AND h.Priority = u.Priority
            ORDER BY h.DueAtUtc LIMIT 1) AS Due
    FROM Used AS u
    UNION ALL
    SELECT (SELECT DueAtUtc FROM JobsHot INDEXED BY IX_JobsHot_Due
            WHERE Queue = :queue AND Status = 0 AND IsReady = 0 AND DueAtUtc <= :now ORDER BY DueAtUtc LIMIT 1)
);
