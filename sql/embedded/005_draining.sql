-- 005: the embedded twin of sql/schema/005_draining.sql.
ALTER TABLE Workers ADD COLUMN DrainingAtUtc INTEGER;
