#!/bin/sh
# pg-mem 3.0.14 (npm), PostgreSQL in memory for unit tests in Node, beside PostgreSQL 18 of @electric-sql/pglite 0.5.14 (npm).
#
# Seen: `ON CONFLICT DO UPDATE ... WHERE revision < excluded.revision RETURNING` returns the row if the condition is false; PostgreSQL returns none. FILTER of an
# aggregate is ignored, NOT IN with a NULL finds rows, LIKE knows no backslash, || of two jsonb joins their texts, a month has 30 days, and a
# bigint overflows into a float. None of it is an error, as other things that it does not have are.
# Expected: the answers of PostgreSQL, or "not supported".
# Who is hurt: stores whose compare-and-swap is this statement: the test of the conflict says that a stale writer has won, or the code is written so that it
# passes there, and loses no update in a test, and each one in production.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --legacy-peer-deps --prefix . pg-mem@3.0.14 @electric-sql/pglite@0.5.14 >/dev/null
cat >main.mjs <<'END'
import { PGlite } from '@electric-sql/pglite'
import { newDb } from 'pg-mem'

const memory = newDb().public
const postgres = await PGlite.create()
for (const sql of [
  'CREATE TABLE kv (name text PRIMARY KEY, revision bigint, deleted boolean, value jsonb)',
  `INSERT INTO kv VALUES ('/a_b', 5, false, '{"replicas":3}'), ('/axb', 7, true, '{"replicas":5}')`,
]) {
  memory.none(sql)
  await postgres.query(sql)
}
const show = (rows) => JSON.stringify(rows.map((row) => Object.values(row).map((value) => (value instanceof Date ? value.toISOString() : String(value)))))
for (const sql of [
  "INSERT INTO kv (name, revision) VALUES ('/a_b', 4) ON CONFLICT (name) DO UPDATE SET revision = excluded.revision WHERE kv.revision < excluded.revision RETURNING revision",
  'SELECT count(*) FILTER (WHERE deleted) AS deleted FROM kv',
  'SELECT name FROM kv WHERE revision NOT IN (7, NULL)',
  "SELECT name FROM kv WHERE name LIKE '/a\\_b'",
  'SELECT name FROM kv WHERE greatest(revision, NULL) > 6',
  `SELECT (value || '{"paused":true}')::text AS value FROM kv WHERE revision = 7`,
  "SELECT '2024-01-31'::date + interval '1 month' AS day",
  'SELECT revision + 9223372036854775807 AS next FROM kv WHERE revision = 7',
]) {
  const answer = async (query) => show(await query()).slice(0, 90)
  console.log(sql)
  console.log('  pg-mem:    ', await answer(() => memory.many(sql)).catch((e) => e.message.split('\n')[0]))
  console.log('  PostgreSQL:', await answer(async () => (await postgres.query(sql)).rows).catch((e) => e.message))
}
process.exit(0)
END
node main.mjs | tee out
cat >want <<'END'
INSERT INTO kv (name, revision) VALUES ('/a_b', 4) ON CONFLICT (name) DO UPDATE SET revision = excluded.revision WHERE kv.revision < excluded.revision RETURNING revision
  pg-mem:     [["5"]]
  PostgreSQL: []
SELECT count(*) FILTER (WHERE deleted) AS deleted FROM kv
  pg-mem:     [["2"]]
  PostgreSQL: [["1"]]
SELECT name FROM kv WHERE revision NOT IN (7, NULL)
  pg-mem:     [["/a_b"]]
  PostgreSQL: []
SELECT name FROM kv WHERE name LIKE '/a\_b'
  pg-mem:     []
  PostgreSQL: [["/a_b"]]
SELECT name FROM kv WHERE greatest(revision, NULL) > 6
  pg-mem:     []
  PostgreSQL: [["/axb"]]
SELECT (value || '{"paused":true}')::text AS value FROM kv WHERE revision = 7
  pg-mem:     [["{\"replicas\":5}{\"paused\":true}"]]
  PostgreSQL: [["{\"paused\": true, \"replicas\": 5}"]]
SELECT '2024-01-31'::date + interval '1 month' AS day
  pg-mem:     [["2024-03-01T00:00:00.000Z"]]
  PostgreSQL: [["2024-02-29T00:00:00.000Z"]]
SELECT revision + 9223372036854775807 AS next FROM kv WHERE revision = 7
  pg-mem:     [["9223372036854776000"]]
  PostgreSQL: bigint out of range
END
diff want out
