-- PreviewDLQ: what a filter of the DLQ means at this moment: how many jobs, and the newest of them. Called by operators. Never reads
-- payloads.
-- :tag is a LIKE pattern with `\` as its escape; an open end of the range is an instant that is never reached.
-- Result: of the newest 10,001 jobs that fit, newest first: the id, and whether :search occurs in one of its texts (1 without one).
-- Table order: JobsDLQ, jumping from queue to queue when none is named.

-- name: matches
WITH RECURSIVE Named (Name) AS (
    SELECT COALESCE(:queue, (SELECT MIN(Queue) FROM JobsDLQ))
    UNION ALL
    SELECT (SELECT MIN(Queue) FROM JobsDLQ WHERE Queue > Name) FROM Named WHERE Name IS NOT NULL AND :queue IS NULL
)
SELECT Id, :search IS NULL OR INSTR(LOWER(Id), LOWER(:search)) OR INSTR(LOWER(Type), LOWER(:search))
           OR COALESCE(INSTR(LOWER(Tags), LOWER(:search)), 0) OR COALESCE(INSTR(LOWER(ErrorType), LOWER(:search)), 0)
           OR COALESCE(INSTR(LOWER(ErrorMessage), LOWER(:search)), 0)
FROM Named CROSS JOIN JobsDLQ INDEXED BY IX_JobsDLQ_Failed
WHERE Queue = Name AND FailedAtUtc >= :failed_from AND FailedAtUtc < :failed_until AND (:type IS NULL OR Type = :type)
  AND (:reason IS NULL OR FailureReason = :reason) AND (:status IS NULL OR Status = :status)
  AND (:tag IS NULL OR Tags LIKE :tag ESCAPE '\')
ORDER BY FailedAtUtc DESC, Id DESC LIMIT 10001;
