//go:build linux

package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

// store reads the database of the running server by SQL.
type store struct {
	url    string
	file   string // of SQLite
	db     *sql.DB
	pg     *pgtest.Server
	tables []string
}

// openStore makes a database whose newest revision is begin.
func openStore(ctx context.Context, kind, binary, dir string, begin int64) (s *store, err error) {
	s = &store{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	driver, at, column := "sqlite", "", "value"
	tables := `SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'kv%'`
	switch kind {
	case "sqlite":
		s.file = filepath.Join(dir, "db", "rowlock.db")
		s.url, at = "sqlite:"+s.file, "file:"+s.file+"?_pragma=busy_timeout(10000)"
		if err := os.Mkdir(filepath.Dir(s.file), 0o700); err != nil {
			return s, err
		}
	case "postgres":
		driver, column, tables = "pgx", "number", `SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname LIKE 'kv%'`
		// The periodic work of PostgreSQL is accelerated like everything else.
		s.pg, err = pgtest.Start(ctx, pgtest.Options{Segment: 1, Settings: map[string]string{"autovacuum_naptime": "'5s'", "checkpoint_timeout": "'30s'", "max_wal_size": "'64MB'"}})
		if err != nil {
			return s, err
		}
		if s.url, err = s.pg.CreateDB(ctx, "years"); err != nil {
			return s, err
		}
		at = s.url
	default:
		return s, fmt.Errorf("-store %q: want sqlite or postgres", kind)
	}
	if out, err := exec.CommandContext(ctx, binary, "store", "migrate", "--store", s.url).CombinedOutput(); err != nil {
		return s, fmt.Errorf("rowlock store migrate: %w\n%s", err, out)
	}
	if s.db, err = sql.Open(driver, at); err != nil {
		return s, err
	}
	s.db.SetMaxOpenConns(1)
	if _, err := s.db.ExecContext(ctx, fmt.Sprintf("UPDATE kv_meta SET %s = %d WHERE key IN ('revision', 'floor')", column, begin)); err != nil {
		return s, fmt.Errorf("setting the revision: %w", err)
	}
	rows, err := s.db.QueryContext(ctx, tables)
	if err != nil {
		return s, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return s, err
		}
		s.tables = append(s.tables, name)
	}
	return s, rows.Err()
}

func (s *store) close() {
	if s.db != nil {
		s.db.Close()
	}
	if s.pg != nil {
		s.pg.Stop()
	}
}

// rows counts the rows of each table, and the live objects.
func (s *store) rows(ctx context.Context) (map[string]float64, error) {
	counts := map[string]float64{}
	for _, table := range s.tables {
		if err := s.number(ctx, counts, "rows of "+table, "SELECT count(*) FROM "+table); err != nil {
			return nil, err
		}
	}
	live := "deleted = 0"
	if s.pg != nil {
		live = "NOT deleted"
	}
	return counts, s.number(ctx, counts, "live objects", "SELECT count(*) FROM kv WHERE superseded_revision IS NULL AND "+live)
}

func (s *store) number(ctx context.Context, into map[string]float64, name, query string) error {
	var n float64
	if err := s.db.QueryRowContext(ctx, query).Scan(&n); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	into[name] = n
	return nil
}

// sizes returns the sizes of the database's files, and of the memory of PostgreSQL's sessions.
func (s *store) sizes(ctx context.Context) (map[string]float64, error) {
	sizes := map[string]float64{}
	if s.pg == nil {
		sizes["database file"], sizes["write-ahead log"] = size(s.file), size(s.file+"-wal")
		return sizes, nil
	}
	if err := s.number(ctx, sizes, "database", "SELECT pg_database_size(current_database())"); err != nil {
		return nil, err
	}
	rows, err := s.db.QueryContext(ctx, `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	sum := 0.0
	for rows.Next() {
		var pid int
		if err := rows.Scan(&pid); err != nil {
			return nil, err
		}
		sum += anonymous(pid)
	}
	sizes["memory of database sessions"] = sum
	return sizes, rows.Err()
}

func size(path string) float64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return float64(info.Size())
}

// sizeBelow returns the size of the files in a folder, and their names.
func sizeBelow(dir string) (sum float64, names []string) {
	entries, _ := os.ReadDir(dir) // none yet: nothing
	for _, e := range entries {
		if !e.IsDir() && !strings.HasPrefix(e.Name(), "rowlock.db") {
			sum += size(filepath.Join(dir, e.Name()))
			names = append(names, e.Name())
		}
	}
	return sum, names
}
