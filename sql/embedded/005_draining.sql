-- 005: the embedded twin of sql/schema/005_draining.sql.
-- Serves: programs from version 4 on.
ALTER TABLE Workers ADD COLUMN DrainingAtUtc INTEGER;
