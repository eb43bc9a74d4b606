#!/bin/sh
# sqlite3 3.40.1 of Debian 12 (the shell, which is linked with libsqlite3-0).
#
# Seen: `.recover` fails on each database, an intact one as well: it writes BEGIN and six pragmas and ends with "sql error: SQL logic error". It reads the file
# by the table sqlite_dbpage, which Debian's library is built without, while the shell is built with the command. In the pipe of SQLite's documentation,
# `.recover | sqlite3 new.db`, the exit status is 0 and new.db is an empty database.
# Expected: the tables and rows, as `.dump` of an intact database writes them, or no such command ("unknown command").
# Who is hurt: operators with a damaged store in SQLite and nothing but Debian's package: the last means fails with an error that blames the database,
# and a script that goes on with new.db starts a server without data.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download sqlite3=3.40.1-2+deb12u2 libsqlite3-0=3.40.1-2+deb12u2 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu"
shell=usr/bin/sqlite3
$shell kv.db "CREATE TABLE kv (key TEXT, value TEXT); INSERT INTO kv VALUES ('a', 'b')"
{
  echo "integrity: $($shell kv.db 'PRAGMA integrity_check')"
  status=0; $shell kv.db .recover >recovered.sql 2>error || status=$?
  echo "recover: status $status, $(cat error), lines with INSERT: $(grep -c INSERT recovered.sql || true)"
  status=0; $shell kv.db .recover 2>/dev/null | $shell new.db || status=$?
  echo "pipe: status $status, tables: $($shell new.db 'SELECT count(*) FROM sqlite_schema')"
  echo "dump: lines with INSERT: $($shell kv.db .dump | grep -c INSERT)"
  echo "built with: $($shell kv.db 'PRAGMA compile_options' | grep VTAB | tr '\n' ' ' | sed 's/ $//')"
} | tee out
cat >want <<'EOF'
integrity: ok
recover: status 1, sql error: SQL logic error (1), lines with INSERT: 0
pipe: status 0, tables: 0
dump: lines with INSERT: 1
built with: ENABLE_DBSTAT_VTAB ENABLE_STMTVTAB
EOF
diff want out
