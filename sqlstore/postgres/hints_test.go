package postgres_test

import (
	"context"
	"fmt"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
)

// TestNotificationsTellNothing: every user that may connect to the database can listen. Notifications contain
// a number of the process that wrote, the same for each write: no name of an object, and nothing of its
// value.
func TestNotificationsTellNothing(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	spy, err := pgx.Connect(ctx, db.url)
	if err != nil {
		t.Fatal(err)
	}
	defer spy.Close(context.Background())
	// All channels that the driver names are this one: a LISTEN takes no wildcard.
	if _, err := spy.Exec(ctx, "LISTEN rowlock"); err != nil {
		t.Fatal(err)
	}
	d := db.Open(t)
	hints := d.Hints(ctx)
	defer func() {
		cancel()
		for range hints { // until it is closed
		}
	}()
	number := regexp.MustCompile(`^[0-9a-f]{8,64}$`)
	var first string
	for i := range 5 {
		op := sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "secrets", Namespace: "default", Name: fmt.Sprintf("name-%d", i)}, Value: []byte(`{"data":"words"}`)}
		out, err := d.Apply(ctx, []sqlstore.Txn{{Ops: []sqlstore.Op{op}}}, time.Now())
		if err != nil || out[0].Err != nil {
			t.Fatal(err, out)
		}
		n, err := spy.WaitForNotification(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = n.Payload
		}
		if n.Channel != "rowlock" || n.Payload != first || !number.MatchString(n.Payload) {
			t.Errorf("write %d is notified as %q on %q, the first was %q", i, n.Payload, n.Channel, first)
		}
	}
}

// TestListensForLong: idle_session_timeout, which PostgreSQL has from release 14 on, does not end the session that listens.
func TestListensForLong(t *testing.T) {
	db := migratedDatabase(t, postgres.Config{})
	var modern bool
	if db.Query(t, "SELECT EXISTS (SELECT FROM pg_settings WHERE name = 'idle_session_timeout')", &modern); !modern {
		return
	}
	db.Exec(t, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET idle_session_timeout = 500', current_database()); END $$`)
	var again atomic.Int64
	db.cfg.Reconnected = func() { again.Add(1) }
	ctx, cancel := context.WithCancel(t.Context())
	hints := db.Open(t).Hints(ctx)
	defer func() {
		cancel()
		for range hints { // until it is closed
		}
	}()
	const listens = `SELECT EXISTS (SELECT FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE datname = current_database() AND locktype = 'advisory' AND clock_timestamp() - state_change > '2s')`
	for idle := false; !idle; time.Sleep(10 * time.Millisecond) {
		if n := again.Load(); n > 0 {
			t.Fatalf("the session was made anew %d times", n)
		}
		db.Query(t, listens, &idle)
	}
}
