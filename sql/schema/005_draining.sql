-- 005: since when a worker claims no more. Immutable once released. Programs from version 4 on work with it: they leave it null.
SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- Null: it claims. Told by the worker itself; DrainAtUtc, an operator's wish, comes before it.
ALTER TABLE chokaq.Workers ADD DrainingAtUtc datetime2(3) NULL;
GO
