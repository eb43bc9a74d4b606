package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// TestSizeIsSteady sees that the table stops growing under a steady load, with VACUUM
// instead of autovacuum, which has a clock of its own.
func TestSizeIsSteady(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	storetest.BoundedGrowth(t, db.Open(t), func() { db.Exec(t, "VACUUM kv") })
}

// TestAutovacuumIsSet looks for the settings of a new table, and for an operator's own
// in one that is migrated.
func TestAutovacuumIsSet(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	wantOptions := func(want string) {
		t.Helper()
		if err := db.Open(t).Close(); err != nil {
			t.Fatal(err)
		}
		conn, err := pgx.Connect(t.Context(), db.url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		var got string
		if err := conn.QueryRow(t.Context(), "SELECT reloptions::text FROM pg_class WHERE relname = 'kv'").Scan(&got); err != nil || got != want {
			t.Errorf("the table's settings are %s, %v; want %s", got, err, want)
		}
	}
	wantOptions("{autovacuum_vacuum_scale_factor=0.02,autovacuum_vacuum_cost_delay=1}")
	db.Exec(t, `ALTER TABLE kv RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_cost_delay);
ALTER TABLE kv SET (autovacuum_vacuum_threshold = 1000);
UPDATE schema_migrations SET version = 3`)
	wantOptions("{autovacuum_vacuum_threshold=1000}")
}

func TestRestatedBeneath(t *testing.T) {
	d := newDatabase(t, postgres.Config{}).Open(t)
	storetest.ReplacedWhilePacking(t, d, func(between func()) error { return d.(*postgres.Driver).PackAround(t.Context(), between) })
}

func TestOlderBinaries(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	storetest.OlderBinaries(t, db.Open(t), func() (int64, error) { return db.compatible(t.Context()) })
}

// compatible returns the oldest schema whose binaries the database lets in.
func (db database) compatible(ctx context.Context) (n int64, err error) {
	conn, err := pgx.Connect(ctx, db.url)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.Background())
	err = conn.QueryRow(ctx, "SELECT number FROM kv_meta WHERE key = 'schema_compatible'").Scan(&n)
	return n, err
}

// trimInDepth compares trimming at first with trimming after much was trimmed, while
// a snapshot keeps all of it in the index.
func trimInDepth(t *testing.T, db database, d *postgres.Driver) {
	conn, err := pgx.Connect(t.Context(), db.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM kv_meta"); err != nil {
		t.Fatal(err)
	}
	step := func(limit, times int) time.Duration {
		best := time.Hour
		for range times {
			began := time.Now()
			if n, err := d.Trim(context.Background(), 200000, limit); err != nil || n != limit {
				t.Fatalf("%d rows trimmed, %v; want %d", n, err, limit)
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	first := step(100, 10)
	step(50000, 2)
	last := step(100, 10)
	for round := 0; last > 4*first+10*time.Millisecond && round < 20; round++ { // the machine may be busy
		last = min(last, step(100, 10))
	}
	t.Logf("100 rows: %v at first, %v after 100,000", first, last)
	if last > 4*first+10*time.Millisecond {
		t.Errorf("trimming 100 rows takes %v at first, %v after 100,000", first, last)
	}
}

// TestTrimWaitsForPacking trims, as the command of an operator does without a lead, while a server keeps history beyond the log
// from now on: rows that wait to be packed stay.
func TestTrimWaitsForPacking(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	d := db.Open(t)
	key := sqlstore.Key{Resource: "pods", Namespace: "default", Name: "a"}
	for r := range int64(8) {
		op := sqlstore.Op{Verb: sqlstore.Update, Key: key, Expect: r, Value: []byte("{}")}
		if r == 0 {
			op.Verb = sqlstore.Create
		}
		if out, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{op}}}, time.Now()); err != nil || out[0].Err != nil {
			t.Fatal(err, out)
		}
	}
	server, err := pgx.Connect(t.Context(), db.url)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close(context.Background())
	retain := "BEGIN; UPDATE kv_meta SET number = 6 WHERE key = 'floor'; INSERT INTO kv_meta (key, word) VALUES ('past', '" + sqlstore.Floors{Log: 6, Past: map[string]int64{"": 0}}.Text() + "')"
	if _, err := server.Exec(t.Context(), retain, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	trimmed := make(chan error, 1)
	go func() {
		n, err := d.Trim(t.Context(), 4, 100)
		if err == nil && n != 0 {
			err = fmt.Errorf("%d rows were deleted", n)
		}
		trimmed <- err
	}()
	for waits, end := false, time.Now().Add(2*time.Minute); !waits; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("trimming does not wait")
		}
		db.Query(t, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')", &waits)
	}
	if _, err := server.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := <-trimmed; err != nil {
		t.Error(err)
	}
	if row, err := d.Read(t.Context(), key, 1); row.Revision != 1 || err != nil {
		t.Errorf("the first state is %+v, %v", row, err)
	}
}

// TestTrimFindsWhatCameBack restores rows below the trimmed revision, as the failover to a lagging standby
// may.
func TestTrimFindsWhatCameBack(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	d := db.Open(t)
	db.Exec(t, fill)
	trim := func(limit, want int) {
		t.Helper()
		if n, err := d.Trim(t.Context(), 20100, limit); n != want || err != nil {
			t.Fatalf("%d rows trimmed, %v; want %d", n, err, want)
		}
	}
	trim(60, 60)
	db.Exec(t, `INSERT INTO kv SELECT 7, 'pods', 'ns7', 'p7', 8, 20007, false, '{}', NULL, now()`)
	trim(60, 40) // goes on behind it
	trim(60, 1)
	trim(60, 0)
}
