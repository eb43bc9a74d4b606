#!/bin/sh
# modernc.org/sqlite v1.55.0 (SQLite for Go without cgo).
#
# Seen: an empty BLOB, x'', is read into a []byte as nil, though typeof() is "blob" and IS NULL is false. Written again, it is NULL. An
# empty TEXT is read as an empty slice.
# Expected: an empty slice; database/sql keeps nil for NULL, and []byte{} is what was written.
# Who is hurt: stores of keys and values on it: code that takes nil for "not there" loses empty values, and a copy of a row fails at a
# NOT NULL column that the row came from, or has NULL where there was a value.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"database/sql"
	"fmt"

	_ "modernc.org/sqlite"
)

func main() {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE kv (value BLOB NOT NULL)"); err != nil {
		panic(err)
	}
	for _, written := range []any{[]byte{}, "", []byte("a")} {
		if _, err := db.Exec("DELETE FROM kv; INSERT INTO kv VALUES (?)", written); err != nil {
			panic(err)
		}
		var kind string
		var null bool
		var value sql.Null[[]byte]
		var plain []byte
		if err := db.QueryRow("SELECT typeof(value), value IS NULL, value, value FROM kv").Scan(&kind, &null, &value, &plain); err != nil {
			panic(err)
		}
		_, err := db.Exec("INSERT INTO kv VALUES (?)", plain)
		fmt.Printf("%T %q: type %s, IS NULL %v, read as valid %v, nil %v, written again: %v\n", written, written, kind, null, value.Valid, plain == nil, err)
	}
}
EOF
go mod init finding 2>/dev/null
go get modernc.org/sqlite@v1.55.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
[]uint8 "": type blob, IS NULL false, read as valid true, nil true, written again: constraint failed: NOT NULL constraint failed: kv.value (1299)
string "": type text, IS NULL false, read as valid true, nil false, written again: <nil>
[]uint8 "a": type blob, IS NULL false, read as valid true, nil false, written again: <nil>
EOF
diff want out
