package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"time"
)

// weights are the sizes of a database.
type weights struct {
	objects int   // live ones
	live    int64 // bytes of their values
	size    int64 // bytes of the files, with indexes and logs
}

// databaseVersion returns the name and the version of the database.
func databaseVersion(ctx context.Context, store string) (string, error) {
	switch {
	case store == "", strings.HasPrefix(store, "sqlite:"):
		return ask[string](ctx, "sqlite::memory:", `SELECT 'SQLite ' || sqlite_version()`)
	case strings.HasPrefix(store, "postgres"):
		return ask[string](ctx, store, `SELECT 'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1)`)
	}
	return store, nil
}

// openStore opens a database for reading.
func openStore(store string) (*sql.DB, error) {
	if path, ok := strings.CutPrefix(store, "sqlite:"); ok {
		return sql.Open("sqlite", path+"?mode=ro")
	}
	return sql.Open("pgx", store)
}

// ask runs a query for one value.
func ask[T any](ctx context.Context, store, query string) (value T, err error) {
	db, err := openStore(store)
	if err != nil {
		return value, err
	}
	defer db.Close()
	if err := db.QueryRowContext(ctx, query).Scan(&value); err != nil {
		return value, fmt.Errorf("%s: %w", query, err)
	}
	return value, nil
}

// weigh measures a database.
func weigh(ctx context.Context, store string) (w weights, err error) {
	db, err := openStore(store)
	if err != nil {
		return w, err
	}
	defer db.Close()
	lite := strings.HasPrefix(store, "sqlite:")
	length := "length(value)"
	if !lite {
		length = "octet_length(value)" // does not decompress the value
	}
	for query, into := range map[string]any{
		`SELECT count(*) FROM kv WHERE superseded_revision IS NULL`:                         &w.objects,
		`SELECT coalesce(sum(` + length + `), 0) FROM kv WHERE superseded_revision IS NULL`: &w.live,
	} {
		if err := db.QueryRowContext(ctx, query).Scan(into); err != nil {
			return w, fmt.Errorf("%s: %w", query, err)
		}
	}
	if !lite {
		return w, db.QueryRowContext(ctx, `SELECT pg_database_size(current_database())`).Scan(&w.size)
	}
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(strings.TrimPrefix(store, "sqlite:") + suffix); err == nil {
			w.size += info.Size()
		}
	}
	return w, nil
}

// oldestPast returns how many seconds ago the oldest past version was superseded; 0 if there is none.
func oldestPast(ctx context.Context, store string) (float64, error) {
	written, err := ask[any](ctx, store, `SELECT max(written_at) FROM kv WHERE revision = (SELECT min(superseded_revision) FROM kv WHERE superseded_revision IS NOT NULL)`)
	switch at := written.(type) {
	case int64: // microseconds, in SQLite
		return time.Since(time.UnixMicro(at)).Seconds(), err
	case time.Time:
		return time.Since(at).Seconds(), err
	}
	return 0, err
}
