#!/bin/sh
# knex 3.3.0 (npm), a builder of SQL for Node, with PostgreSQL 18 of @electric-sql/pglite 0.5.14 (npm) and its dialect for SQLite.
#
# Seen: limit, orderBy and offset before update() and increment() are left out of the statement: `.orderBy('id').limit(1).update(...)` changes each row that the
# where finds. Before delete() a limit is an error ("has no effect on a `delete` statement"), an offset is left out too. whereNot({a, b}) is "not a and not b".
# Expected: the error that delete has. A statement with a limit is valid in MySQL, and the other two can do it by a subquery.
# Who is hurt: queues and leases in a table: "take the next one" takes all of them, and the worker works on one. With one row in the table, as in a test, it is
# right.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . knex@3.3.0 @electric-sql/pglite@0.5.14 >/dev/null
cat >main.mjs <<'END'
import { PGlite } from '@electric-sql/pglite'
import knex from 'knex'

const postgres = await PGlite.create()
await postgres.query('CREATE TABLE job (id int, state text, tries int)')
const build = knex({ client: 'pg' })
for (const [name, query] of Object.entries({
  'limit(1).update': () => build('job').where('state', 'new').orderBy('id').limit(1).update({ state: 'taken' }).returning('id'),
  'limit(1).increment': () => build('job').where('state', 'new').limit(1).increment('tries', 1).returning('id'),
  'offset(2).delete': () => build('job').offset(2).delete().returning('id'),
  'limit(1).delete': () => build('job').limit(1).delete().returning('id'),
  'whereNot({state, tries}).select': () => build('job').whereNot({ state: 'new', tries: 1 }).select('id'),
})) {
  await postgres.query('DELETE FROM job')
  await postgres.query("INSERT INTO job VALUES (1, 'new', 0), (2, 'new', 1), (3, 'new', 1), (4, 'done', 1)")
  try {
    const { sql, bindings } = query().toSQL().toNative()
    const { rows } = await postgres.query(sql, bindings)
    console.log(`${name}: ${sql}\n  rows: ${rows.map(({ id }) => id)}`)
  } catch (e) {
    console.log(`${name}: ${e.message}`)
  }
}
console.log('SQLite:', knex({ client: 'sqlite3', useNullAsDefault: true })('job').orderBy('id').limit(1).update({ state: 'taken' }).toString())
process.exit(0)
END
node main.mjs | tee out
cat >want <<'END'
limit(1).update: update "job" set "state" = $1 where "state" = $2 returning "id"
  rows: 1,2,3
limit(1).increment: update "job" set "tries" = "tries" + $1 where "state" = $2 returning "id"
  rows: 1,2,3
offset(2).delete: delete from "job" returning "id"
  rows: 1,2,3,4
limit(1).delete: Aborted query compilation: `limit` has no effect on a `delete` statement
whereNot({state, tries}).select: select "id" from "job" where not "state" = $1 and not "tries" = $2
  rows: 
SQLite: update `job` set `state` = 'taken'
END
diff want out
