#!/bin/sh
# github.com/rubenv/sql-migrate v1.8.1 (migrations for PostgreSQL, SQLite and others; Helm's SQL storage runs on it), with modernc.org/sqlite v1.55.0.
#
# Seen: each line that begins with "-- " is taken out of a migration before it is cut into statements, also inside of a quoted text, of a function's
# body and between StatementBegin and StatementEnd. A carriage return before a newline goes as well. The migration succeeds, and what is stored
# is shorter than what was written. Lines that begin with "--" and no blank are kept.
# Expected: the text between the quotes, or an error; psql, sqlite3 and golang-migrate store all of it.
# Who is hurt: seeds with reports, Lua scripts, mail templates ("-- " begins a signature) or SQL kept as text, and functions whose comments are
# gone from the server: what runs there is not what was reviewed, and a checksum of it differs from the file's.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"database/sql"
	"fmt"
	"os"

	migrate "github.com/rubenv/sql-migrate"
	_ "modernc.org/sqlite"
)

const migration = `-- +migrate Up
CREATE TABLE texts (name text, value text);
INSERT INTO texts VALUES ('lua', 'x = 1
-- reset
--[[ block ]]
return x');
-- +migrate StatementBegin
` + "INSERT INTO texts VALUES ('mail', 'Hello\n-- \nOperations');\n" + `-- +migrate StatementEnd
`

func main() {
	db, err := sql.Open("sqlite", "file:kv.db")
	if err != nil {
		panic(err)
	}
	if err := os.Mkdir("migrations", 0o700); err != nil {
		panic(err)
	}
	if err := os.WriteFile("migrations/1.sql", []byte(migration), 0o600); err != nil {
		panic(err)
	}
	n, err := migrate.Exec(db, "sqlite3", migrate.FileMigrationSource{Dir: "migrations"}, migrate.Up)
	fmt.Println("migrations:", n, "error:", err)
	rows, err := db.Query("SELECT name, value FROM texts")
	if err != nil {
		panic(err)
	}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			panic(err)
		}
		fmt.Printf("%s: %q\n", name, value)
	}
	if err := rows.Err(); err != nil {
		panic(err)
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/rubenv/sql-migrate@v1.8.1 modernc.org/sqlite@v1.55.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
migrations: 1 error: <nil>
lua: "x = 1\n--[[ block ]]\nreturn x"
mail: "Hello\nOperations"
EOF
diff want out
