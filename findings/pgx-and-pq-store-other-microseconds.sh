#!/bin/sh
# github.com/jackc/pgx/v5 v5.12.0 and github.com/lib/pq v1.12.3, against PostgreSQL 18 of @electric-sql/pglite 0.5.14 with
# its socket 0.2.17 (npm).
#
# Seen: of a time with nanoseconds, pgx sends the microsecond that has begun, and lib/pq all nine digits, which PostgreSQL
# rounds to the nearest. The same time.Time is stored as two values, for half of all times, and a row that the one has
# written is not found by the other. 59.9999996 s on New Year's Eve is the next year for lib/pq.
# Expected: one value for one time and column, as both drivers write a time.Time into a timestamptz.
# Who is hurt: services that use both (a migration tool, a queue or an older service has lib/pq), or move from one to the
# other: optimistic locks by updated_at, pages that begin after the last time, deduplication by time. Half of the
# rows match, so it looks like a race.
set -eu
dir=$(mktemp -d); trap 'kill "$server" 2>/dev/null || true; rm -rf "$dir"' EXIT; cd "$dir"
server=
npm install --silent --no-save --prefix . @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 >/dev/null
cat >main.mjs <<'EOF'
import { PGlite } from '@electric-sql/pglite'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
import { createServer } from 'node:net'
import { renameSync, writeFileSync } from 'node:fs'

const probe = createServer().listen(0, '127.0.0.1', () => {
  const { port } = probe.address()
  probe.close(async () => {
    await new PGLiteSocketServer({ db: await PGlite.create(), port, host: '127.0.0.1', maxConnections: 4 }).start()
    writeFileSync('port.new', String(port))
    renameSync('port.new', 'port')
  })
})
EOF
cat >main.go <<'EOF'
package main

import (
	"database/sql"
	"fmt"
	"os"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
)

func main() {
	with := func(driver string, run func(*sql.DB) error) {
		settings := "host=127.0.0.1 port=" + os.Args[1] + " user=postgres dbname=postgres sslmode=disable"
		if driver == "pgx" { // the server keeps named statements of connections that have ended
			settings += " default_query_exec_mode=describe_exec"
		}
		db, err := sql.Open(driver, settings)
		if err != nil {
			panic(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(1)
		if err := run(db); err != nil {
			panic(driver + ": " + err.Error())
		}
	}
	with("pgx", func(db *sql.DB) error {
		_, err := db.Exec("CREATE TABLE kept (driver text, at timestamptz)")
		return err
	})
	for _, nanoseconds := range []int{123456400, 123456600, 999999600} {
		at := time.Date(2024, 12, 31, 23, 59, 59, nanoseconds, time.UTC)
		for _, driver := range []string{"pgx", "postgres"} {
			with(driver, func(db *sql.DB) error {
				_, err := db.Exec("INSERT INTO kept VALUES ($1, $2)", driver, at)
				return err
			})
		}
		with("pgx", func(db *sql.DB) error {
			var pgx, pq string
			err := db.QueryRow(`SELECT (SELECT (at AT TIME ZONE 'UTC')::text FROM kept WHERE driver = 'pgx'),
				(SELECT (at AT TIME ZONE 'UTC')::text FROM kept WHERE driver = 'postgres')`).Scan(&pgx, &pq)
			if err != nil {
				return err
			}
			var found int
			if err := db.QueryRow("SELECT count(*) FROM kept WHERE driver = 'postgres' AND at = $1", at).Scan(&found); err != nil {
				return err
			}
			fmt.Printf("%s: pgx %s, lib/pq %s, rows of lib/pq that pgx finds: %d\n", at.Format("05.000000000"), pgx, pq, found)
			_, err = db.Exec("DELETE FROM kept")
			return err
		})
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/jackc/pgx/v5@v5.12.0 github.com/lib/pq@v1.12.3 2>/dev/null
go build -mod=mod -o finding .
node main.mjs & server=$!
until [ -e port ]; do kill -0 "$server"; sleep 1; done
./finding "$(cat port)" | tee out
cat >want <<'EOF'
59.123456400: pgx 2024-12-31 23:59:59.123456, lib/pq 2024-12-31 23:59:59.123456, rows of lib/pq that pgx finds: 1
59.123456600: pgx 2024-12-31 23:59:59.123456, lib/pq 2024-12-31 23:59:59.123457, rows of lib/pq that pgx finds: 0
59.999999600: pgx 2024-12-31 23:59:59.999999, lib/pq 2025-01-01 00:00:00, rows of lib/pq that pgx finds: 0
EOF
diff want out
