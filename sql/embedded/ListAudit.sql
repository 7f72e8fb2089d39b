-- ListAudit: operators' actions, newest first: all, or those on one target (a job id or the name of a queue, worker or job type), of one
-- actor or of one kind, the last two in ASCII letters of either case. Called by operators.
-- Result: one row per action; page on with the smallest id seen.
-- Table order: AuditLog.

-- name: all
SELECT AuditId, AtUtc, Actor, Action, Target, Reason, BeforeState, AfterState
FROM AuditLog WHERE AuditId < :after ORDER BY AuditId DESC LIMIT :limit;

-- name: target
SELECT AuditId, AtUtc, Actor, Action, Target, Reason, BeforeState, AfterState
FROM AuditLog INDEXED BY IX_AuditLog_Target WHERE Target = :target AND AuditId < :after ORDER BY AuditId DESC LIMIT :limit;

-- name: actor
SELECT AuditId, AtUtc, Actor, Action, Target, Reason, BeforeState, AfterState
FROM AuditLog INDEXED BY IX_AuditLog_Actor
WHERE Actor = :actor COLLATE NOCASE AND AuditId < :after ORDER BY AuditId DESC LIMIT :limit;

-- name: action
SELECT AuditId, AtUtc, Actor, Action, Target, Reason, BeforeState, AfterState
FROM AuditLog INDEXED BY IX_AuditLog_Action
WHERE Action = :action COLLATE NOCASE AND AuditId < :after ORDER BY AuditId DESC LIMIT :limit;
