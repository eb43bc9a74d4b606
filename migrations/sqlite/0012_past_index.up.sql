-- The first builds of this project made databases without this index. All others have it since 0001.
CREATE INDEX IF NOT EXISTS kv_past ON kv (resource, namespace, name, superseded_revision)
    WHERE superseded_revision IS NOT NULL;
