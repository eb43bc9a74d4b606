#!/bin/sh
# pg-minify 1.8.0 (npm, what pg-promise minifies files of SQL with), run by PostgreSQL 18 of @electric-sql/pglite 0.5.14 (npm).
#
# Seen: the minified script stores something else. In a text of several lines all lines lose the blanks at their ends, so that YAML loses its
# indentation; the text becomes E'...', in which a backslash is an escape: of '\d' only the d is left. One tab in a text suffices for that.
# $$...$$ is not taken for a text, its lines become one. With `compress`, 5 - -3 is written as 5--3, and what follows is a comment.
# Expected: the same values; texts are not what a minifier may shorten, and the documentation promises to repair those of several lines.
# Who is hurt: migrations that insert manifests, templates or regular expressions by pg-promise's QueryFile with `minify`: the row is there, and
# another program fails when it reads it. Without `minify`, as in psql and in tests, all is well.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . pg-minify@1.8.0 @electric-sql/pglite@0.5.14 >/dev/null
cat >main.mjs <<'EOF'
import { PGlite } from '@electric-sql/pglite'
import minify from 'pg-minify'

const db = await PGlite.create()
const run = async (sql) => {
  try {
    return JSON.stringify(Object.values((await db.query(sql)).rows[0])[0])
  } catch (e) {
    return `error: ${e.message}`
  }
}
for (const [sql, options] of [
  ["SELECT 'spec:\n  replicas: 1\n'"],
  ["SELECT '^\\d+$\n^\\w+$'"],
  ["SELECT 'a\t\\d+'"],
  ['SELECT $$spec:\n  replicas: 1$$'],
  ['SELECT $$it -- is$$'],
  ['SELECT 5 - -3', { compress: true }],
]) console.log(`${JSON.stringify(sql)}${options ? ' compressed' : ''}: ${await run(sql)}, minified ${await run(minify(sql, options))}`)
await db.close()
process.exit(0)
EOF
node main.mjs | tee out
cat >want <<'EOF'
"SELECT 'spec:\n  replicas: 1\n'": "spec:\n  replicas: 1\n", minified "spec:\nreplicas: 1\n"
"SELECT '^\\d+$\n^\\w+$'": "^\\d+$\n^\\w+$", minified "^d+$\n^w+$"
"SELECT 'a\t\\d+'": "a\t\\d+", minified "a\td+"
"SELECT $$spec:\n  replicas: 1$$": "spec:\n  replicas: 1", minified "spec: replicas: 1"
"SELECT $$it -- is$$": "it -- is", minified error: unterminated dollar-quoted string at or near "$$it"
"SELECT 5 - -3" compressed: 8, minified 5
EOF
diff want out
