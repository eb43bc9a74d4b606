#!/bin/sh
# sqlite3 3.40.1 of Debian 12 (the shell): `.clone` and `.dump`, compared with `.backup`.
#
# Seen: `.clone` copies no row of a table with a generated column: it prints an error and "done", and the exit status is 0. Silently, both cut
# a text at U+0000, number the rows of tables without an INTEGER PRIMARY KEY anew, and set user_version to 0. `.backup` keeps all of it.
# Expected: the same database; `.help` promises "Clone data into NEWDB from the existing database" and "Render database content as SQL".
# Who is hurt: who moves a store by `.clone` or keeps dumps as backups: a table with a column computed of another is empty, values that hold a zero
# byte are short, references by rowid point to other rows, and programs that keep their schema's version in user_version run all migrations again.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download sqlite3=3.40.1-2+deb12u2 libsqlite3-0=3.40.1-2+deb12u2 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu"
shell=usr/bin/sqlite3
$shell kv.db <<'EOF'
PRAGMA user_version = 7;
CREATE TABLE kv (key TEXT, value TEXT, size INTEGER AS (length(value)));
INSERT INTO kv VALUES ('a', 'b'), ('c', 'd');
CREATE TABLE texts (value TEXT);
INSERT INTO texts VALUES ('first'), ('k8s' || char(0) || 'rest'), ('last');
DELETE FROM texts WHERE value = 'first';
EOF
{
  for command in backup clone dump; do
    status=0
    if test $command = dump; then
      $shell kv.db .dump | $shell dump.db >progress 2>error || status=$?
    else
      $shell kv.db ".$command $command.db" >progress 2>error || status=$?
    fi
    echo "$command: status $status$(sed 's/^/, /' progress | tr -d '\n')"
    cut -d' ' -f1-12 error
    $shell "$command.db" "SELECT '  rows of kv: ' || count(*) FROM kv; SELECT '  text ' || rowid || ', bytes: ' || length(CAST(value AS BLOB)) FROM texts;
      SELECT '  user_version: ' || user_version FROM pragma_user_version"
  done
} | tee out
cat >want <<'EOF'
backup: status 0
  rows of kv: 2
  text 2, bytes: 8
  text 3, bytes: 4
  user_version: 7
clone: status 0, kv... done, texts... done
Error 1: table kv has 2 columns but 3 values were supplied
  rows of kv: 0
  text 1, bytes: 3
  text 2, bytes: 4
  user_version: 0
dump: status 0
  rows of kv: 2
  text 1, bytes: 3
  text 2, bytes: 4
  user_version: 0
EOF
diff want out
