package postgres_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore/postgres"
)

// TestDataChecksums: a server whose PostgreSQL has no checksums of pages logs that at its start, and no other does.
func TestDataChecksums(t *testing.T) {
	var log bytes.Buffer
	db := newDatabase(t, postgres.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	conn, err := pgx.Connect(t.Context(), db.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var setting string
	if err := conn.QueryRow(t.Context(), "SHOW data_checksums").Scan(&setting); err != nil {
		t.Fatal(err)
	}
	if err := db.Open(t).Close(); err != nil {
		t.Fatal(err)
	}
	if warned := strings.Contains(log.String(), "data_checksums = off"); warned != (setting == "off") {
		t.Errorf("data_checksums is %s, and the log says %q", setting, log.String())
	}
}
