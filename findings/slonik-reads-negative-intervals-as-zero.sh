#!/bin/sh
# slonik 47.3.2 (npm; newer ones need Node 22), with its default type parsers, against postgresql-15 of Debian 12.
#
# Seen: an interval is read as a number of seconds, and parts with a minus are left out: -1 hour is 0, 1 day -2 hours is 86400, 1 month -1 day is 30 days. A time
# of the year 99 is read as 1999, microseconds are cut, and numeric, which sum() of bigint is, is rounded to a double.
# Expected: the seconds that extract(epoch) has in the server, or an error; slonik reads bigint as BigInt, so as not to round.
# Who is hurt: what compares times: `expires - now()` of a lease that has run out is 0 and never less, clock differences are 0 in one direction, and a row is
# not found again by the time that was read.
set -eu
dir=$(mktemp -d); postgres=; trap 'kill -INT "$postgres" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT; cd "$dir"
apt-get download postgresql-15=15.20-0+deb12u1 libpq5=15.20-0+deb12u1 libicu72 libxml2 libldap-2.5-0 libsasl2-2 libgssapi-krb5-2 libkrb5-3 libk5crypto3 \
  libkrb5support0 libkeyutils1 libcom-err2 libsystemd0 liblz4-1 libzstd1 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
rm -f ./*.deb
npm install --silent --no-save --prefix . slonik@47.3.2 >/dev/null
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
for _ in $(seq 600); do grep -q 'ready to accept connections' postgres.log && break; sleep 0.1; done
cat >main.mjs <<'EOF'
import { createPool, sql } from 'slonik'

const pool = await createPool(`postgres://postgres@127.0.0.1:${process.argv[2]}/postgres`)
for (const interval of ['1 day', '-1 hour', '1 day -2 hours', '1 month -1 day', '-1.5 seconds']) {
  const row = await pool.one(sql.unsafe`SELECT ${interval}::interval AS read, extract(epoch FROM ${interval}::interval)::float8 AS seconds`)
  console.log(`${interval}: ${row.seconds} seconds, read as ${row.read}`)
}
for (const time of ['2024-01-01 10:00:00.123456', '0099-01-01 00:00:00']) {
  const row = await pool.one(sql.unsafe`SELECT ${time}::timestamp AS read`)
  console.log(`${time}: read as ${new Date(row.read).toISOString()}`)
}
const row = await pool.one(sql.unsafe`SELECT max(id) AS max, sum(id) AS sum FROM (VALUES (9007199254740993::bigint)) AS kv(id)`)
console.log(`9007199254740993: max ${row.max}, sum ${row.sum}`)
await pool.end()
EOF
LD_LIBRARY_PATH='' node main.mjs "$port" | tee out
cat >want <<'EOF'
1 day: 86400 seconds, read as 86400
-1 hour: -3600 seconds, read as 0
1 day -2 hours: 79200 seconds, read as 86400
1 month -1 day: 2505600 seconds, read as 2592000
-1.5 seconds: -1.5 seconds, read as 0
2024-01-01 10:00:00.123456: read as 2024-01-01T10:00:00.123Z
0099-01-01 00:00:00: read as 1999-01-01T00:00:00.000Z
9007199254740993: max 9007199254740993, sum 9007199254740992
EOF
diff want out
