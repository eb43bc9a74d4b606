-- A stored value as JSON, or NULL where the bytes are no JSON: one damaged object
-- must not spoil a query over all. (A block with EXCEPTION is no work for parallel plans.)
CREATE OR REPLACE FUNCTION kv_json(value bytea) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN convert_from(value, 'UTF8')::jsonb;
EXCEPTION WHEN others THEN
    RETURN NULL;
END
$$;

-- Cluster state for people with psql. value is the object, without its
-- resourceVersion (that is revision). OFFSET 0 keeps it from being read once for
-- each column that is made of it.
DROP VIEW IF EXISTS objects; -- of a later schema, with more columns
CREATE VIEW objects AS
SELECT kv.resource,
       kv.namespace,
       kv.name,
       kv.revision,
       kv.created_revision,
       j.value #>> '{metadata,uid}' AS uid,
       CASE WHEN j.value IS NOT NULL THEN coalesce(j.value #> '{metadata,labels}', '{}') END AS labels,
       kv.written_at,
       kv.expires_at,
       length(kv.value) AS bytes,
       j.value
FROM kv CROSS JOIN LATERAL (SELECT kv_json(kv.value) AS value OFFSET 0) j
WHERE kv.superseded_revision IS NULL;

-- Every write that is still kept, and what is live. change is create, update or
-- delete; the value of a delete is the object's last state. A row held from
-- written_at (revision) until superseded_revision.
DROP VIEW IF EXISTS history; -- of a later schema, with more columns
CREATE VIEW history AS
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
       j.value
FROM kv CROSS JOIN LATERAL (SELECT kv_json(kv.value) AS value OFFSET 0) j;
