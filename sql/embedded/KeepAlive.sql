-- KeepAlive: renew the leases of one worker, from the claim on, with progress, notes and the worker's live figures. Called by the
-- pulse lane. :beats is a document of [id, lease, progress or null].
-- Results: the ids renewed; the cancellations meant for this worker.
-- Table order: Workers, JobsHot, CancelRequests, JobNotes.

-- name: worker
UPDATE Workers
SET HeartbeatUtc = :now, Running = :running, Buffered = :buffered, LoopLagMs = :loop_lag_ms, MemoryKb = :memory_kb,
    DrainingAtUtc = CASE WHEN :draining THEN COALESCE(DrainingAtUtc, :now) END
WHERE WorkerId = :worker AND EndedAtUtc IS NULL;

-- name: beat
UPDATE JobsHot
SET HeartbeatUtc = :now, Progress = COALESCE(g.Percent, Progress)
FROM (SELECT value ->> 0 AS JobId, value ->> 1 AS Lease, value ->> 2 AS Percent FROM json_each(:beats)) AS g
WHERE Id = g.JobId AND LeaseNumber = g.Lease AND Status IN (1, 2)
RETURNING Id, LeaseNumber;

-- name: note
INSERT INTO JobNotes (JobId, Note, NotedAtUtc) VALUES (?1, ?2, ?3)
ON CONFLICT (JobId) DO UPDATE SET Note = excluded.Note, NotedAtUtc = excluded.NotedAtUtc;

-- name: cancellations
SELECT JobId, LeaseNumber, Actor, Reason FROM CancelRequests WHERE WorkerId = :worker ORDER BY JobId;
