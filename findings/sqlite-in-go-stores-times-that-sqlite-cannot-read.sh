#!/bin/sh
# modernc.org/sqlite v1.55.0 (SQLite for Go without cgo), its storing of a time.Time.
#
# Seen: a time.Time is stored as its String(): "2026-01-02 10:00:00 +0100 CET", and with a monotonic reading, which time.Now()
# has, "... m=+0.012345" after it. SQLite's functions answer NULL for such a text; as texts, an earlier time in another zone
# is after a later one; and the same instant is not equal to itself. Scanned into a time.Time the column looks right. With
# `_time_format=sqlite` in the address the functions read it; order and equality are as before.
# Expected: a format that SQLite's own functions read, in UTC.
# Who is hurt: programs with leases, retention or paging by time in SQL: `WHERE expires < datetime('now')` finds nothing, so that
# nothing expires, and ORDER BY is right until a machine with another zone, or summer time, writes.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"database/sql"
	"fmt"
	"strings"
	"time"

	_ "modernc.org/sqlite"
)

func main() {
	for _, settings := range []string{"", "?_time_format=sqlite"} {
		db, err := sql.Open("sqlite", "file::memory:"+settings)
		if err != nil {
			panic(err)
		}
		db.SetMaxOpenConns(1)
		query := func(statement string, args ...any) (result string) {
			if err := db.QueryRow(statement, args...).Scan(&result); err != nil {
				panic(err)
			}
			return result
		}
		if _, err := db.Exec("CREATE TABLE t (name, at)"); err != nil {
			panic(err)
		}
		early := time.Date(2026, 1, 2, 10, 0, 0, 0, time.FixedZone("CET", 3600))
		late := time.Date(2026, 1, 2, 9, 30, 0, 0, time.UTC)
		for name, at := range map[string]time.Time{"early": early, "late": late, "now": time.Now()} {
			if _, err := db.Exec("INSERT INTO t VALUES (?, ?)", name, at); err != nil {
				panic(err)
			}
		}
		fmt.Printf("settings %q: stored as %q\n", settings, query("SELECT at || '' FROM t WHERE name = 'early'"))
		fmt.Println("  with a monotonic reading:", strings.Contains(query("SELECT at || '' FROM t WHERE name = 'now'"), " m=+"))
		fmt.Println("  datetime(at):", query("SELECT coalesce(datetime(at), 'NULL') FROM t WHERE name = 'early'"))
		fmt.Println("  older than an hour from now:", query("SELECT count(*) FROM t WHERE datetime(at) < datetime('now', '+1 hour')"), "of 3")
		fmt.Println("  first of two by at:", query("SELECT name FROM t WHERE name != 'now' ORDER BY at LIMIT 1"))
		fmt.Println("  rows with the time of early in UTC:", query("SELECT count(*) FROM t WHERE at = ?", early.UTC()))
		db.Close()
	}
}
EOF
go mod init finding 2>/dev/null
go get modernc.org/sqlite@v1.55.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
settings "": stored as "2026-01-02 10:00:00 +0100 CET"
  with a monotonic reading: true
  datetime(at): NULL
  older than an hour from now: 0 of 3
  first of two by at: late
  rows with the time of early in UTC: 0
settings "?_time_format=sqlite": stored as "2026-01-02 10:00:00+01:00"
  with a monotonic reading: false
  datetime(at): 2026-01-02 09:00:00
  older than an hour from now: 3 of 3
  first of two by at: late
  rows with the time of early in UTC: 0
EOF
diff want out
