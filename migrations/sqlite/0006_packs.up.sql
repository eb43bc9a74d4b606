-- Past states of one object, put together: consecutive rows of kv of one life of it,
-- which ended longer ago than the log reaches back. first_revision is that of the first of them,
-- until_revision that which ended the last. deleted: the last records a delete. Times
-- are microseconds since 1970, UTC.
--
-- value is JSON: {"base": the value of the first row as text, "rows": [[revision - first_revision,
-- written - written_at, VALUE, expires]...], "sum": a checksum}. VALUE is a list that is played on
-- the base from its beginning: a number copies so many characters, below zero it leaves so
-- many out, a string stands in the place of as many as it has, ["string"] is put in between; what is
-- left is copied. Or VALUE is {"size", "sealed", "bytes"}, of what is no JSON, in base64.
CREATE TABLE IF NOT EXISTS kv_packed (
    resource         TEXT    NOT NULL,
    namespace        TEXT    NOT NULL,
    name             TEXT    NOT NULL,
    first_revision   INTEGER NOT NULL,
    until_revision   INTEGER NOT NULL,
    created_revision INTEGER NOT NULL,
    deleted          INTEGER NOT NULL DEFAULT 0,
    count            INTEGER NOT NULL,
    written_at       INTEGER NOT NULL,
    value            TEXT    NOT NULL
);

-- Packs by key, for the state of one or of a page of them at a revision.
CREATE UNIQUE INDEX IF NOT EXISTS kv_packed_past ON kv_packed (resource, namespace, name, until_revision);

-- Packs by age, for what is not kept any longer.
CREATE INDEX IF NOT EXISTS kv_packed_ended ON kv_packed (resource, until_revision);

-- The last revision of each second (since 1970) in which something was written, as far back
-- as packs go: which revision held at a time.
CREATE TABLE IF NOT EXISTS kv_marks (
    second   INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL
);

-- The rows in packs as they lay in kv. value is NULL where it is no JSON; sealed is the key
-- that encrypted it.
-- Each value passes json_each, so that it is unfolded once and not for each column that is made of it.
DROP VIEW IF EXISTS kv_unpacked;
CREATE VIEW kv_unpacked AS
SELECT p.resource, p.namespace, p.name, p.first_revision + (r.value ->> 0) AS revision, p.created_revision,
       coalesce(p.first_revision + (p.value ->> ('$.rows[' || (r.key + 1) || '][0]')), p.until_revision) AS superseded_revision,
       p.deleted AND r.key = p.count - 1 AS deleted, p.written_at + (r.value ->> 1) AS written_at, r.value ->> '$[2].sealed' AS sealed,
       coalesce(length(CAST(v.atom AS BLOB)), r.value ->> '$[2].size') AS bytes, v.atom AS value
FROM kv_packed p, json_each(CASE WHEN json_valid(p.value) THEN p.value ELSE '{}' END, '$.rows') r,
     json_each(json_array(CASE WHEN json_type(r.value, '$[2]') = 'array' THEN (
       SELECT coalesce(group_concat(CASE type WHEN 'text' THEN atom WHEN 'array' THEN value ->> 0 WHEN 'integer' THEN CASE WHEN atom > 0 THEN substr(p.value ->> '$.base', at + 1, atom) ELSE '' END END, ''), '')
              || substr(p.value ->> '$.base', coalesce(max(at + step), 0) + 1)
       FROM (SELECT type, atom, value, step, coalesce(sum(step) OVER (ORDER BY key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS at
             FROM (SELECT key, type, atom, value, CASE type WHEN 'text' THEN length(atom) WHEN 'integer' THEN abs(atom) ELSE 0 END AS step FROM json_each(r.value, '$[2]'))
             ORDER BY key)) END)) v;

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
      FROM kv)
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
