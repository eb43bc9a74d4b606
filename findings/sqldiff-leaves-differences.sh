#!/bin/sh
# sqldiff of sqlite3-tools 3.40.1 and the shell of sqlite3 3.40.1, both of Debian 12.
#
# Seen: sqldiff compares with the rules of the column: in a column with COLLATE NOCASE a change of case alone is no difference, and 1 and 1.0 are
# the same in any column. The SQL that it prints has 15 digits of a float, and a text up to its first zero byte: applied to the first
# database it does not make the second, and sqldiff prints the same line again, for ever.
# Expected: SQL that makes the second database of the first, which is what the program is for; .sha3sum of the shell sees each of these differences.
# Who is hurt: replicas and patches made with sqldiff: names that were changed from "Web" to "web" stay as they were, measured values differ in the last
# digits, and the check by sqldiff says that nothing is left to do for the former and never ends for the latter.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download sqlite3-tools=3.40.1-2+deb12u2 sqlite3=3.40.1-2+deb12u2 libsqlite3-0=3.40.1-2+deb12u2 libtcl8.6 libreadline8 libtinfo6 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
export LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu:lib/x86_64-linux-gnu
shell() { usr/bin/sqlite3 -batch "$@"; }
for pair in "'Web':'web'" "1:1.0" "0.5:0.1+0.2" "'a':'b'||char(0)||'c'"; do
  rm -f old.db new.db
  for side in old new; do
    value=${pair%%:*}; test $side = old || value=${pair#*:}
    shell $side.db "CREATE TABLE t (id INTEGER PRIMARY KEY, v COLLATE NOCASE); INSERT INTO t VALUES (1, $value)"
  done
  echo "$pair: $(usr/bin/sqldiff old.db new.db | tr '\n' ' ')"
  usr/bin/sqldiff old.db new.db | shell old.db
  echo "  applied: $(usr/bin/sqldiff old.db new.db | tr '\n' ' ')"
  test "$(shell old.db .sha3sum)" = "$(shell new.db .sha3sum)" && echo '  equal' || echo '  not equal'
done | tee out
cat >want <<'EOF'
'Web':'web': 
  applied: 
  not equal
1:1.0: 
  applied: 
  not equal
0.5:0.1+0.2: UPDATE t SET v=0.3 WHERE id=1; 
  applied: UPDATE t SET v=0.3 WHERE id=1; 
  not equal
'a':'b'||char(0)||'c': UPDATE t SET v='b' WHERE id=1; 
  applied: UPDATE t SET v='b' WHERE id=1; 
  not equal
EOF
diff want out
