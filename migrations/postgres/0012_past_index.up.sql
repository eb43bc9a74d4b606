-- The first builds of this project made databases without this index. All others have it since 0001, and must not wait here
-- for the lock that CREATE INDEX takes even if the index exists.
DO $$
BEGIN
    IF to_regclass('kv_past') IS NULL THEN
        CREATE INDEX kv_past ON kv (resource, namespace, name, superseded_revision, revision)
            WHERE superseded_revision IS NOT NULL;
    END IF;
END
$$;
