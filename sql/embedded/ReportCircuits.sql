-- ReportCircuits: a child tells what has changed about its circuits. Called by the claim lane, at most once a second.
-- Results: `live` the worker's queue, no row when it has ended (then nothing is written).
-- Table order: Workers, Circuits.

-- name: live
SELECT Queue FROM Workers WHERE WorkerId = :worker AND EndedAtUtc IS NULL;

-- name: write
INSERT INTO Circuits (WorkerId, TypeKey, Queue, State, Failures, Generation, ChangedAtUtc, NextProbeUtc, LastError)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (WorkerId, TypeKey) DO UPDATE
SET State = excluded.State, Failures = excluded.Failures, Generation = excluded.Generation, ChangedAtUtc = excluded.ChangedAtUtc,
    NextProbeUtc = excluded.NextProbeUtc, LastError = excluded.LastError;
