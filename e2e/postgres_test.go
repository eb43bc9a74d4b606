package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/rowlock/rowlock/e2e/needs"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

// postgresSettings: these tests do not check whether the disk is reliable. Killed processes lose nothing that
// the system has.
var postgresSettings = map[string]string{"fsync": "off", "max_connections": "400"}

// startPostgres starts a server for one test, which may end, limit or read it as it likes.
func startPostgres(t testing.TB) *pgtest.Server {
	t.Helper()
	needs.PostgreSQL(t)
	pg, err := pgtest.Start(context.Background(), pgtest.Options{Settings: postgresSettings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Stop)
	return pg
}

// startStandby starts PostgreSQL with a standby, and makes a database in it. The URL names both servers.
func startStandby(t testing.TB) (primary, standby *pgtest.Server, database, url string) {
	t.Helper()
	primary = startPostgres(t)
	database = databaseOf(newDatabase(t, primary))
	standby, err := primary.Standby(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Stop)
	return primary, standby, database, fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/%s?sslmode=disable", primary.Port, standby.Port, database)
}

var common struct {
	once sync.Once
	pg   *pgtest.Server
	err  error
}

// sharedPostgres returns the server of all tests that only want a database of their own in one.
func sharedPostgres(t testing.TB) *pgtest.Server {
	t.Helper()
	needs.PostgreSQL(t)
	common.once.Do(func() {
		common.pg, common.err = pgtest.Start(context.Background(), pgtest.Options{Settings: postgresSettings})
	})
	if common.err != nil {
		t.Fatal(common.err)
	}
	return common.pg
}

// stopPostgres ends the server that all share, once all tests are over.
func stopPostgres() {
	if common.pg != nil {
		common.pg.Stop()
	}
}

// createDB makes an empty database, whose name begins with its purpose.
func createDB(t testing.TB, pg *pgtest.Server, name string) string {
	t.Helper()
	url, err := pg.CreateDB(context.Background(), fmt.Sprintf("%s_%d", name, rand.Uint32()))
	if err != nil {
		t.Fatal(err)
	}
	return url
}

func newDatabase(t testing.TB, pg *pgtest.Server) string {
	t.Helper()
	return createDB(t, pg, "db")
}
