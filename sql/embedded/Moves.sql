-- Moves: the steps that several operations share, so that each stands once: out of Hot, into the DLQ, back to Pending, counted.
-- Each operation has matched its fence (id, lease, status) in the same write transaction before; none is called on its own.
-- The other store has no such file: there each procedure carries these statements itself.
-- Table order: JobsHot, JobsDLQ, CancelRequests, JobAttempts, MetricBuckets.

-- name: to_dlq
-- :jobs is a document of [id, status, reason, crash count, error type, error message, modified by].
-- A row of the same id that a manual repair left there gives way: it must not keep its job in Hot for ever.
INSERT OR REPLACE INTO JobsDLQ
      (Id, Queue, Type, Status, FailureReason,
       Priority, DueAtUtc, LeaseNumber, AttemptCount, CrashCount, WorkerId,
       StartedAtUtc, FailedAtUtc, CancelRequestedAtUtc, Progress, CreatedAtUtc, ScheduledAtUtc, AgeFromUtc,
       KeyScope, PayloadHash, IdempotencyKey, OwnerLogin, CreatedBy, Tags,
       ErrorType, ErrorMessage, LastModifiedBy, Headers, Payload)
SELECT h.Id, h.Queue, h.Type, g.Status, g.Reason,
       h.Priority, h.DueAtUtc, h.LeaseNumber, h.AttemptCount, g.Crashes, h.WorkerId,
       h.StartedAtUtc, :now, h.CancelRequestedAtUtc, h.Progress, h.CreatedAtUtc, h.ScheduledAtUtc, h.AgeFromUtc,
       h.KeyScope, h.PayloadHash, h.IdempotencyKey, h.OwnerLogin, h.CreatedBy, h.Tags,
       g.ErrorType, g.ErrorMessage, g.ModifiedBy, h.Headers, h.Payload
FROM (SELECT value ->> 0 AS JobId, value ->> 1 AS Status, value ->> 2 AS Reason, value ->> 3 AS Crashes,
             value ->> 4 AS ErrorType, value ->> 5 AS ErrorMessage, value ->> 6 AS ModifiedBy
      FROM json_each(:jobs)) AS g
CROSS JOIN JobsHot AS h ON h.Id = g.JobId;

-- name: leave_hot
-- :jobs is the document of `to_dlq`.
DELETE FROM JobsHot WHERE Id IN (SELECT value ->> 0 FROM json_each(:jobs));

-- name: to_pending
-- :jobs is a document of [id, due, attempt count, crash count].
UPDATE JobsHot
SET Status = 0, IsReady = g.Due <= :now, DueAtUtc = g.Due, AttemptCount = g.Attempts, CrashCount = g.Crashes, WorkerId = NULL,
    FetchRequest = NULL, HeartbeatUtc = NULL, StartedAtUtc = NULL
FROM (SELECT value ->> 0 AS JobId, value ->> 1 AS Due, value ->> 2 AS Attempts, value ->> 3 AS Crashes
      FROM json_each(:jobs)) AS g
WHERE Id = g.JobId;

-- name: forget_cancels
-- A request ends when its job leaves Processing, wherever it goes. :jobs is a document of [id, lease].
DELETE FROM CancelRequests WHERE (JobId, LeaseNumber) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:jobs));

-- name: attempt
INSERT INTO JobAttempts (JobId, LeaseNumber, AtUtc, WorkerId, FailureReason, ErrorType, ErrorMessage, Trace)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (JobId, LeaseNumber) DO NOTHING;

-- name: count
INSERT INTO MetricBuckets
      (Slot, Seconds, StartUtc, Queue, Outcome, FailureReason, JobCount, DurationMs, MaxDurationMs,
       Lag0, Lag1, Lag2, Lag3, Lag4, Lag5, Lag6, Lag7, Lag8, Lag9, Lag10, Lag11)
VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,
        ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)
ON CONFLICT (Slot, Seconds, StartUtc, Queue, Outcome, FailureReason) DO UPDATE
SET JobCount = JobCount + excluded.JobCount, DurationMs = DurationMs + excluded.DurationMs,
    MaxDurationMs = MAX(MaxDurationMs, excluded.MaxDurationMs),
    Lag0 = Lag0 + excluded.Lag0, Lag1 = Lag1 + excluded.Lag1, Lag2  = Lag2  + excluded.Lag2,  Lag3  = Lag3  + excluded.Lag3,
    Lag4 = Lag4 + excluded.Lag4, Lag5 = Lag5 + excluded.Lag5, Lag6  = Lag6  + excluded.Lag6,  Lag7  = Lag7  + excluded.Lag7,
    Lag8 = Lag8 + excluded.Lag8, Lag9 = Lag9 + excluded.Lag9, Lag10 = Lag10 + excluded.Lag10, Lag11 = Lag11 + excluded.Lag11;
