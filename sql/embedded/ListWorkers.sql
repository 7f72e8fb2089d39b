-- ListWorkers: the registry of processes with their live figures, newest first, at most 1,000. Called by operators and readers.
-- Result: one row per worker; those that have ended only when :ended is 1.
-- Table order: Workers.

-- name: list
SELECT WorkerId, Queue, Host, Pid, Version, Slot, MaxWorkers, StartedAtUtc, HeartbeatUtc,
       EndedAtUtc, EndedCause, Running, Buffered, LoopLagMs, MemoryKb, DrainAtUtc
FROM Workers
WHERE :ended OR EndedAtUtc IS NULL
ORDER BY StartedAtUtc DESC, WorkerId DESC LIMIT 1000;
