-- Compaction leaves a dead row for each row that is written. With the default a fifth
-- of the table must be dead before its space is used again, here a fiftieth. Settings
-- that an operator made stay; databases that know none of these go without. It waits
-- for no reader or writer: the lock is the one that VACUUM takes.
DO $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_class WHERE oid = 'kv'::regclass AND reloptions::text LIKE '%autovacuum_vacuum_%') THEN
        EXECUTE 'ALTER TABLE kv SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1)';
    END IF;
EXCEPTION WHEN syntax_error OR feature_not_supported OR invalid_parameter_value THEN
    NULL;
END
$$;
