-- One row for each write of each object. A row holds from revision until
-- superseded_revision. Times are microseconds since 1970, UTC.
CREATE TABLE IF NOT EXISTS kv (
    revision            INTEGER PRIMARY KEY,
    resource            TEXT    NOT NULL,
    namespace           TEXT    NOT NULL,
    name                TEXT    NOT NULL,
    created_revision    INTEGER NOT NULL,
    superseded_revision INTEGER,
    deleted             INTEGER NOT NULL DEFAULT 0,
    value               BLOB    NOT NULL,
    expires_at          INTEGER,
    written_at          INTEGER NOT NULL
);

-- Live objects in key order: compare-and-swap, lists, and the second guard of
-- one live row for each key.
CREATE UNIQUE INDEX IF NOT EXISTS kv_live ON kv (resource, namespace, name)
    WHERE superseded_revision IS NULL;

-- Ended rows by the revision that ended them: compaction, snapshots a little way
-- back, previous values.
CREATE INDEX IF NOT EXISTS kv_ended ON kv (superseded_revision)
    WHERE superseded_revision IS NOT NULL;

-- Ended rows by key: the state of one key, or of a page of keys, at a revision
-- far back, at a cost that does not depend on how much was written since.
CREATE INDEX IF NOT EXISTS kv_past ON kv (resource, namespace, name, superseded_revision)
    WHERE superseded_revision IS NOT NULL;

-- Live rows that will expire.
CREATE INDEX IF NOT EXISTS kv_expiring ON kv (expires_at)
    WHERE expires_at IS NOT NULL AND superseded_revision IS NULL;

-- revision: the newest revision. floor: the highest compacted one.
-- cluster_id: made once. batch: marks the last batch (see Resolve).
-- schema_compatible: the oldest schema version whose binaries may use this database.
CREATE TABLE IF NOT EXISTS kv_meta (
    key   TEXT PRIMARY KEY,
    value NOT NULL
) WITHOUT ROWID;

INSERT INTO kv_meta (key, value) VALUES
    ('revision', 0),
    ('floor', 0),
    ('cluster_id', lower(hex(randomblob(16)))),
    ('batch', ''),
    ('schema_compatible', 1)
ON CONFLICT (key) DO NOTHING;
