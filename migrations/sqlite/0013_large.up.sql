-- A large value is stored in pieces, which servers write before the row, in short transactions. value of the row in kv is
-- then an integer, kv_large.id, and not a BLOB. SQLite would write a value again with each change of its row.
--
-- revision: of the row that has the value. NULL: of none yet; its server is writing it, or has died. 0: of none any more;
-- its pieces are being deleted. begun_at: microseconds since 1970.
CREATE TABLE IF NOT EXISTS kv_large (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    revision INTEGER,
    begun_at INTEGER NOT NULL
);

CREATE INDEX IF NOT EXISTS kv_large_revision ON kv_large (revision);

-- The pieces of a value in their order, from 0.
CREATE TABLE IF NOT EXISTS kv_pieces (
    large INTEGER NOT NULL,
    piece INTEGER NOT NULL,
    data  BLOB    NOT NULL,
    PRIMARY KEY (large, piece)
);

-- The rows of kv with whole values. Text is put together byte by byte, so that a piece may end within a character.
DROP VIEW IF EXISTS objects;
DROP VIEW IF EXISTS history;
DROP VIEW IF EXISTS kv_whole;
CREATE VIEW kv_whole AS
SELECT revision,
       resource,
       namespace,
       name,
       created_revision,
       superseded_revision,
       deleted,
       expires_at,
       written_at,
       CASE WHEN typeof(value) = 'integer' THEN (SELECT coalesce(sum(length(data)), 0) FROM kv_pieces WHERE large = kv.value)
            ELSE length(CAST(value AS BLOB)) END AS bytes,
       CASE WHEN typeof(value) = 'integer' THEN (SELECT CAST(coalesce(group_concat(CAST(data AS TEXT), ''), '') AS BLOB)
                                                 FROM (SELECT data FROM kv_pieces WHERE large = kv.value ORDER BY piece))
            ELSE value END AS value
FROM kv;

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
       bytes,
       CASE WHEN json_valid(CAST(value AS TEXT)) THEN CAST(value AS TEXT) END AS value,
       sealed IS NOT NULL AS encrypted,
       substr(sealed, 1, instr(sealed, ':') + instr(substr(sealed, instr(sealed, ':') + 1), ':') - 1) AS encryption_key
FROM (SELECT *, CASE WHEN substr(CAST(value AS BLOB), 1, 14) = x'726f776c6f636b3a656e633a313a' THEN CAST(substr(CAST(value AS BLOB), 15, 4096) AS TEXT) END AS sealed
      FROM kv_whole)
WHERE superseded_revision IS NULL;

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
       bytes,
       CASE WHEN json_valid(CAST(value AS TEXT)) THEN CAST(value AS TEXT) END AS value,
       sealed IS NOT NULL AS encrypted,
       substr(sealed, 1, instr(sealed, ':') + instr(substr(sealed, instr(sealed, ':') + 1), ':') - 1) AS encryption_key
FROM (SELECT *, CASE WHEN substr(CAST(value AS BLOB), 1, 14) = x'726f776c6f636b3a656e633a313a' THEN CAST(substr(CAST(value AS BLOB), 15, 4096) AS TEXT) END AS sealed
      FROM kv_whole)
UNION ALL
SELECT resource,
       namespace,
       name,
       revision,
       created_revision,
       superseded_revision,
       CASE WHEN deleted THEN 'delete' WHEN revision = created_revision THEN 'create' ELSE 'update' END,
       value ->> '$.metadata.uid',
       CASE WHEN value IS NOT NULL THEN coalesce(value -> '$.metadata.labels', '{}') END,
       strftime('%Y-%m-%dT%H:%M:%fZ', written_at / 1000000.0, 'unixepoch'),
       bytes,
       value,
       sealed IS NOT NULL,
       sealed
FROM kv_unpacked;
