-- BrowseJobs: one page of one pillar, in the order of ids or of ends. Called by The Deck. Never reads payloads or headers.
-- The first group finds the jobs that fit among the next :look rows, newest first: (id, end). The ascending order is the same text
-- with its comparisons and orders turned round. `…_end` tells the last of these rows, when there are as many. The last group reads the
-- rows. :tag is a LIKE pattern with `\` as its escape.
-- Result: (id, end) of the jobs found; of `…_rows` the columns of ListJobs, for :ids.
-- Table order: the one pillar asked for.

-- name: hot
SELECT Id, 0 FROM (
    SELECT Id, Queue, Type, Status, Tags FROM JobsHot WHERE Id < :after ORDER BY Id DESC LIMIT :look
)
WHERE (:queue IS NULL OR Queue = :queue) AND (:status IS NULL OR Status = :status) AND (:type IS NULL OR Type = :type)
  AND (:tag IS NULL OR Tags LIKE :tag ESCAPE '\')
  AND (:text IS NULL OR INSTR(LOWER(Id), LOWER(:text)) OR INSTR(LOWER(Type), LOWER(:text)) OR INSTR(LOWER(Tags), LOWER(:text)))
LIMIT :limit;

-- name: hot_end
SELECT Id, 0 FROM JobsHot WHERE Id < :after ORDER BY Id DESC LIMIT 1 OFFSET :look - 1;

-- name: leased
SELECT Id, 0 FROM (
    SELECT Id, Queue, Type, Status, Tags FROM JobsHot INDEXED BY IX_JobsHot_Lease
    WHERE WorkerId IS NOT NULL AND Id < :after ORDER BY Id DESC LIMIT :look
)
WHERE (:queue IS NULL OR Queue = :queue) AND Status = :status AND (:type IS NULL OR Type = :type)
  AND (:tag IS NULL OR Tags LIKE :tag ESCAPE '\')
  AND (:text IS NULL OR INSTR(LOWER(Id), LOWER(:text)) OR INSTR(LOWER(Type), LOWER(:text)) OR INSTR(LOWER(Tags), LOWER(:text)))
LIMIT :limit;

-- name: leased_end
SELECT Id, 0 FROM JobsHot INDEXED BY IX_JobsHot_Lease
WHERE WorkerId IS NOT NULL AND Id < :after ORDER BY Id DESC LIMIT 1 OFFSET :look - 1;

-- name: archive
SELECT Id, 0 FROM (
    SELECT Id, Queue, Type, FinishedAtUtc, Tags FROM JobsArchive WHERE Id < :after ORDER BY Id DESC LIMIT :look
)
WHERE (:queue IS NULL OR Queue = :queue) AND (:status IS NULL OR :status = 3) AND (:type IS NULL OR Type = :type)
  AND (:ended_from IS NULL OR FinishedAtUtc >= :ended_from) AND (:ended_until IS NULL OR FinishedAtUtc < :ended_until)
  AND (:tag IS NULL OR Tags LIKE :tag ESCAPE '\')
  AND (:text IS NULL OR INSTR(LOWER(Id), LOWER(:text)) OR INSTR(LOWER(Type), LOWER(:text)) OR INSTR(LOWER(Tags), LOWER(:text)))
LIMIT :limit;

-- name: archive_end
SELECT Id, 0 FROM JobsArchive WHERE Id < :after ORDER BY Id DESC LIMIT 1 OFFSET :look - 1;

-- name: archive_by_end
SELECT Id, FinishedAtUtc FROM (
    SELECT Id, Type, FinishedAtUtc, Tags FROM JobsArchive INDEXED BY IX_JobsArchive_Finished
    WHERE Queue = :queue AND (FinishedAtUtc, Id) < (:after_ms, :after)
      AND (:ended_from IS NULL OR FinishedAtUtc >= :ended_from) AND (:ended_until IS NULL OR FinishedAtUtc < :ended_until)
    ORDER BY FinishedAtUtc DESC, Id DESC LIMIT :look
)
WHERE (:status IS NULL OR :status = 3) AND (:type IS NULL OR Type = :type) AND (:tag IS NULL OR Tags LIKE :tag ESCAPE '\')
  AND (:text IS NULL OR INSTR(LOWER(Id), LOWER(:text)) OR INSTR(LOWER(Type), LOWER(:text)) OR INSTR(LOWER(Tags), LOWER(:text)))
LIMIT :limit;

-- name: archive_by_end_end
SELECT Id, FinishedAtUtc FROM JobsArchive INDEXED BY IX_JobsArchive_Finished
WHERE Queue = :queue AND (FinishedAtUtc, Id) < (:after_ms, :after)
  AND (:ended_from IS NULL OR FinishedAtUtc >= :ended_from) AND (:ended_until IS NULL OR FinishedAtUtc < :ended_until)
ORDER BY FinishedAtUtc DESC, Id DESC LIMIT 1 OFFSET :look - 1;

-- name: dlq
SELECT Id, 0 FROM (
    SELECT Id, Queue, Type, Status, FailureReason, FailedAtUtc, Tags, ErrorType, ErrorMessage
    FROM JobsDLQ WHERE Id < :after ORDER BY Id DESC LIMIT :look
)
WHERE (:queue IS NULL OR Queue = :queue) AND (:status IS NULL OR Status = :status) AND (:type IS NULL OR Type = :type)
  AND (:ended_from IS NULL OR FailedAtUtc >= :ended_from) AND (:ended_until IS NULL OR FailedAtUtc < :ended_until)
  AND (:reason IS NULL OR FailureReason = :reason) AND (:error_type IS NULL OR ErrorType = :error_type)
  AND (:tag IS NULL OR Tags LIKE :tag ESCAPE '\')
  AND (:text IS NULL OR INSTR(LOWER(Id), LOWER(:text)) OR INSTR(LOWER(Type), LOWER(:text)) OR INSTR(LOWER(Tags), LOWER(:text))
       OR INSTR(LOWER(ErrorType), LOWER(:text)) OR INSTR(LOWER(ErrorMessage), LOWER(:text)))
LIMIT :limit;

-- name: dlq_end
SELECT Id, 0 FROM JobsDLQ WHERE Id < :after ORDER BY Id DESC LIMIT 1 OFFSET :look - 1;

-- name: dlq_by_end
SELECT Id, FailedAtUtc FROM (
    SELECT Id, Type, Status, FailureReason, FailedAtUtc, Tags, ErrorType, ErrorMessage FROM JobsDLQ INDEXED BY IX_JobsDLQ_Failed
    WHERE Queue = :queue AND (FailedAtUtc, Id) < (:after_ms, :after)
      AND (:ended_from IS NULL OR FailedAtUtc >= :ended_from) AND (:ended_until IS NULL OR FailedAtUtc < :ended_until)
    ORDER BY FailedAtUtc DESC, Id DESC LIMIT :look
)
WHERE (:status IS NULL OR Status = :status) AND (:type IS NULL OR Type = :type)
  AND (:reason IS NULL OR FailureReason = :reason) AND (:error_type IS NULL OR ErrorType = :error_type)
  AND (:tag IS NULL OR Tags LIKE :tag ESCAPE '\')
  AND (:text IS NULL OR INSTR(LOWER(Id), LOWER(:text)) OR INSTR(LOWER(Type), LOWER(:text)) OR INSTR(LOWER(Tags), LOWER(:text))
       OR INSTR(LOWER(ErrorType), LOWER(:text)) OR INSTR(LOWER(ErrorMessage), LOWER(:text)))
LIMIT :limit;

-- name: dlq_by_end_end
SELECT Id, FailedAtUtc FROM JobsDLQ INDEXED BY IX_JobsDLQ_Failed
WHERE Queue = :queue AND (FailedAtUtc, Id) < (:after_ms, :after)
  AND (:ended_from IS NULL OR FailedAtUtc >= :ended_from) AND (:ended_until IS NULL OR FailedAtUtc < :ended_until)
ORDER BY FailedAtUtc DESC, Id DESC LIMIT 1 OFFSET :look - 1;

-- name: archive_queues
WITH RECURSIVE Named (Name) AS (
    SELECT MIN(Queue) FROM JobsArchive
    UNION ALL
    SELECT (SELECT MIN(Queue) FROM JobsArchive WHERE Queue > Name) FROM Named WHERE Name IS NOT NULL
)
SELECT Name FROM Named WHERE Name IS NOT NULL;

-- name: dlq_queues
WITH RECURSIVE Named (Name) AS (
    SELECT MIN(Queue) FROM JobsDLQ
    UNION ALL
    SELECT (SELECT MIN(Queue) FROM JobsDLQ WHERE Queue > Name) FROM Named WHERE Name IS NOT NULL
)
SELECT Name FROM Named WHERE Name IS NOT NULL;

-- name: hot_rows
SELECT 'hot', Id, Status, Queue, Type, Priority, AttemptCount, CrashCount, LeaseNumber, CreatedAtUtc, DueAtUtc, StartedAtUtc, NULL,
       NULL, WorkerId, HeartbeatUtc, Progress, Tags, CreatedBy, OwnerLogin, IdempotencyKey, KeyScope, CancelRequestedAtUtc, NULL,
       NULL, NULL
FROM JobsHot WHERE Id IN (SELECT value FROM json_each(:ids));

-- name: archive_rows
SELECT 'archive', Id, 3, Queue, Type, Priority, AttemptCount, CrashCount, LeaseNumber, CreatedAtUtc, DueAtUtc, StartedAtUtc,
       FinishedAtUtc, DurationMs, WorkerId, NULL, Progress, Tags, CreatedBy, OwnerLogin, IdempotencyKey, KeyScope, NULL, NULL, NULL,
       NULL
FROM JobsArchive WHERE Id IN (SELECT value FROM json_each(:ids));

-- name: dlq_rows
SELECT 'dlq', Id, Status, Queue, Type, Priority, AttemptCount, CrashCount, LeaseNumber, CreatedAtUtc, DueAtUtc, StartedAtUtc,
       FailedAtUtc, NULL, WorkerId, NULL, Progress, Tags, CreatedBy, OwnerLogin, IdempotencyKey, KeyScope, CancelRequestedAtUtc,
       FailureReason, ErrorType, ErrorMessage
FROM JobsDLQ WHERE Id IN (SELECT value FROM json_each(:ids));
