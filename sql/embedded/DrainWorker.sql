-- DrainWorker: ask a worker to end once its replacement is there; its next fetch tells it. Called by operators.
-- Results: `worker` its queue, when it ended and when it was asked. An earlier try and the audit row: see Repairs.sql.
-- Table order: Workers, AuditLog.

-- name: worker
SELECT Queue, EndedAtUtc, DrainAtUtc FROM Workers WHERE WorkerId = :worker;

-- name: drain
UPDATE Workers SET DrainAtUtc = :now WHERE WorkerId = :worker;
