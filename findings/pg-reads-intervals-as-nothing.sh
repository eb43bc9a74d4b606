#!/bin/sh
# pg 8.23.1 (node-postgres), against PostgreSQL 18 of @electric-sql/pglite 0.5.14 with its socket 0.2.17 (npm).
#
# Seen: if the server's IntervalStyle is not "postgres", node-postgres reads every interval as {}, without an error, and
# writes it back as 0: the update of a row with its own value stores 00:00:00. And a numeric is a text, so that no digit is
# lost, but a numeric[] is a list of rounded numbers, though an int8[] is one of texts.
# Expected: the interval, or an error; IntervalStyle is a setting of servers, databases and roles, on which pgx, with its
# binary form, does not depend. And elements of a list as they are alone.
# Who is hurt: services in Node whose database or role was set to iso_8601 for another client: retention times and
# schedules become nothing, and "older than now() - $1" becomes "older than now". Sums of money in numeric[] lose digits.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . pg@8.23.1 @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 >/dev/null
cat >main.mjs <<'EOF'
import { PGlite } from '@electric-sql/pglite'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
import { createServer } from 'node:net'
import pg from 'pg'

const free = () => new Promise((resolve) => {
  const probe = createServer().listen(0, '127.0.0.1', () => {
    const { port } = probe.address()
    probe.close(() => resolve(port))
  })
})
const db = await PGlite.create()
const port = await free()
const server = new PGLiteSocketServer({ db, port, host: '127.0.0.1' })
await server.start()
const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' })
await client.connect()
const row = async (text, values) => (await client.query(text, values)).rows[0]
await row(`CREATE TABLE kept (age interval)`)
await row(`INSERT INTO kept VALUES ('30 days 12:00')`)
for (const style of ['postgres', 'iso_8601', 'postgres_verbose', 'sql_standard']) {
  await row(`SET intervalstyle = ${style}`)
  const { age, text } = await row('SELECT age, age::text AS text FROM kept')
  const { written } = await row('SELECT ($1::interval)::text AS written', [age])
  console.log(`${style}: the server sends ${text}, read as ${JSON.stringify(age)}, written back ${written}`)
}
const lists = await row(`SELECT 9007199254740993.25 AS one, ARRAY[9007199254740993.25] AS list, ARRAY[9007199254740993] AS int8`)
console.log(JSON.stringify(lists))
await client.end()
await server.stop()
await db.close()
process.exit(0)
EOF
node main.mjs | tee out
cat >want <<'EOF'
postgres: the server sends 30 days 12:00:00, read as {"days":30,"hours":12}, written back 30 days 12:00:00
iso_8601: the server sends P30DT12H, read as {}, written back PT0S
postgres_verbose: the server sends @ 30 days 12 hours, read as {}, written back @ 0
sql_standard: the server sends 30 12:00:00, read as {}, written back 0
{"one":"9007199254740993.25","list":[9007199254740994],"int8":["9007199254740993"]}
EOF
diff want out
