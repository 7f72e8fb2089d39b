-- ListHotQueues: the queues that have live jobs or a row in Queues. Called by the maintenance leader to walk them.
-- Result: one name per row, sorted. Jumps from name to name in the indexes; the cost does not depend on how many jobs there are.
-- Table order: Queues, JobsHot.

-- name: list
WITH RECURSIVE
    Ready (Name) AS (
        SELECT MIN(Queue) FROM JobsHot INDEXED BY IX_JobsHot_Ready WHERE Status = 0 AND IsReady = 1
        UNION ALL
        SELECT (SELECT MIN(Queue) FROM JobsHot INDEXED BY IX_JobsHot_Ready WHERE Status = 0 AND IsReady = 1 AND Queue > Name)
        FROM Ready WHERE Name IS NOT NULL
    ),
    Waiting (Name) AS (
        SELECT MIN(Queue) FROM JobsHot INDEXED BY IX_JobsHot_Due WHERE Status = 0 AND IsReady = 0
        UNION ALL
        SELECT (SELECT MIN(Queue) FROM JobsHot INDEXED BY IX_JobsHot_Due WHERE Status = 0 AND IsReady = 0 AND Queue > Name)
        FROM Waiting WHERE Name IS NOT NULL
    ),
    Leased (Name) AS (
        SELECT MIN(Queue) FROM JobsHot INDEXED BY IX_JobsHot_Lease WHERE WorkerId IS NOT NULL
        UNION ALL
        SELECT (SELECT MIN(Queue) FROM JobsHot INDEXED BY IX_JobsHot_Lease WHERE WorkerId IS NOT NULL AND Queue > Name)
        FROM Leased WHERE Name IS NOT NULL
    )
SELECT Name FROM Queues
UNION SELECT Name FROM Ready WHERE Name IS NOT NULL
UNION SELECT Name FROM Waiting WHERE Name IS NOT NULL
UNION SELECT Name FROM Leased WHERE Name IS NOT NULL
ORDER BY 1;
