#!/bin/sh
# @libsql/client 0.18.0 (SQLite and Turso), sql.js 1.17.0 and node-sqlite3-wasm 0.8.60 (npm).
#
# Seen: libsql binds each number and boolean as a float: json_object('replicas', ?) with 3 is {"replicas":3.0}, a key made of a revision is /k/3.0, 3 / 2 is 1.5, and
# a column without a type stores 3.0. sql.js does so from 2^31 on, so that a small number is right and a revision is not. node-sqlite3-wasm binds integers,
# and stores a text up to its first U+0000. None of it is an error.
# Expected: an integer for a whole number, as a literal in the statement is, and the text that was given.
# Who is hurt: whoever changes stored objects by json_set(value, '$.spec.replicas', ?): readers in Go refuse 3.0 for an integer. A column that is declared INTEGER
# makes an integer of it, so that plain inserts and tests are right; JSON, keys and computed values are not.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . @libsql/client@0.18.0 sql.js@1.17.0 node-sqlite3-wasm@0.8.60 >/dev/null
cat >main.mjs <<'END'
import { createClient } from '@libsql/client'
import initSqlJs from 'sql.js'
import wasm from 'node-sqlite3-wasm'

const libsql = createClient({ url: 'file:libsql.db' })
const sqljs = new (await initSqlJs()).Database()
const sqlite3 = new wasm.Database()
const libraries = {
  '@libsql/client': async (sql, args) => Object.values((await libsql.execute({ sql, args })).rows[0]),
  'sql.js': (sql, args) => sqljs.exec(sql, args)[0].values[0],
  'node-sqlite3-wasm': (sql, args) => Object.values(sqlite3.get(sql, args)),
}
for (const [name, run] of Object.entries(libraries)) {
  console.log(name)
  for (const value of [3, 4294967297]) {
    console.log(`  ${value}:`, (await run(`SELECT typeof(?) AS a, json_object('replicas', ?) AS b, '/k/' || ? AS c, json_array(? / 2) AS d`, Array(4).fill(value))).join(' '))
  }
  console.log('  length of "k8s\\0object":', (await run('SELECT length(CAST(? AS BLOB)) AS a', ['k8s\0object'])).join(' '))
}
END
node main.mjs | tee out
cat >want <<'END'
@libsql/client
  3: real {"replicas":3.0} /k/3.0 [1.5]
  4294967297: real {"replicas":4294967297.0} /k/4294967297.0 [2147483648.5]
  length of "k8s\0object": 10
sql.js
  3: integer {"replicas":3} /k/3 [1]
  4294967297: real {"replicas":4294967297.0} /k/4294967297.0 [2147483648.5]
  length of "k8s\0object": 10
node-sqlite3-wasm
  3: integer {"replicas":3} /k/3 [1]
  4294967297: integer {"replicas":4294967297} /k/4294967297 [2147483648]
  length of "k8s\0object": 3
END
diff want out
