-- One row for each write of each object. A row holds from revision until
-- superseded_revision. Keys compare bytewise, whatever the database's locale.
CREATE TABLE IF NOT EXISTS kv (
    revision            bigint      PRIMARY KEY,
    resource            text        COLLATE "C" NOT NULL,
    namespace           text        COLLATE "C" NOT NULL,
    name                text        COLLATE "C" NOT NULL,
    created_revision    bigint      NOT NULL,
    superseded_revision bigint,
    deleted             boolean     NOT NULL DEFAULT false,
    value               bytea       NOT NULL,
    expires_at          timestamptz,
    written_at          timestamptz NOT NULL
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
CREATE INDEX IF NOT EXISTS kv_past ON kv (resource, namespace, name, superseded_revision, revision)
    WHERE superseded_revision IS NOT NULL;

-- Live rows that will expire.
CREATE INDEX IF NOT EXISTS kv_expiring ON kv (expires_at)
    WHERE expires_at IS NOT NULL AND superseded_revision IS NULL;

-- revision: the newest revision; its row is the lock of all writers.
-- floor: the highest compacted revision. cluster_id: made once.
-- schema_compatible: the oldest schema version whose binaries may use this database.
-- batch:*: the last batch of each server (see Resolve).
CREATE TABLE IF NOT EXISTS kv_meta (
    key    text   PRIMARY KEY,
    number bigint NOT NULL DEFAULT 0,
    word   text   NOT NULL DEFAULT ''
);

INSERT INTO kv_meta (key, number, word) VALUES
    ('revision', 0, ''),
    ('floor', 0, ''),
    ('schema_compatible', 1, ''),
    ('cluster_id', 0, md5(random()::text || clock_timestamp()::text))
ON CONFLICT (key) DO NOTHING;

-- Who does what one server alone may do, until when by the database's clock.
CREATE TABLE IF NOT EXISTS kv_lead (
    name   text        PRIMARY KEY,
    holder text        NOT NULL,
    until  timestamptz NOT NULL
);
