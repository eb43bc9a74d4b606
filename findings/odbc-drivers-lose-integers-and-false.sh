#!/bin/sh
# libsqliteodbc 0.9998 and odbc-postgresql 13.02 of Debian 12 (psqlODBC, against postgresql-15), by python3-pyodbc 4.0.34.
#
# Seen: SQLite's driver reads a column INTEGER with 32 bits, without an error: 2147483648 is -2147483648 and 4294967297 is 1, also as max() of it. It writes
# and compares all 64. PostgreSQL's driver reads a boolean as the text '1' or '0': in Python both are true. An infinite time is the year 9999.
# Expected: the values. SQLite's INTEGER has 64 bits; the drivers have the options BigInt=1 and BoolsAsChar=0, which are not set.
# Who is hurt: reports and scripts on a store of revisions: after two thousand million the newest is negative, and a look-up finds a row that shows another
# number. And `if row.deleted:` is always so with PostgreSQL.
set -eu
dir=$(mktemp -d); postgres=; trap 'kill -INT "$postgres" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-pyodbc=4.0.34-1+b2 libsqliteodbc=0.9998-3+b1 odbc-postgresql=1:13.02.0000-2+b1 libodbc2=2.3.11-2+deb12u1 libodbcinst2=2.3.11-2+deb12u1 \
  libltdl7 libsqlite3-0=3.40.1-2+deb12u2 postgresql-15=15.20-0+deb12u1 libpq5=15.20-0+deb12u1 libicu72 libxml2 libldap-2.5-0 libsasl2-2 libgssapi-krb5-2 libkrb5-3 \
  libk5crypto3 libkrb5support0 libkeyutils1 libcom-err2 libsystemd0 liblz4-1 libzstd1 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
rm -f ./*.deb
port=${FINDING_PORT:-23790}
# PostgreSQL does not run as root.
user=; test "$(id -u)" != 0 || user='setpriv --reuid=65534 --regid=65534 --clear-groups'
mkdir data; chmod 711 .; test -z "$user" || chown 65534:65534 data
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu:$dir/lib/x86_64-linux-gnu"
bin=$dir/usr/lib/postgresql/15/bin
# shellcheck disable=SC2086
$user "$bin/initdb" -D data/db -U postgres -A trust --locale=C -E UTF8 --no-sync >initdb.log 2>&1
# shellcheck disable=SC2086
$user "$bin/postgres" -D data/db -c listen_addresses=127.0.0.1 -c port="$port" -c unix_socket_directories= -c fsync=off >postgres.log 2>&1 & postgres=$!
cat >main.py <<'EOF'
import os
import sys
import time

import pyodbc

drivers = os.getcwd() + '/usr/lib/x86_64-linux-gnu/odbc/'
for options in '', ';BigInt=1':
    sqlite = pyodbc.connect(f'Driver={drivers}libsqlite3odbc.so;Database=kv.db{options}', autocommit=True)
    sqlite.execute('DROP TABLE IF EXISTS kv')
    sqlite.execute('CREATE TABLE kv (id INTEGER, name TEXT)')
    for number in 5, 2147483648, 4294967297:
        sqlite.execute('DELETE FROM kv')
        sqlite.execute('INSERT INTO kv (id) VALUES (?)', number)
        row = sqlite.execute('SELECT CAST(id AS TEXT) AS stored, id, max(id) AS newest FROM kv WHERE id = ?', number).fetchone()
        print(f'SQLite{options}: {number} stored as {row.stored}, read as {row.id}, max {row.newest}')
for options in '', ';BoolsAsChar=0':
    for _ in range(300):
        try:
            postgres = pyodbc.connect(f'Driver={drivers}psqlodbcw.so;Server=127.0.0.1;Port={sys.argv[1]};Database=postgres;Uid=postgres{options}')
            break
        except pyodbc.Error:
            time.sleep(0.2)
    row = postgres.execute("SELECT false AS deleted, 'infinity'::timestamptz AS until").fetchone()
    print(f'PostgreSQL{options}: false is {row.deleted!r}, {"true" if row.deleted else "false"} in Python; infinity is {row.until}')
    postgres.close()
EOF
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py "$port" | tee out
cat >want <<'EOF'
SQLite: 5 stored as 5, read as 5, max 5
SQLite: 2147483648 stored as 2147483648, read as -2147483648, max -2147483648
SQLite: 4294967297 stored as 4294967297, read as 1, max 1
SQLite;BigInt=1: 5 stored as 5, read as 5, max 5
SQLite;BigInt=1: 2147483648 stored as 2147483648, read as 2147483648, max 2147483648
SQLite;BigInt=1: 4294967297 stored as 4294967297, read as 4294967297, max 4294967297
PostgreSQL: false is '0', true in Python; infinity is 9999-12-31 23:59:59
PostgreSQL;BoolsAsChar=0: false is False, false in Python; infinity is 9999-12-31 23:59:59
EOF
diff want out
