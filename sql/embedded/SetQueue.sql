-- SetQueue: write the operators' overrides of a queue, with an AuditLog row holding before and after. Called by operators.
-- Result: `current` the overrides; the caller lays the change over them and writes all of them with `write`.
-- Table order: Queues, AuditLog.

-- name: current
SELECT MaxWorkers, FleetMaxWorkers, ExecutionTimeoutMs, ZombieTimeoutMs, IsPaused, IsActive FROM Queues WHERE Name = :queue;

-- name: write
INSERT INTO Queues (Name, MaxWorkers, FleetMaxWorkers, ExecutionTimeoutMs, ZombieTimeoutMs, IsPaused, IsActive, Ticket, UpdatedAtUtc,
                    UpdatedBy)
VALUES (:queue, :max_workers, :fleet_max_workers, :execution_timeout_ms, :zombie_timeout_ms, :paused, :active, 0, :now, :actor)
ON CONFLICT (Name) DO UPDATE
SET MaxWorkers = excluded.MaxWorkers, FleetMaxWorkers = excluded.FleetMaxWorkers, ExecutionTimeoutMs = excluded.ExecutionTimeoutMs,
    ZombieTimeoutMs = excluded.ZombieTimeoutMs, IsPaused = excluded.IsPaused, IsActive = excluded.IsActive,
    UpdatedAtUtc = excluded.UpdatedAtUtc, UpdatedBy = excluded.UpdatedBy;

-- name: audit
INSERT INTO AuditLog (AtUtc, Actor, Action, Target, Reason, BeforeState, AfterState)
VALUES (:now, :actor, 'set_queue', :queue, :reason, :before, :after);
