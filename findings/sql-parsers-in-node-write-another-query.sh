#!/bin/sh
# pgsql-ast-parser 12.0.2 and pgsql-parser 18.2.8 (npm), which parse PostgreSQL's SQL and write it again, run by PostgreSQL 18 of @electric-sql/pglite 0.5.14.
#
# Seen: the query that comes out is valid and answers something else. pgsql-ast-parser keeps numbers as floats: 1.10 has one digit less, and an integer of 30 digits
# is rounded; `1 << 2 | 1` is read with the second operator first; the parentheses in `a UNION ALL (b UNION c)` are lost, and with them a row. pgsql-parser, which
# has PostgreSQL's own parser, loses the parentheses of `(NOT a) IS NULL` when it writes; those of `(ARRAY[1])[1]`, which is then an error.
# Expected: a query with the same meaning, or an error for what is not supported.
# Who is hurt: what rewrites queries, to add a tenant's condition, a limit or a schema: most queries come out right, and a few count other rows.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . pgsql-ast-parser@12.0.2 pgsql-parser@18.2.8 @electric-sql/pglite@0.5.14 >/dev/null
cat >main.mjs <<'EOF'
import { PGlite } from '@electric-sql/pglite'
import * as ast from 'pgsql-ast-parser'
import * as pgsql from 'pgsql-parser'

const db = await PGlite.create()
const run = async (sql) => {
  try {
    return (await db.query(sql)).rows.map((row) => Object.values(row)[0]).join(', ')
  } catch (e) {
    return `error: ${e.message}`
  }
}
for (const sql of [
  "SELECT 1.10::text",
  "SELECT 123456789012345678901234567890",
  "SELECT 1 << 2 | 1",
  "SELECT 1 UNION ALL (SELECT 1 UNION SELECT 1)",
  "SELECT (NOT true) IS NULL",
  "SELECT (ARRAY[1, 2])[2]",
]) {
  const written = ast.parse(sql).map((statement) => ast.toSql.statement(statement)).join('; ')
  console.log(`${sql}: ${await run(sql)}; by pgsql-ast-parser ${await run(written)}; by pgsql-parser ${await run(await pgsql.deparse(await pgsql.parse(sql)))}`)
}
await db.close()
process.exit(0)
EOF
node main.mjs | tee out
cat >want <<'EOF'
SELECT 1.10::text: 1.10; by pgsql-ast-parser 1.1; by pgsql-parser 1.10
SELECT 123456789012345678901234567890: 123456789012345678901234567890; by pgsql-ast-parser 123456789012345680000000000000; by pgsql-parser 123456789012345678901234567890
SELECT 1 << 2 | 1: 5; by pgsql-ast-parser 8; by pgsql-parser 5
SELECT 1 UNION ALL (SELECT 1 UNION SELECT 1): 1, 1; by pgsql-ast-parser 1; by pgsql-parser 1, 1
SELECT (NOT true) IS NULL: false; by pgsql-ast-parser false; by pgsql-parser true
SELECT (ARRAY[1, 2])[2]: 2; by pgsql-ast-parser 2; by pgsql-parser error: syntax error at or near "["
EOF
diff want out
