#!/bin/sh
# pg-logical-replication 2.5.0 (npm), against postgresql-15 of Debian 12.
#
# Seen: the time in the library's answers to the server is seven days ahead: PostgreSQL's epoch is taken for 1999-12-25. And milliseconds are
# written where the protocol has microseconds, so that the time of the answers stands still, and jumps by 71 minutes every 71 minutes.
# pg_stat_replication.reply_time has both faults. The times of the server's heartbeats are read seven days too early, those of commits rightly.
# Expected: the time of the answer, which the view documents: "Send time of last reply message received from standby server".
# Who is hurt: monitoring by reply_time: a consumer that hangs looks alive for a week, and one that answers each second looks as if it did not.
set -eu
dir=$(mktemp -d); postgres=; trap 'kill -INT "$postgres" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT; cd "$dir"
apt-get download postgresql-15=15.20-0+deb12u1 libpq5=15.20-0+deb12u1 libicu72 libxml2 libldap-2.5-0 libsasl2-2 libgssapi-krb5-2 libkrb5-3 libk5crypto3 \
  libkrb5support0 libkeyutils1 libcom-err2 libsystemd0 liblz4-1 libzstd1 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
rm -f ./*.deb
npm install --silent --no-save --prefix . pg-logical-replication@2.5.0 pg@8.23.1 >/dev/null
port=${FINDING_PORT:-23790}
# PostgreSQL does not run as root.
user=; test "$(id -u)" != 0 || user='setpriv --reuid=65534 --regid=65534 --clear-groups'
mkdir data; chmod 711 .; test -z "$user" || chown 65534:65534 data
export LD_LIBRARY_PATH="$dir/usr/lib/x86_64-linux-gnu:$dir/lib/x86_64-linux-gnu"
bin=$dir/usr/lib/postgresql/15/bin
# shellcheck disable=SC2086
$user "$bin/initdb" -D data/db -U postgres -A trust --locale=C -E UTF8 --no-sync >initdb.log 2>&1
# shellcheck disable=SC2086
$user "$bin/postgres" -D data/db -c listen_addresses=127.0.0.1 -c port="$port" -c unix_socket_directories= -c wal_level=logical \
  -c wal_sender_timeout=2s -c fsync=off >postgres.log 2>&1 & postgres=$!
cat >main.mjs <<'EOF'
import pg from 'pg'
import { LogicalReplicationService, PgoutputPlugin } from 'pg-logical-replication'

const address = { host: '127.0.0.1', port: Number(process.argv[2]), user: 'postgres', database: 'postgres' }
const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000))
let client
for (let i = 0; i < 300; i++) {
  try {
    client = new pg.Client(address)
    await client.connect()
    break
  } catch {
    await sleep(0.2)
  }
}
const days = (milliseconds) => (milliseconds / 86400000).toFixed(1)
await client.query('CREATE TABLE kv (value text); CREATE PUBLICATION p FOR TABLE kv')
await client.query("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
const service = new LogicalReplicationService(address, { acknowledge: { auto: true, timeoutSeconds: 1 } })
let heartbeat, commit
service.on('heartbeat', (lsn, time) => { heartbeat ??= time - Date.now() })
service.on('data', (lsn, message) => { if (message.tag === 'commit') commit ??= Number(message.commitTime / 1000n) - Date.now() })
service.on('error', (e) => { console.log(e.message); process.exit(1) })
service.subscribe(new PgoutputPlugin({ protoVersion: 1, publicationNames: ['p'] }), 's').catch(() => {})
await sleep(2)
const replies = []
for (let i = 0; i < 2; i++) {
  await client.query("INSERT INTO kv VALUES ('a')")
  await sleep(5)
  replies.push((await client.query('SELECT reply_time, reply_time - clock_timestamp() > $1 AND reply_time - clock_timestamp() < $2 AS ahead FROM pg_stat_replication',
    ['6 days 22 hours', '7 days 1 minute'])).rows[0])
}
console.log('reply_time is seven days ahead, or up to 72 minutes less:', replies.every(({ ahead }) => ahead))
console.log('in five seconds it goes on by less than a tenth of a second:', replies[1].reply_time - replies[0].reply_time < 100)
console.log(`the server's heartbeat is read as ${days(heartbeat)} days ago, the commit as ${days(commit)}`)
await service.stop()
await client.end()
process.exit(0)
EOF
LD_LIBRARY_PATH='' node main.mjs "$port" | tee out
cat >want <<'EOF'
reply_time is seven days ahead, or up to 72 minutes less: true
in five seconds it goes on by less than a tenth of a second: true
the server's heartbeat is read as -7.0 days ago, the commit as -0.0
EOF
diff want out
