-- A server may keep copies of live values outside of the database, for a quicker start. kv_meta
-- has a key for each ('copies'). Where a live row is changed in place, or deleted, none
-- of them holds any more. Servers do neither: a write is a new row. The row of the keys stays locked until
-- the change is committed, also where it has no keys, so that a server that begins anew with them waits.
CREATE OR REPLACE FUNCTION kv_copies_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('INSERT INTO %I.kv_meta (key) VALUES (''copies'') ON CONFLICT (key) DO UPDATE SET word = '''' WHERE kv_meta.word <> ''''', TG_TABLE_SCHEMA);
    RETURN NULL;
END
$$;

DO $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'kv'::regclass AND tgname = 'kv_changed_in_place') THEN
        CREATE TRIGGER kv_changed_in_place
            AFTER UPDATE OF revision, resource, namespace, name, created_revision, value ON kv
            FOR EACH ROW WHEN (old.superseded_revision IS NULL) EXECUTE FUNCTION kv_copies_end();
    END IF;
    IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'kv'::regclass AND tgname = 'kv_removed_live') THEN
        CREATE TRIGGER kv_removed_live
            AFTER DELETE ON kv
            FOR EACH ROW WHEN (old.superseded_revision IS NULL) EXECUTE FUNCTION kv_copies_end();
    END IF;
    IF NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = 'kv'::regclass AND tgname = 'kv_removed_all') THEN
        CREATE TRIGGER kv_removed_all
            AFTER TRUNCATE ON kv
            FOR EACH STATEMENT EXECUTE FUNCTION kv_copies_end();
    END IF;
END
$$;

INSERT INTO kv_meta (key) VALUES ('copies') ON CONFLICT (key) DO NOTHING;
