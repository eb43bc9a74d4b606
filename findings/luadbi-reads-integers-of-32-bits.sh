#!/bin/sh
# lua-dbi-sqlite3 0.7.2 of Debian 12 (LuaDBI, which Prosody and others store with), with Lua 5.4 and SQLite 3.40.1.
#
# Seen: an integer of SQLite is read with 32 bits of its 64, without an error: 2147483648 is -2147483648 and 4294967297 is 1. Every number is
# written as a float, an integer of Lua too: 2^53+1 is stored as 2^53, and in a column without a type 5 is stored as 5.0. A BLOB or a text
# is read up to its first zero byte.
# Expected: integers of 64 bits, which both sides have: Lua since 5.3.
# Who is hurt: scripts that read a store of keys and revisions: after two thousand million revisions the newest one is negative, and times in
# milliseconds are wrong from the start. An object in Kubernetes' Protobuf is "k8s".
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download lua-dbi-sqlite3=0.7.2-4 lua-dbi-common=0.7.2-4 lua5.4=5.4.4-3+deb12u1 libreadline8 libsqlite3-0=3.40.1-2+deb12u2 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.lua <<'EOF'
local DBI = require('DBI')
local db = assert(DBI.Connect('SQLite3', 'kv.db'))
db:autocommit(true)

local function run(query, ...)
  local statement = assert(db:prepare(query))
  assert(statement:execute(...))
  return statement:fetch(true)
end

run('CREATE TABLE kv (typed INTEGER, plain)')
for _, number in ipairs({5, 2147483648, 4294967297, 9007199254740993}) do
  run('DELETE FROM kv')
  run('INSERT INTO kv VALUES (?, ?)', number, number)
  local row = run('SELECT typed AS read, CAST(typed AS TEXT) AS typed, CAST(plain AS TEXT) AS plain FROM kv')
  print(string.format('%d: stored as %s in an INTEGER column, as %s in one without a type, read as %s', number, row.typed, row.plain, row.read))
end
run("CREATE TABLE revisions AS SELECT 4294967297 AS id")
print('4294967297 written by SQLite itself, read as ' .. run('SELECT id FROM revisions').id)
print("x'6b3873000a' read as " .. #run("SELECT x'6b3873000a' AS value").value .. ' bytes')
EOF
LUA_PATH="usr/share/lua/5.4/?.lua" LUA_CPATH="usr/lib/x86_64-linux-gnu/lua/5.4/?.so" LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu:lib/x86_64-linux-gnu \
  usr/bin/lua5.4 main.lua | tee out
cat >want <<'EOF'
5: stored as 5 in an INTEGER column, as 5.0 in one without a type, read as 5
2147483648: stored as 2147483648 in an INTEGER column, as 2147483648.0 in one without a type, read as -2147483648
4294967297: stored as 4294967297 in an INTEGER column, as 4294967297.0 in one without a type, read as 1
9007199254740993: stored as 9007199254740992 in an INTEGER column, as 9.00719925474099e+15 in one without a type, read as 0
4294967297 written by SQLite itself, read as 1
x'6b3873000a' read as 3 bytes
EOF
diff want out
