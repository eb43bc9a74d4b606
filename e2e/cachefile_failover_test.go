package e2e

import (
	"database/sql"
	"fmt"
	"testing"
)

// TestCacheFileThroughFailover promotes a standby that lacks the last commits of its primary, and makes other
// servers use their revisions for other objects. One server ran through all of it, with objects in memory
// that no longer exist; another one was stopped with such a file before it. After a restart both serve the
// present state.
func TestCacheFileThroughFailover(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	primary, standby, _, store := startStandby(t)
	through := startCached(t, store, "")
	through.before()
	stopped := startCached(t, store, "")
	through.stop()
	stopped.stop()
	through.again("after a stop", true)
	stopped.again("after a stop", true)
	if err := standby.StopReplication(ctx, primary); err != nil {
		t.Fatal(err)
	}
	through.lost()
	later := through.head()
	eventually(t, "the other server has the change", func() bool { return stopped.head() >= later })
	stopped.stop()
	primary.Crash()
	if err := standby.Promote(ctx); err != nil {
		t.Fatal(err)
	}
	other := startCached(t, store, "")
	other.others(later)
	other.wentBack()
	through.stop()
	through.again("a server that ran through it", true) // from the earlier file, which the standby knows
	through.wentBack()
	stopped.again("a server with a file of a later state", false)
	stopped.wentBack()
	for _, c := range []*cachedServer{through, stopped} {
		c.stop()
		c.again("after that", true)
		c.wentBack()
	}
}

// TestCacheFileOfALaterDatabase is the same where the database goes back by what lies on the disk, as by point-in-time recovery,
// once without a server and once below a server, and where it is restored from a backup of its own.
func TestCacheFileOfALaterDatabase(t *testing.T) {
	t.Parallel()
	pg := sharedPostgres(t)
	store := newDatabase(t, pg)
	name := databaseOf(store)
	admin := openSQL(t, pg.URL("postgres"))
	c := startCached(t, store, "")
	c.before()
	backup := t.TempDir() + "/backup"
	runBinary(t, "store", "backup", backup, "--store", store)
	c.stop()
	for _, state := range []string{"first", "second"} {
		eventually(t, "nobody is connected", func() bool { return sessions(t, admin, name) == 0 })
		execSQL(t, admin, fmt.Sprintf("CREATE DATABASE %s_%s TEMPLATE %s", name, state, name))
	}
	goBack := func(to string) {
		t.Helper()
		execSQL(t, admin, fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", name))
		execSQL(t, admin, fmt.Sprintf("ALTER DATABASE %s_%s RENAME TO %s", name, to, name))
	}
	others := func(later int64) {
		t.Helper()
		other := startCached(t, store, "")
		other.others(later)
		other.wentBack()
		other.s.Kill()
	}

	c.again("after a stop", true)
	c.lost()
	later := c.head()
	c.stop()
	goBack("first")
	others(later)
	c.again("a later file beside an earlier database", false)
	c.wentBack()
	c.write("lost-below", "lost")
	later = c.head()
	goBack("second")
	others(later)
	c.stop()
	c.again("after the database went back below it", false)
	c.wentBack()
	c.stop()

	execSQL(t, admin, fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", name))
	execSQL(t, admin, "CREATE DATABASE "+name)
	runBinary(t, "store", "restore", backup, "--store", store)
	others(later)
	c.again("a later file beside a restored backup", false)
	c.wentBack()
}

func execSQL(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// sessions counts the sessions of a database.
func sessions(t *testing.T, db *sql.DB, name string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = $1`, name).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
