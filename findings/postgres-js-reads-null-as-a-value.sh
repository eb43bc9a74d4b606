#!/bin/sh
# postgres 3.4.9 (postgres.js, npm), against PostgreSQL 18 of @electric-sql/pglite 0.5.14 with its socket 0.2.17 (npm), beside pg 8.23.1.
#
# Seen: NULL inside of a list is read as a value: the text "NULL" in a text[], NaN in an integer[], false in a boolean[], an invalid Date in a
# timestamptz[]. A row that is written back as it was read holds the text NULL. And with bytea_output = 'escape', a setting of servers, databases
# and roles, every bytea is read as empty or as other bytes, without an error.
# Expected: null, as pg reads it and as postgres.js itself writes it, and the bytes, or an error.
# Who is hurt: services that keep lists with gaps: "not known" becomes "no", and a label or host named NULL appears. A role that was set to
# "escape" for an old client loses the bytes of each object that is read and written again.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . postgres@3.4.9 pg@8.23.1 @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 >/dev/null
cat >main.mjs <<'EOF'
import { PGlite } from '@electric-sql/pglite'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
import { createServer } from 'node:net'
import { inspect } from 'node:util'
import pg from 'pg'
import postgres from 'postgres'

const free = () => new Promise((resolve) => {
  const probe = createServer().listen(0, '127.0.0.1', () => {
    const { port } = probe.address()
    probe.close(() => resolve(port))
  })
})
const db = await PGlite.create()
const address = { host: '127.0.0.1', port: await free(), user: 'postgres', database: 'postgres' }
const server = new PGLiteSocketServer({ db, port: address.port, host: address.host })
await server.start()
const lists = `SELECT ARRAY['a', NULL] AS text, ARRAY[1, NULL] AS integer, ARRAY[true, NULL] AS boolean, ARRAY['2026-01-01', NULL]::timestamptz[] AS timestamptz`
const bytes = `SELECT '\\x6b3873000a'::bytea AS bytes`
const client = new pg.Client(address)
await client.connect()
console.log('pg:', inspect((await client.query(lists)).rows[0], { breakLength: Infinity }))
await client.query(`SET bytea_output = 'escape'`)
console.log('pg:', (await client.query(bytes)).rows[0].bytes)
await client.query('RESET bytea_output')
await client.end()

const sql = postgres({ ...address, max: 1 })
const [row] = await sql.unsafe(lists)
console.log('postgres:', inspect({ ...row }, { breakLength: Infinity }))
await sql.unsafe('CREATE TABLE kept (tags text[])')
await sql`INSERT INTO kept VALUES (${row.text})`
console.log('written back:', (await sql.unsafe('SELECT tags::text AS tags, array_position(tags, NULL) AS null FROM kept'))[0])
console.log('postgres:', (await sql.unsafe(bytes))[0].bytes)
await sql.unsafe(`SET bytea_output = 'escape'`)
console.log('postgres:', (await sql.unsafe(bytes))[0].bytes)
await sql.end()
await server.stop()
await db.close()
process.exit(0)
EOF
TZ=UTC node main.mjs | tee out
cat >want <<'EOF'
pg: { text: [ 'a', null ], integer: [ 1, null ], boolean: [ true, null ], timestamptz: [ 2026-01-01T00:00:00.000Z, null ] }
pg: <Buffer 6b 38 73 00 0a>
postgres: { text: [ 'a', 'NULL' ], integer: [ 1, NaN ], boolean: [ true, false ], timestamptz: [ 2026-01-01T00:00:00.000Z, Invalid Date ] }
written back: { tags: '{a,"NULL"}', null: null }
postgres: <Buffer 6b 38 73 00 0a>
postgres: <Buffer >
EOF
diff want out
