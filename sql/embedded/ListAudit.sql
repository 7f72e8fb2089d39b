-- ListAudit: operators' actions, newest first, of one target (a job id or a queue name) or of all. Called by operators.
-- Result: one row per action; page on with the smallest id seen.
-- Table order: AuditLog.

-- name: all
SELECT AuditId, AtUtc, Actor, Action, Target, Reason, BeforeState, AfterState
FROM AuditLog WHERE :after IS NULL OR AuditId < :after ORDER BY AuditId DESC LIMIT :limit;

-- name: target
SELECT AuditId, AtUtc, Actor, Action, Target, Reason, BeforeState, AfterState
FROM AuditLog WHERE Target = :target AND (:after IS NULL OR AuditId < :after) ORDER BY AuditId DESC LIMIT :limit;
