-- ReportCircuits: a child tells what has changed about its circuits. Called by the claim lane, at most once a second.
-- Results: `live` the worker's queue and host, no row when it has ended (then nothing is written). `event` comes before `write`: a circuit
-- that has entered another state, or was opened again, leaves one; it begins closed.
-- Table order: Workers, Circuits, CircuitEvents.

-- name: live
SELECT Queue, Host FROM Workers WHERE WorkerId = :worker AND EndedAtUtc IS NULL;

-- name: event
INSERT INTO CircuitEvents (TypeKey, AtUtc, FromState, ToState, WorkerId, Host, Queue, Failures, LastError)
SELECT s.TypeKey, s.ChangedAtUtc, COALESCE(c.State, 0), s.State, s.WorkerId, :host, s.Queue,
       CASE WHEN s.State = 0 THEN c.Failures ELSE s.Failures END, s.LastError
FROM (SELECT :worker AS WorkerId, :type AS TypeKey, :queue AS Queue, :state AS State, :failures AS Failures,
             :generation AS Generation, :changed AS ChangedAtUtc, :error AS LastError) AS s
LEFT JOIN Circuits AS c ON c.WorkerId = s.WorkerId AND c.TypeKey = s.TypeKey
WHERE s.State <> COALESCE(c.State, 0) OR (s.State = 1 AND s.Generation <> c.Generation);

-- name: write
INSERT INTO Circuits (WorkerId, TypeKey, Queue, State, Failures, Generation, ChangedAtUtc, NextProbeUtc, LastError)
VALUES (:worker, :type, :queue, :state, :failures, :generation, :changed, :probe, :error)
ON CONFLICT (WorkerId, TypeKey) DO UPDATE
SET State = excluded.State, Failures = excluded.Failures, Generation = excluded.Generation, ChangedAtUtc = excluded.ChangedAtUtc,
    NextProbeUtc = excluded.NextProbeUtc, LastError = excluded.LastError;
