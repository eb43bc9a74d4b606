#!/bin/sh
# php8.2-sqlite3 of Debian 12, PDO for SQLite.
#
# Seen: PDO binds what execute() gets as texts, numbers too. Where SQLite compares with a column that has a type, it converts them; where it does not, a number is
# less than each text: `HAVING count(*) > ?` and `json_extract(...) = ?` find nothing, `< ?` finds all. json_set writes "4" for 4, false is '', and of a
# float 14 digits are left. With bindValue(..., PDO::PARAM_INT), and with PHP's class SQLite3, numbers are numbers.
# Expected: the comparison of two numbers, as the same call has it with PostgreSQL, or an error.
# Who is hurt: programs that ask a store of objects for "more than one", "larger than" or a value inside of JSON: the answer is empty or everything, without an
# error, while `WHERE revision > ?` in the same program is right; and an object that json_set has changed is refused by the server.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download php8.2-cli php8.2-common php8.2-sqlite3 libargon2-1 libsodium23 libpcre2-8-0 libedit2 libsqlite3-0 libmagic1 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >main.php <<'END'
<?php
$db = new PDO('sqlite::memory:');
$db->exec('CREATE TABLE kv (name TEXT, revision INTEGER, value TEXT)');
$insert = $db->prepare('INSERT INTO kv VALUES (?, ?, ?)');
foreach ([['a', 1, '{"replicas":3}'], ['a', 2, '{"replicas":30}'], ['b', 3, '{"replicas":5}']] as $row) {
    $insert->execute($row);
}
$conditions = [
    'SELECT name FROM kv WHERE revision > ?' => 1,
    'SELECT name FROM kv GROUP BY name HAVING count(*) > ?' => 1,
    "SELECT name FROM kv WHERE json_extract(value, '$.replicas') = ?" => 3,
    "SELECT name FROM kv WHERE json_extract(value, '$.replicas') < ?" => 4,
    "SELECT json_set(value, '$.replicas', ?) FROM kv WHERE revision = 1" => 4,
    'SELECT quote(?)' => false,
    "SELECT quote(?)\n" => 0.1 + 0.2,
];
foreach ($conditions as $sql => $value) {
    $query = $db->prepare($sql);
    $query->execute([$value]);
    $given = $query->fetchAll(PDO::FETCH_COLUMN);
    echo trim($sql), ' [', var_export($value, true), ']: ', json_encode($given);
    if (is_int($value)) {
        $query->bindValue(1, $value, PDO::PARAM_INT);
        $query->execute();
        echo ', with PARAM_INT: ', json_encode($query->fetchAll(PDO::FETCH_COLUMN));
    }
    echo "\n";
}
END
extensions=$(echo usr/lib/php/20*)
LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu usr/bin/php8.2 -n -d extension_dir="$extensions" -d extension=pdo -d extension=pdo_sqlite main.php | tee out
cat >want <<'END'
SELECT name FROM kv WHERE revision > ? [1]: ["a","b"], with PARAM_INT: ["a","b"]
SELECT name FROM kv GROUP BY name HAVING count(*) > ? [1]: [], with PARAM_INT: ["a"]
SELECT name FROM kv WHERE json_extract(value, '$.replicas') = ? [3]: [], with PARAM_INT: ["a"]
SELECT name FROM kv WHERE json_extract(value, '$.replicas') < ? [4]: ["a","a","b"], with PARAM_INT: ["a"]
SELECT json_set(value, '$.replicas', ?) FROM kv WHERE revision = 1 [4]: ["{\"replicas\":\"4\"}"], with PARAM_INT: ["{\"replicas\":4}"]
SELECT quote(?) [false]: ["''"]
SELECT quote(?) [0.30000000000000004]: ["'0.3'"]
END
diff want out
