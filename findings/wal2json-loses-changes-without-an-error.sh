#!/bin/sh
# postgresql-15-wal2json 2.5 and postgresql-15 of Debian 12: changes as JSON, from which caches, search indices and audit logs are filled.
#
# Seen: NaN and infinity of float8 and numeric are null. An UPDATE or DELETE in a table without a primary key is an empty transaction; PostgreSQL's own
# publications refuse the statement. A value that is stored out of line, which large ones are, is left out of an UPDATE that does not change it, and an
# update that sets it to null has it: a reader who takes "missing" for null and one who keeps the old value both are right for one of the two.
# Expected: the row as it is, an error, or a mark as test_decoding has it (unchanged-toast-datum).
# Who is hurt: copies of a key-value store: the renewal of a lease's time comes without the value of the key, and the copies of tables whose key is only
# a unique index get the inserts and nothing else. The slot moves on, and the only sign is a warning in the reader's connection.
set -eu
dir=$(mktemp -d); postgres=; trap 'kill -INT "$postgres" 2>/dev/null || true; wait; rm -rf "$dir"' EXIT; cd "$dir"
apt-get download postgresql-15-wal2json=2.5-1+b1 postgresql-15=15.20-0+deb12u1 postgresql-client-15=15.20-0+deb12u1 libpq5=15.20-0+deb12u1 libicu72 libxml2 \
  libldap-2.5-0 libsasl2-2 libgssapi-krb5-2 libkrb5-3 libk5crypto3 libkrb5support0 libkeyutils1 libcom-err2 libsystemd0 liblz4-1 libzstd1 libreadline8 >/dev/null 2>&1
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
$user "$bin/postgres" -D data/db -c listen_addresses=127.0.0.1 -c port="$port" -c unix_socket_directories= -c wal_level=logical -c output_plugin_libraries=wal2json,test_decoding \
  -c fsync=off >postgres.log 2>&1 & postgres=$!
query() { "$bin/psql" -h 127.0.0.1 -p "$port" -U postgres -X -q -A -t -c 'SET client_min_messages = error' "$@"; }
for _ in $(seq 300); do query -c 'SELECT 1' >/dev/null 2>&1 && break; sleep 0.2; done
query -f - >/dev/null <<'EOF'
CREATE TABLE samples (id int PRIMARY KEY, value float8, total numeric);
CREATE TABLE names (name text NOT NULL UNIQUE, node text);
CREATE TABLE kv (key text PRIMARY KEY, expires int, value text);
ALTER TABLE kv ALTER value SET STORAGE EXTERNAL;
SELECT pg_create_logical_replication_slot('a', 'wal2json'), pg_create_logical_replication_slot('b', 'test_decoding');
EOF
query -c "INSERT INTO samples VALUES (1, 'NaN', 'infinity')" -c "INSERT INTO names VALUES ('a', 'node-1')" -c "UPDATE names SET node = 'node-2'" -c 'DELETE FROM names' \
  -c "INSERT INTO kv VALUES ('a', 1, repeat('x', 3000))" -c 'UPDATE kv SET expires = 2' -c 'UPDATE kv SET value = NULL'
{
  query -c "SELECT replace(data, repeat('x', 3000), '3000 bytes') FROM pg_logical_slot_get_changes('a', NULL, NULL, 'format-version', '2', 'include-types', 'false', 'include-transaction', 'false')"
  query -c "SELECT replace(data, repeat('x', 3000), '3000 bytes') FROM pg_logical_slot_get_changes('b', NULL, NULL) WHERE data LIKE '%kv: UPDATE%'"
  query -c "CREATE PUBLICATION p FOR TABLE names"
  query -c "INSERT INTO names VALUES ('a', 'node-1')" -c "UPDATE names SET node = 'node-2'" 2>&1 | head -1
} | tee out
cat >want <<'EOF'
{"action":"I","schema":"public","table":"samples","columns":[{"name":"id","value":1},{"name":"value","value":null},{"name":"total","value":null}]}
{"action":"I","schema":"public","table":"names","columns":[{"name":"name","value":"a"},{"name":"node","value":"node-1"}]}
{"action":"I","schema":"public","table":"kv","columns":[{"name":"key","value":"a"},{"name":"expires","value":1},{"name":"value","value":"3000 bytes"}]}
{"action":"U","schema":"public","table":"kv","columns":[{"name":"key","value":"a"},{"name":"expires","value":2}],"identity":[{"name":"key","value":"a"}]}
{"action":"U","schema":"public","table":"kv","columns":[{"name":"key","value":"a"},{"name":"expires","value":2},{"name":"value","value":null}],"identity":[{"name":"key","value":"a"}]}
table public.kv: UPDATE: key[text]:'a' expires[integer]:2 value[text]:unchanged-toast-datum
table public.kv: UPDATE: key[text]:'a' expires[integer]:2 value[text]:null
ERROR:  cannot update table "names" because it does not have a replica identity and publishes updates
EOF
diff want out
