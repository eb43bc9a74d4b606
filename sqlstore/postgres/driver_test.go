package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/rowlock/rowlock/e2e/needs"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// server is the one PostgreSQL of this package's tests; each test has a database of its own.
var server *pgtest.Server

func TestMain(m *testing.M) {
	storetest.CrashChild(func(ctx context.Context, url string) (sqlstore.Driver, error) {
		url, relaxed := strings.CutPrefix(url, "relaxed:")
		cfg := postgres.Config{}
		if relaxed {
			cfg.Relaxed = []string{"pods"}
		}
		return postgres.Open(ctx, url, cfg)
	})
	if _, err := pgtest.Binaries(); err != nil {
		code := 1
		if !needs.Required() {
			err, code = errors.New(needs.Skipped(err)), 0
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(code)
	}
	var err error
	// These tests do not check whether the disk is reliable, and tests that measure tables and plans vacuum
	// themselves, because autovacuum is unpredictable.
	server, err = pgtest.Start(context.Background(), pgtest.Options{Settings: map[string]string{"fsync": "off", "max_connections": "200", "autovacuum": "off"}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	server.Stop()
	// The thread that forks servers lives as long as the process.
	if err := goleak.Find(goleak.IgnoreAnyFunction("github.com/rowlock/rowlock/sqlstore/postgres/pgtest.(*forkThread).loop")); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var databases atomic.Int64

// database is a fresh database of the server.
type database struct {
	url string
	cfg postgres.Config
}

func newDatabase(t testing.TB, cfg postgres.Config) database {
	t.Helper()
	url, err := server.CreateDB(context.Background(), fmt.Sprintf("t%d", databases.Add(1)))
	if err != nil {
		t.Fatal(err)
	}
	return database{url, cfg}
}

// migrated is a database with the schema, which no server has opened.
const migrated = "migrated"

var makeMigrated = sync.OnceValue(func() error {
	url, err := server.CreateDB(context.Background(), migrated)
	if err != nil {
		return err
	}
	return postgres.MigrateUp(context.Background(), url)
})

// migratedDatabase is newDatabase for tests that do not check how a schema is made: a copy of migrated, with its cluster ID.
func migratedDatabase(t testing.TB, cfg postgres.Config) database {
	t.Helper()
	err := makeMigrated()
	var url string
	if err == nil {
		url, err = server.CopyDB(context.Background(), fmt.Sprintf("t%d", databases.Add(1)), migrated)
	}
	if err != nil {
		t.Fatal(err)
	}
	return database{url, cfg}
}

func (d database) Open(t testing.TB) sqlstore.Driver {
	t.Helper()
	drv, err := postgres.Open(t.Context(), d.url, d.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := drv.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return drv
}

func (d database) Exec(t testing.TB, query string) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// Query reads one value.
func (d database) Query(t testing.TB, query string, value any) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(context.Background(), query).Scan(value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// Ended waits until no session is left.
func (d database) Ended(t testing.TB) {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), d.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	const others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		var left int
		if err := conn.QueryRow(context.Background(), others).Scan(&left); err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d sessions do not end", left)
		}
	}
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Database { return migratedDatabase(t, postgres.Config{}) })
}

// deep is a database whose snapshots are all read as those far back are, by a driver
// that polls: two ways of reading and two of hearing in two runs of the suite.
type deep struct{ database }

func (d deep) Open(t testing.TB) sqlstore.Driver {
	drv := d.database.Open(t).(*postgres.Driver)
	drv.SetFar(-1)
	return drv
}

func TestConformancePollingAndDeep(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Database { return deep{migratedDatabase(t, postgres.Config{Poll: true})} })
}

func TestCrash(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	storetest.Crash(t, db, db.url)
}

func TestCrashPacking(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	storetest.CrashPacking(t, db, db.url)
}

func Benchmark(b *testing.B) {
	storetest.Bench(b, func(t testing.TB) storetest.Database { return newDatabase(t, postgres.Config{}) })
}
