-- A server may keep copies of live values outside of the database, for a quicker start. kv_meta
-- has a key for each ('copies'). Where a live row is changed in place, or deleted, none
-- of them holds any more. Servers do neither: a write is a new row.
CREATE TRIGGER IF NOT EXISTS kv_changed_in_place
    AFTER UPDATE OF revision, resource, namespace, name, created_revision, value ON kv
    WHEN old.superseded_revision IS NULL
BEGIN
    DELETE FROM kv_meta WHERE key = 'copies';
END;

CREATE TRIGGER IF NOT EXISTS kv_removed_live
    AFTER DELETE ON kv
    WHEN old.superseded_revision IS NULL
BEGIN
    DELETE FROM kv_meta WHERE key = 'copies';
END;
