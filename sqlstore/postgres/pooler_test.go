package postgres_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/rowlock/rowlock/e2e/needs"
	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// TestPooler runs the suite through PgBouncer: in session mode with LISTEN as ever, in
// transaction mode without it.
func TestPooler(t *testing.T) {
	for mode, with := range map[string]struct {
		cfg    postgres.Config
		groups []string
	}{
		"session":     {postgres.Config{}, []string{"Several"}},
		"transaction": {postgres.Config{Poll: true}, []string{"Apply", "Store", "Several"}},
	} {
		t.Run(mode, func(t *testing.T) {
			needs.PgBouncer(t)
			pooler, err := pgtest.StartPooler(context.Background(), server, mode)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pooler.Stop)
			storetest.Run(t, func(t testing.TB) storetest.Database {
				db := migratedDatabase(t, with.cfg)
				u, err := url.Parse(db.url)
				if err != nil {
					t.Fatal(err)
				}
				db.url = pooler.URL(u.Path[1:])
				return db
			}, with.groups...)
		})
	}
}
