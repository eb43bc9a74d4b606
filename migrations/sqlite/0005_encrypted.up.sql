-- The views say which values are encrypted, and by which key of which provider
-- ("aescbc:key1"). What lies in the table begins with rowlock:enc:1:PROVIDER:KEYNAME:
-- then; of the object nothing can be seen. Bytes are compared as such, because text
-- ends at a zero byte.
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
       CASE WHEN json_valid(CAST(value AS TEXT)) THEN CAST(value AS TEXT) END AS value,
       sealed IS NOT NULL AS encrypted,
       substr(sealed, 1, instr(sealed, ':') + instr(substr(sealed, instr(sealed, ':') + 1), ':') - 1) AS encryption_key
FROM (SELECT *, CASE WHEN substr(CAST(value AS BLOB), 1, 14) = x'726f776c6f636b3a656e633a313a' THEN CAST(substr(CAST(value AS BLOB), 15, 4096) AS TEXT) END AS sealed
      FROM kv)
WHERE superseded_revision IS NULL;

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
       CASE WHEN json_valid(CAST(value AS TEXT)) THEN CAST(value AS TEXT) END AS value,
       sealed IS NOT NULL AS encrypted,
       substr(sealed, 1, instr(sealed, ':') + instr(substr(sealed, instr(sealed, ':') + 1), ':') - 1) AS encryption_key
FROM (SELECT *, CASE WHEN substr(CAST(value AS BLOB), 1, 14) = x'726f776c6f636b3a656e633a313a' THEN CAST(substr(CAST(value AS BLOB), 15, 4096) AS TEXT) END AS sealed
      FROM kv);
