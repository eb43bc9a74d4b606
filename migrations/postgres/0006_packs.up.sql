-- Past states of one object, put together: consecutive rows of kv of one life of it,
-- which ended longer ago than the log reaches back. first_revision is that of the first of them,
-- until_revision that which ended the last. deleted: the last records a delete.
--
-- value is JSON in UTF-8: {"base": the value of the first row as text, "rows": [[revision - first_revision,
-- microseconds since written_at, VALUE, expires]...], "sum": a checksum}. VALUE is a list that is played on
-- the base from its beginning: a number copies so many characters, below zero it leaves so
-- many out, a string stands in the place of as many as it has, ["string"] is put in between; what is
-- left is copied. Or VALUE is {"size", "sealed", "bytes"}, of what is no JSON, in base64.
CREATE TABLE IF NOT EXISTS kv_packed (
    resource         text        COLLATE "C" NOT NULL,
    namespace        text        COLLATE "C" NOT NULL,
    name             text        COLLATE "C" NOT NULL,
    first_revision   bigint      NOT NULL,
    until_revision   bigint      NOT NULL,
    created_revision bigint      NOT NULL,
    deleted          boolean     NOT NULL DEFAULT false,
    count            integer     NOT NULL,
    written_at       timestamptz NOT NULL,
    value            bytea       NOT NULL
);

-- Packs by key, for the state of one or of a page of them at a revision.
CREATE UNIQUE INDEX IF NOT EXISTS kv_packed_past ON kv_packed (resource, namespace, name, until_revision);

-- Packs by age, for what is not kept any longer. The sum keeps it from being taken for a way to a
-- key's packs.
CREATE INDEX IF NOT EXISTS kv_packed_ended ON kv_packed (resource, (until_revision + 0));

-- The last revision of each second (since 1970) in which something was written, as far back
-- as packs go: which revision held at a time.
CREATE TABLE IF NOT EXISTS kv_marks (
    second   bigint PRIMARY KEY,
    revision bigint NOT NULL
);

DO $$
BEGIN
    EXECUTE 'ALTER TABLE kv_packed ALTER COLUMN value SET COMPRESSION lz4';
EXCEPTION WHEN syntax_error OR feature_not_supported THEN
    NULL;
END
$$;

-- A value out of a pack as text: the list of a row, played on the base.
CREATE OR REPLACE FUNCTION kv_unfold(base text, list jsonb) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT coalesce(string_agg(CASE jsonb_typeof(op) WHEN 'string' THEN op #>> '{}' WHEN 'array' THEN op ->> 0
                                    ELSE CASE WHEN (op #>> '{}')::int > 0 THEN substr(base, at + 1, (op #>> '{}')::int) ELSE '' END END, '' ORDER BY n), '')
           || substr(base, coalesce(max(at + step), 0) + 1)
    FROM (SELECT op, n, step, coalesce(sum(step) OVER (ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::int AS at
          FROM (SELECT op, n, CASE jsonb_typeof(op) WHEN 'string' THEN length(op #>> '{}') WHEN 'number' THEN abs((op #>> '{}')::int) ELSE 0 END AS step
                FROM jsonb_array_elements(list) WITH ORDINALITY l (op, n)) s) o
$$;

-- The rows of a pack; none where it is damaged: that must not spoil a query over all.
CREATE OR REPLACE FUNCTION kv_unpack(pack bytea) RETURNS TABLE (n bigint, revision bigint, superseded bigint, written bigint, size int, sealed text, value jsonb)
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN QUERY
    SELECT r.k, (r.entry ->> 0)::bigint, lead((r.entry ->> 0)::bigint) OVER (ORDER BY r.k), (r.entry ->> 1)::bigint,
           coalesce(octet_length(v.plain), (r.entry -> 2 ->> 'size')::int), CASE WHEN jsonb_typeof(r.entry -> 2) = 'object' THEN r.entry -> 2 ->> 'sealed' END,
           kv_json(v.plain)
    FROM (SELECT convert_from(pack, 'UTF8')::jsonb AS content OFFSET 0) p
    CROSS JOIN LATERAL jsonb_array_elements(p.content -> 'rows') WITH ORDINALITY r (entry, k)
    CROSS JOIN LATERAL (SELECT CASE WHEN jsonb_typeof(r.entry -> 2) = 'array' THEN convert_to(kv_unfold(p.content ->> 'base', r.entry -> 2), 'UTF8') END AS plain OFFSET 0) v;
EXCEPTION WHEN others THEN
    RETURN;
END
$$;

CREATE OR REPLACE VIEW history AS
SELECT kv.resource,
       kv.namespace,
       kv.name,
       kv.revision,
       kv.created_revision,
       kv.superseded_revision,
       CASE WHEN kv.deleted THEN 'delete' WHEN kv.revision = kv.created_revision THEN 'create' ELSE 'update' END AS change,
       j.value #>> '{metadata,uid}' AS uid,
       CASE WHEN j.value IS NOT NULL THEN coalesce(j.value #> '{metadata,labels}', '{}') END AS labels,
       kv.written_at,
       length(kv.value) AS bytes,
       j.value,
       kv_key(kv.value) IS NOT NULL AS encrypted,
       kv_key(kv.value) AS encryption_key
FROM kv CROSS JOIN LATERAL (SELECT kv_json(kv.value) AS value OFFSET 0) j
UNION ALL
SELECT p.resource,
       p.namespace,
       p.name,
       p.first_revision + u.revision,
       p.created_revision,
       coalesce(p.first_revision + u.superseded, p.until_revision),
       CASE WHEN p.deleted AND u.n = p.count THEN 'delete' WHEN p.first_revision + u.revision = p.created_revision THEN 'create' ELSE 'update' END,
       u.value #>> '{metadata,uid}',
       CASE WHEN u.value IS NOT NULL THEN coalesce(u.value #> '{metadata,labels}', '{}') END,
       p.written_at + u.written * interval '1 microsecond',
       u.size,
       u.value,
       u.sealed IS NOT NULL,
       u.sealed
FROM kv_packed p CROSS JOIN LATERAL kv_unpack(p.value) u;
