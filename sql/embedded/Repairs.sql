-- Repairs: what the operators' repairs (ResurrectJobs, DropJobs, PurgeJobs, EditJob, DrainWorker) share. Called by them, inside their
-- write transaction. The other store has no such file: there each procedure carries these statements itself.
-- Results: `done_before` what an earlier try of the same call did; `stands` where each job stands now.
-- Table order: JobsHot, JobsArchive, JobsDLQ, AuditLog.

-- name: done_before
SELECT Target FROM AuditLog
WHERE Target IN (SELECT value FROM json_each(:ids)) AND RequestId = :request AND Action = :action;

-- name: stands
SELECT Id, Status FROM JobsHot WHERE Id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT Id, 3 FROM JobsArchive WHERE Id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT Id, Status FROM JobsDLQ WHERE Id IN (SELECT value FROM json_each(:ids));

-- name: audit
INSERT INTO AuditLog (AtUtc, Actor, Action, Target, Reason, BeforeState, AfterState, RequestId)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8);
