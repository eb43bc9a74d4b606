-- Cluster state for people with sqlite3. value is the object as JSON text, without
-- its resourceVersion (that is revision), or NULL where the stored bytes are no JSON.
DROP VIEW IF EXISTS objects;
CREATE VIEW objects AS
SELECT resource,
       namespace,
       name,
       revision,
       created_revision,
       CASE WHEN json_valid(CAST(value AS TEXT)) THEN CAST(value AS TEXT) ->> '$.metadata.uid' END AS uid,
       CASE WHEN json_valid(CAST(value AS TEXT)) THEN coalesce(CAST(value AS TEXT) -> '$.metadata.labels', '{}') END AS labels,
       strftime('%Y-%m-%dT%H:%M:%fZ', written_at / 1000000.0, 'unixepoch') AS written_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', expires_at / 1000000.0, 'unixepoch') AS expires_at,
       length(CAST(value AS BLOB)) AS bytes,
       CASE WHEN json_valid(CAST(value AS TEXT)) THEN CAST(value AS TEXT) END AS value
FROM kv
WHERE superseded_revision IS NULL;

-- Every write that is still kept, and what is live. change is create, update or
-- delete; the value of a delete is the object's last state. A row held from
-- written_at (revision) until superseded_revision.
DROP VIEW IF EXISTS history;
CREATE VIEW history AS
SELECT resource,
       namespace,
       name,
       revision,
       created_revision,
       superseded_revision,
       CASE WHEN deleted THEN 'delete' WHEN revision = created_revision THEN 'create' ELSE 'update' END AS change,
       CASE WHEN json_valid(CAST(value AS TEXT)) THEN CAST(value AS TEXT) ->> '$.metadata.uid' END AS uid,
       CASE WHEN json_valid(CAST(value AS TEXT)) THEN coalesce(CAST(value AS TEXT) -> '$.metadata.labels', '{}') END AS labels,
       strftime('%Y-%m-%dT%H:%M:%fZ', written_at / 1000000.0, 'unixepoch') AS written_at,
       length(CAST(value AS BLOB)) AS bytes,
       CASE WHEN json_valid(CAST(value AS TEXT)) THEN CAST(value AS TEXT) END AS value
FROM kv;
