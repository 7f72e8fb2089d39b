-- RegisterWorker: a process announces itself and gets a counter slot of its own. Called by children and maintenance at boot.
-- Result: its slot: the smallest from 1 on that no live worker has. A repeat answers the slot given before.
-- Table order: Queues, Workers.

-- name: queue
-- Never an override: an existing row stays as operators left it.
INSERT INTO Queues (Name, IsPaused, IsActive, Ticket) VALUES (:queue, 0, 1, 0) ON CONFLICT (Name) DO NOTHING;

-- name: known
SELECT Slot FROM Workers WHERE WorkerId = :worker;

-- name: insert
INSERT INTO Workers
      (WorkerId, Queue, Slot, Host, Pid, Version, MaxWorkers, LastRequest,
       StartedAtUtc, HeartbeatUtc, Running, Buffered, LoopLagMs, MemoryKb)
SELECT :worker, :queue, MIN(Candidate), :host, :pid, :version, :max_workers, 0,
       :now, :now, 0, 0, 0, 0
FROM (SELECT 1 AS Candidate UNION ALL SELECT Slot + 1 FROM Workers WHERE EndedAtUtc IS NULL)
WHERE NOT EXISTS (SELECT 1 FROM Workers WHERE EndedAtUtc IS NULL AND Slot = Candidate)
RETURNING Slot;
