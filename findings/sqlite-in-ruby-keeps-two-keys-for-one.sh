#!/bin/sh
# ruby-sqlite3 1.4.2 of Debian 12 with Ruby 3.1.
#
# Seen: a String whose encoding is ASCII-8BIT is bound as a BLOB, and for SQLite a BLOB is never equal to a text. What comes from a socket, from a body of Net::HTTP
# or out of pack and Base64 has this encoding, though its bytes are the same and Ruby's == says so. A table with a text as its primary key has both; LIKE and
# ranges find the one, a look-up the one or the other. An Integer from 2^63 on is stored as a float.
# Expected: a column declared TEXT that holds one key once, or an error.
# Who is hurt: stores whose keys come from requests in one place and from code in another: an upsert inserts a second row, a list by prefix misses what was
# written over the network, and nothing that is printed shows the difference.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download ruby3.1 libruby3.1 ruby-sqlite3=1.4.2-4+b3 libsqlite3-0 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.rb <<'END'
require 'socket'
require 'sqlite3'

db = SQLite3::Database.new(':memory:')
db.execute('CREATE TABLE kv (key TEXT PRIMARY KEY, value)')
code = '/registry/pods/a'
reader, writer = UNIXSocket.pair
writer.write(code)
writer.close
network = reader.read
puts "== in Ruby: #{code == network}, encodings: #{code.encoding}, #{network.encoding}"
2.times { |i| db.execute('INSERT INTO kv VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value', [i.zero? ? network : code, i]) }
puts "rows: #{db.execute('SELECT key, typeof(key), value FROM kv')}"
puts "by the key of the code: #{db.execute('SELECT value FROM kv WHERE key = ?', [code])}, of the network: #{db.execute('SELECT value FROM kv WHERE key = ?', [network])}"
puts "by LIKE '/registry/%': #{db.execute("SELECT value FROM kv WHERE key LIKE '/registry/%'")}"
puts "2^63: #{db.execute('SELECT typeof(?), ?', [2**63, 2**63])}"
END
RUBYLIB=usr/lib/ruby/vendor_ruby:usr/lib/x86_64-linux-gnu/ruby/vendor_ruby/3.1.0:usr/lib/ruby/3.1.0:usr/lib/x86_64-linux-gnu/ruby/3.1.0 \
  LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu usr/bin/ruby3.1 --disable-gems main.rb | tee out
cat >want <<'END'
== in Ruby: true, encodings: UTF-8, ASCII-8BIT
rows: [["/registry/pods/a", "blob", 0], ["/registry/pods/a", "text", 1]]
by the key of the code: [[1]], of the network: [[0]]
by LIKE '/registry/%': [[1]]
2^63: [["real", 9.223372036854776e+18]]
END
diff want out
