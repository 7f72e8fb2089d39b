-- DropJobs: DLQ (Failed, Cancelled, Zombie) -> Dropped; why it failed stays readable, the state before stands in AuditLog. Called by
-- operators.
-- Results: `stopped` those that may be dropped, in Id order, with their state. The rest: see Repairs.sql.
-- Table order: JobsDLQ, AuditLog.

-- name: stopped
SELECT Id, Status FROM JobsDLQ WHERE Id IN (SELECT value FROM json_each(:ids)) AND Status IN (4, 5, 6) ORDER BY Id;

-- name: drop
UPDATE JobsDLQ SET Status = 7, LastModifiedBy = :actor WHERE Id IN (SELECT value FROM json_each(:ids));
