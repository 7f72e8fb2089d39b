-- TakeLeadership: take or renew the maintenance lead. Called by every maintenance process before a pass. Leading only saves work:
-- every step is safe with two leaders.
-- Result: `current` the row before (none for the very first pass).
-- Table order: Leadership.

-- name: current
SELECT Holder, Term, LastPassUtc FROM Leadership WHERE Role = 'maintenance';

-- name: first
INSERT INTO Leadership (Role, Holder, Term, LastPassUtc) VALUES ('maintenance', :holder, 1, :now);

-- name: renew
UPDATE Leadership SET LastPassUtc = :now WHERE Role = 'maintenance' AND Holder = :holder;

-- name: take
UPDATE Leadership SET Holder = :holder, Term = Term + 1, LastPassUtc = :now WHERE Role = 'maintenance';
