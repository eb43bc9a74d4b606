#!/bin/sh
# github.com/doug-martin/goqu/v9 v9.19.0, a query builder that writes values into the statement unless Prepared(true) is set, and the Interpolate of
# github.com/huandu/go-sqlbuilder v1.44.1, with modernc.org/sqlite v1.55.0 and PostgreSQL 18 of @electric-sql/pglite 0.5.14 (npm).
#
# Seen: goqu writes a []byte as a text. Each byte that is no UTF-8 becomes the three bytes of U+FFFD; PostgreSQL takes a backslash for an escape of bytea, so that
# `a\101` is stored as "aA"; SQLite stores a text, which is not equal to the BLOB of the same bytes. A uint64 from 2^63 on is written as a negative number, in
# prepared statements too. go-sqlbuilder writes a time with its zone's abbreviation: one in China, CST, is stored as one in Chicago, 14 hours off. None of it
# is an error.
# Expected: the value that was given, as every driver writes it.
# Who is hurt: stores of objects, keys and hashes, whose rows read as something else; and programs in a time zone whose abbreviation another one has too. Tests
# with ASCII and in UTC see neither.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . @electric-sql/pglite@0.5.14 >/dev/null
cat >main.go <<'EOF'
package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"time"
	_ "time/tzdata"

	"github.com/doug-martin/goqu/v9"
	_ "github.com/doug-martin/goqu/v9/dialect/postgres"
	_ "github.com/doug-martin/goqu/v9/dialect/sqlite3"
	"github.com/huandu/go-sqlbuilder"
	_ "modernc.org/sqlite"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	db, err := sql.Open("sqlite", ":memory:")
	check(err)
	db.SetMaxOpenConns(1)
	_, err = db.Exec("CREATE TABLE kept (value BLOB)")
	check(err)
	var statements []string
	for _, value := range []any{[]byte("k8s"), []byte{'k', 0xff, 0xfe}, []byte(`a\101`), uint64(1 << 63)} {
		for _, prepared := range []bool{false, true} {
			query, args, err := goqu.Dialect("sqlite3").Insert("kept").Rows(goqu.Record{"value": value}).Prepared(prepared).ToSQL()
			check(err)
			_, err = db.Exec("DELETE FROM kept")
			check(err)
			_, err = db.Exec(query, args...)
			check(err)
			var kind, stored string
			check(db.QueryRow("SELECT typeof(value), CASE typeof(value) WHEN 'integer' THEN value ELSE hex(value) END FROM kept").Scan(&kind, &stored))
			fmt.Printf("goqu, SQLite, %v, prepared %v: %s %s\n", value, prepared, kind, stored)
		}
		if bytes, ok := value.([]byte); ok {
			query, _, err := goqu.Dialect("postgres").Insert("kept").Rows(goqu.Record{"value": bytes}).ToSQL()
			check(err)
			statements = append(statements, query)
		}
	}
	zone, err := time.LoadLocation("Asia/Shanghai")
	check(err)
	at := time.Date(2026, 1, 2, 10, 0, 0, 0, zone)
	query, _, err := goqu.Dialect("postgres").Insert("times").Rows(goqu.Record{"value": at}).ToSQL()
	check(err)
	statements = append(statements, query)
	query, err = sqlbuilder.PostgreSQL.Interpolate("INSERT INTO times VALUES ($1)", []any{at})
	check(err)
	file, err := os.Create("statements")
	check(err)
	check(json.NewEncoder(file).Encode(append(statements, query)))
	check(file.Close())
}
EOF
cat >main.mjs <<'EOF'
import fs from 'node:fs'
import { PGlite } from '@electric-sql/pglite'

const db = await PGlite.create()
await db.exec('CREATE TABLE kept (value bytea); CREATE TABLE times (value timestamptz); SET TIME ZONE 8')
for (const statement of JSON.parse(fs.readFileSync('statements', 'utf8'))) {
  const table = statement.includes('kept') ? 'kept' : 'times'
  await db.exec(`DELETE FROM ${table}; ${statement}`)
  console.log(`PostgreSQL, ${statement}: ${(await db.query(`SELECT value::text AS value FROM ${table}`)).rows[0].value}`)
}
await db.close()
process.exit(0)
EOF
go mod init finding 2>/dev/null
go get github.com/doug-martin/goqu/v9@v9.19.0 github.com/huandu/go-sqlbuilder@v1.44.1 modernc.org/sqlite@v1.55.0 2>/dev/null
{ go run -mod=mod .; node main.mjs; } | tee out
cat >want <<'EOF'
goqu, SQLite, [107 56 115], prepared false: text 6B3873
goqu, SQLite, [107 56 115], prepared true: blob 6B3873
goqu, SQLite, [107 255 254], prepared false: text 6BEFBFBDEFBFBD
goqu, SQLite, [107 255 254], prepared true: blob 6BFFFE
goqu, SQLite, [97 92 49 48 49], prepared false: text 615C313031
goqu, SQLite, [97 92 49 48 49], prepared true: blob 615C313031
goqu, SQLite, 9223372036854775808, prepared false: integer -9223372036854775808
goqu, SQLite, 9223372036854775808, prepared true: integer -9223372036854775808
PostgreSQL, INSERT INTO "kept" ("value") VALUES ('k8s'): \x6b3873
PostgreSQL, INSERT INTO "kept" ("value") VALUES ('k��'): \x6befbfbdefbfbd
PostgreSQL, INSERT INTO "kept" ("value") VALUES ('a\101'): \x6141
PostgreSQL, INSERT INTO "times" ("value") VALUES ('2026-01-02T02:00:00Z'): 2026-01-02 10:00:00+08
PostgreSQL, INSERT INTO times VALUES ('2026-01-02 10:00:00 CST'): 2026-01-03 00:00:00+08
EOF
diff want out
