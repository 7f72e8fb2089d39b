-- ListPriorities: how long the due jobs of a queue have waited, by priority: at most the 100 priorities whose oldest job has waited
-- longest. Looks at 1,000 priorities at most; counts stop at 10,000 per priority; of the rows that are due and not promoted yet the
-- oldest 1,000 are seen. Called by operators and metrics.
-- Result: Priority, Waiting, OldestDueMs; highest priority first.
-- Table order: JobsHot.

-- name: list
WITH RECURSIVE
    Used (Priority) AS (
        SELECT MAX(Priority) FROM JobsHot INDEXED BY IX_JobsHot_Ready WHERE Queue = :queue AND Status = 0 AND IsReady = 1
        UNION ALL
        SELECT (SELECT MAX(h.Priority) FROM JobsHot AS h INDEXED BY IX_JobsHot_Ready
                WHERE h.Queue = :queue AND h.Status = 0 AND h.IsReady = 1 AND h.Priority < Used.Priority)
        FROM Used WHERE Used.Priority IS NOT NULL
        LIMIT 1000
    ),
    Unready (Priority, Waiting, Due) AS MATERIALIZED (
        SELECT Priority, COUNT(*), MIN(DueAtUtc)
        FROM (SELECT Priority, DueAtUtc FROM JobsHot INDEXED BY IX_JobsHot_Due
              WHERE Queue = :queue AND Status = 0 AND IsReady = 0 AND DueAtUtc <= :now ORDER BY DueAtUtc, Id LIMIT 1000)
        GROUP BY Priority
    ),
    Kept (Priority, Waiting, Due) AS (
        SELECT Priority, SUM(Waiting), MIN(Due)
        FROM (SELECT u.Priority, 0 AS Waiting,
                     (SELECT h.DueAtUtc FROM JobsHot AS h INDEXED BY IX_JobsHot_Ready
                      WHERE h.Queue = :queue AND h.Status = 0 AND h.IsReady = 1 AND h.Priority = u.Priority
                      ORDER BY h.DueAtUtc LIMIT 1) AS Due
              FROM Used AS u WHERE u.Priority IS NOT NULL
              UNION ALL
              SELECT Priority, Waiting, Due FROM Unready)
        GROUP BY Priority ORDER BY MIN(Due), Priority LIMIT 100
    )
SELECT k.Priority,
       MIN(10000, k.Waiting + (SELECT COUNT(*) FROM (SELECT 1 FROM JobsHot AS h INDEXED BY IX_JobsHot_Ready
                                                     WHERE h.Queue = :queue AND h.Status = 0 AND h.IsReady = 1
                                                       AND h.Priority = k.Priority LIMIT 10000))),
       :now - k.Due
FROM Kept AS k ORDER BY k.Priority DESC;
