-- Which key of which provider encrypted a value ("aescbc:key1"), or NULL where it is not
-- encrypted. What is begins with rowlock:enc:1:PROVIDER:KEYNAME: in ASCII.
CREATE OR REPLACE FUNCTION kv_key(value bytea) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT CASE WHEN substring(value FROM 1 FOR 14) = 'rowlock:enc:1:'::bytea THEN
        coalesce(substring(encode(substring(value FROM 15 FOR 4096), 'escape') FROM '^[^:]*:[^:]*'), '') END
$$;

-- A stored value as JSON, or NULL where the bytes are no JSON: one damaged object
-- must not spoil a query over all. What is encrypted is not tried.
CREATE OR REPLACE FUNCTION kv_json(value bytea) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    IF substring(value FROM 1 FOR 14) = 'rowlock:enc:1:'::bytea THEN
        RETURN NULL;
    END IF;
    RETURN convert_from(value, 'UTF8')::jsonb;
EXCEPTION WHEN others THEN
    RETURN NULL;
END
$$;

CREATE OR REPLACE VIEW objects AS
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
       j.value,
       kv_key(kv.value) IS NOT NULL AS encrypted,
       kv_key(kv.value) AS encryption_key
FROM kv CROSS JOIN LATERAL (SELECT kv_json(kv.value) AS value OFFSET 0) j
WHERE kv.superseded_revision IS NULL;

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
FROM kv CROSS JOIN LATERAL (SELECT kv_json(kv.value) AS value OFFSET 0) j;
