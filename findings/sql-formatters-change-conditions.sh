#!/bin/sh
# pgformatter 5.5 (pg_format) and python3-sqlparse 0.4.2 (with sqlformat) of Debian 12, compared with sql-formatter 15.9.0 (npm).
#
# Seen: for pg_format a backslash before a quote escapes it, although a standard string has no escapes: after ESCAPE '\' or 'C:\data\' it formats the next
# strings as if they were code, so that 'a,b(c)=d' becomes ' a, b (c) = d ', and what is between $$ always. sqlparse with
# strip_comments takes PostgreSQL's # (exclusive or) for a comment and drops the rest of the line, conditions included. No error, and both results are valid SQL.
# Expected: another layout of the same query. sql-formatter gives one for all of them.
# Who is hurt: migrations and stored queries that a hook formats before they are committed: a comparison with a text is false from then on, and a
# DELETE loses a part of its WHERE.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download pgformatter=5.5-1 libcgi-pm-perl python3-sqlparse=0.4.2-1+deb12u1 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
npm install --silent --no-save --prefix . sql-formatter@15.9.0 >/dev/null
cat >queries <<'EOF'
SELECT 1 FROM kv WHERE key LIKE '/pods/%' ESCAPE '\' AND value = 'a,b(c)=d';
INSERT INTO kv VALUES ('path', 'C:\data\'), ('list', 'a,b;c');
SELECT $$select a,b$$;
DELETE FROM kv WHERE lease = 6 # 3 AND key = 'a';
EOF
cat >main.py <<'EOF'
import sys

import sqlparse

print(sqlparse.format(sys.stdin.read(), strip_comments=True))
EOF
cat >main.mjs <<'EOF'
import fs from 'node:fs'
import { format } from 'sql-formatter'

console.log(format(fs.readFileSync(0, 'utf8'), { language: 'postgresql' }))
EOF
line() { tr '\n' ' ' | sed 's/  */ /g; s/ $//'; }
while read -r query; do
  printf '%s\n' "$query"
  printf '  pg_format: %s\n' "$(printf '%s\n' "$query" | perl -Iusr/share/perl5 usr/bin/pg_format | line)"
  printf '  sqlparse: %s\n' "$(printf '%s\n' "$query" | PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py | line)"
  printf '  sql-formatter: %s\n' "$(printf '%s\n' "$query" | node main.mjs | line)"
done <queries | tee out
cat >want <<'EOF'
SELECT 1 FROM kv WHERE key LIKE '/pods/%' ESCAPE '\' AND value = 'a,b(c)=d';
  pg_format: SELECT 1 FROM kv WHERE key LIKE '/pods/%' ESCAPE '\' AND value = ' a, b (c) = d ';
  sqlparse: SELECT 1 FROM kv WHERE key LIKE '/pods/%' ESCAPE '\' AND value = 'a,b(c)=d';
  sql-formatter: SELECT 1 FROM kv WHERE key LIKE '/pods/%' ESCAPE '\' AND value = 'a,b(c)=d';
INSERT INTO kv VALUES ('path', 'C:\data\'), ('list', 'a,b;c');
  pg_format: INSERT INTO kv VALUES ('path', 'C:\data\'), (' list', 'a, b; c ');
  sqlparse: INSERT INTO kv VALUES ('path', 'C:\data\'), ('list', 'a,b;c');
  sql-formatter: INSERT INTO kv VALUES ('path', 'C:\data\'), ('list', 'a,b;c');
SELECT $$select a,b$$;
  pg_format: SELECT $$ SELECT a, b$$;
  sqlparse: SELECT $$select a,b$$;
  sql-formatter: SELECT $$select a,b$$;
DELETE FROM kv WHERE lease = 6 # 3 AND key = 'a';
  pg_format: DELETE FROM kv WHERE lease = 6 # 3 AND key = 'a';
  sqlparse: DELETE FROM kv WHERE lease = 6
  sql-formatter: DELETE FROM kv WHERE lease = 6 # 3 AND key = 'a';
EOF
diff want out
