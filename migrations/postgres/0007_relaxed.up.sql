-- A row here says that PostgreSQL has not crashed since the row was written: it empties an
-- unlogged table when it recovers, and so does a standby that is promoted. Then commits that did not wait
-- for the disk may be lost, and revisions up to what kv_meta sets aside ('relaxed') are left out.
CREATE UNLOGGED TABLE IF NOT EXISTS kv_alive (
    one integer PRIMARY KEY
);

INSERT INTO kv_alive (one) VALUES (1) ON CONFLICT (one) DO NOTHING;
