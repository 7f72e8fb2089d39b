-- ListJobs: one page of one pillar, newest first by id. Called by operators. Never reads payloads or headers.
-- `leased` is `hot` for Fetched and Processing: it looks at the leases only, not at everything that waits.
-- :search looks at the newest 10,000 jobs that fit the rest of the filter; :failed_from and :failed_until mean the DLQ alone.
-- Result: the columns of GetJob without payload, headers and note. :tag is a LIKE pattern with `\` as its escape.
-- Table order: the one pillar asked for.

-- name: hot
SELECT 'hot', Id, Status, Queue, Type, Priority, AttemptCount, CrashCount, LeaseNumber, CreatedAtUtc, DueAtUtc, StartedAtUtc, NULL,
       NULL, WorkerId, HeartbeatUtc, Progress, Tags, CreatedBy, OwnerLogin, IdempotencyKey, KeyScope, CancelRequestedAtUtc, NULL,
       NULL, NULL
FROM JobsHot
WHERE Id < COALESCE(:after, '~') AND (:queue IS NULL OR Queue = :queue) AND (:status IS NULL OR Status = :status)
  AND (:type IS NULL OR Type = :type) AND :reason IS NULL AND (:tag IS NULL OR Tags LIKE :tag ESCAPE '\')
  AND :failed_from IS NULL AND :failed_until IS NULL
  AND (:search IS NULL OR INSTR(LOWER(Id), LOWER(:search)) OR INSTR(LOWER(Type), LOWER(:search)) OR INSTR(LOWER(Tags), LOWER(:search)))
  AND (:search IS NULL OR Id >= (
      SELECT MIN(Id) FROM (
          SELECT Id FROM JobsHot
          WHERE (:queue IS NULL OR Queue = :queue) AND (:status IS NULL OR Status = :status)
            AND (:type IS NULL OR Type = :type) AND :reason IS NULL AND (:tag IS NULL OR Tags LIKE :tag ESCAPE '\')
            AND :failed_from IS NULL AND :failed_until IS NULL
          ORDER BY Id DESC LIMIT 10000)))
ORDER BY Id DESC LIMIT :limit;

-- name: leased
SELECT 'hot', Id, Status, Queue, Type, Priority, AttemptCount, CrashCount, LeaseNumber, CreatedAtUtc, DueAtUtc, StartedAtUtc, NULL,
       NULL, WorkerId, HeartbeatUtc, Progress, Tags, CreatedBy, OwnerLogin, IdempotencyKey, KeyScope, CancelRequestedAtUtc, NULL,
       NULL, NULL
FROM JobsHot INDEXED BY IX_JobsHot_Lease
WHERE WorkerId IS NOT NULL AND Id < COALESCE(:after, '~') AND (:queue IS NULL OR Queue = :queue) AND Status = :status
  AND (:type IS NULL OR Type = :type) AND :reason IS NULL AND (:tag IS NULL OR Tags LIKE :tag ESCAPE '\')
  AND :failed_from IS NULL AND :failed_until IS NULL
  AND (:search IS NULL OR INSTR(LOWER(Id), LOWER(:search)) OR INSTR(LOWER(Type), LOWER(:search)) OR INSTR(LOWER(Tags), LOWER(:search)))
ORDER BY Id DESC LIMIT :limit;

-- name: archive
SELECT 'archive', Id, 3, Queue, Type, Priority, AttemptCount, CrashCount, LeaseNumber, CreatedAtUtc, DueAtUtc, StartedAtUtc,
       FinishedAtUtc, DurationMs, WorkerId, NULL, Progress, Tags, CreatedBy, OwnerLogin, IdempotencyKey, KeyScope, NULL, NULL, NULL,
       NULL
FROM JobsArchive
WHERE Id < COALESCE(:after, '~') AND (:queue IS NULL OR Queue = :queue) AND (:status IS NULL OR :status = 3)
  AND (:type IS NULL OR Type = :type) AND :reason IS NULL AND (:tag IS NULL OR Tags LIKE :tag ESCAPE '\')
  AND :failed_from IS NULL AND :failed_until IS NULL
  AND (:search IS NULL OR INSTR(LOWER(Id), LOWER(:search)) OR INSTR(LOWER(Type), LOWER(:search)) OR INSTR(LOWER(Tags), LOWER(:search)))
  AND (:search IS NULL OR Id >= (
      SELECT MIN(Id) FROM (
          SELECT Id FROM JobsArchive
          WHERE (:queue IS NULL OR Queue = :queue) AND (:status IS NULL OR :status = 3)
            AND (:type IS NULL OR Type = :type) AND :reason IS NULL AND (:tag IS NULL OR Tags LIKE :tag ESCAPE '\')
            AND :failed_from IS NULL AND :failed_until IS NULL
          ORDER BY Id DESC LIMIT 10000)))
ORDER BY Id DESC LIMIT :limit;

-- name: dlq
SELECT 'dlq', Id, Status, Queue, Type, Priority, AttemptCount, CrashCount, LeaseNumber, CreatedAtUtc, DueAtUtc, StartedAtUtc,
       FailedAtUtc, NULL, WorkerId, NULL, Progress, Tags, CreatedBy, OwnerLogin, IdempotencyKey, KeyScope, CancelRequestedAtUtc,
       FailureReason, ErrorType, ErrorMessage
FROM JobsDLQ
WHERE Id < COALESCE(:after, '~') AND (:queue IS NULL OR Queue = :queue) AND (:status IS NULL OR Status = :status)
  AND (:type IS NULL OR Type = :type) AND (:reason IS NULL OR FailureReason = :reason)
  AND (:tag IS NULL OR Tags LIKE :tag ESCAPE '\')
  AND (:failed_from IS NULL OR FailedAtUtc >= :failed_from) AND (:failed_until IS NULL OR FailedAtUtc < :failed_until)
  AND (:search IS NULL OR INSTR(LOWER(Id), LOWER(:search)) OR INSTR(LOWER(Type), LOWER(:search)) OR INSTR(LOWER(Tags), LOWER(:search))
       OR INSTR(LOWER(ErrorType), LOWER(:search)) OR INSTR(LOWER(ErrorMessage), LOWER(:search)))
  AND (:search IS NULL OR Id >= (
      SELECT MIN(Id) FROM (
          SELECT Id FROM JobsDLQ
          WHERE (:queue IS NULL OR Queue = :queue) AND (:status IS NULL OR Status = :status)
            AND (:type IS NULL OR Type = :type) AND (:reason IS NULL OR FailureReason = :reason)
            AND (:tag IS NULL OR Tags LIKE :tag ESCAPE '\')
            AND (:failed_from IS NULL OR FailedAtUtc >= :failed_from) AND (:failed_until IS NULL OR FailedAtUtc < :failed_until)
          ORDER BY Id DESC LIMIT 10000)))
ORDER BY Id DESC LIMIT :limit;
