package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

func leaseTxn(name string) sqlstore.Txn {
	txn := createTxn(name, `"`+name+`"`)
	txn.Ops[0].Key.Resource = "leases.coordination.k8s.io"
	return txn
}

// TestCrashRelaxed: writes that were acknowledged before they were on the disk survive killing the process.
func TestCrashRelaxed(t *testing.T) {
	db := newDatabase(t, postgres.Config{Relaxed: []string{"pods"}})
	storetest.Crash(t, db, "relaxed:"+db.url)
}

// TestRelaxedIsFlushed: relaxed commits are flushed when nothing comes behind them, and a mixed batch waits for the disk.
func TestRelaxedIsFlushed(t *testing.T) {
	db := newDatabase(t, postgres.Config{Relaxed: []string{"leases.coordination.k8s.io"}})
	d := db.Open(t).(*postgres.Driver)
	must(t, d, leaseTxn("a"), createTxn("b", `"b"`))
	if n, err := db.compatible(t.Context()); n != sqlstore.UnpackedSchema || err != nil {
		t.Fatalf("before any relaxed write the oldest schema is %d, %v", n, err)
	}
	if s := d.RelaxedStats(); s.Writes != 0 || s.Unsynced != 0 {
		t.Fatalf("a mixed batch was relaxed: %+v", s)
	}
	must(t, d, leaseTxn("c"))
	if n, err := db.compatible(t.Context()); n != sqlstore.RelaxedSchema || err != nil {
		t.Fatalf("behind a relaxed write the oldest schema is %d, %v", n, err)
	}
	for end := time.Now().Add(2 * time.Minute); d.RelaxedStats().Unsynced > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a relaxed commit is not flushed")
		}
	}
	if s := d.RelaxedStats(); s.Writes != 1 || s.Failures != 0 {
		t.Fatalf("after one relaxed commit: %+v", s)
	}
}

// TestPostgresCrashes: a crash of the database loses the newest relaxed commits at most, and no
// revision that a client has seen is given again.
func TestPostgresCrashes(t *testing.T) {
	ctx := t.Context()
	s, err := pgtest.Start(context.Background(), pgtest.Options{Settings: map[string]string{"wal_writer_delay": "10s"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	url, err := s.CreateDB(ctx, "crashes")
	if err != nil {
		t.Fatal(err)
	}
	d := database{url: url}.Open(t).(*postgres.Driver)
	d.RelaxUnflushed([]string{"leases.coordination.k8s.io"})
	relaxed := func(name string) int64 {
		t.Helper()
		d.InTime() // else one that is not flushed for 100 ms makes the next durable
		return must(t, d, leaseTxn(name))[0].Revisions[0]
	}
	for i := range 5 {
		relaxed(fmt.Sprintf("a%d", i))
	}
	must(t, d, createTxn("durable", `"durable"`))
	var last int64
	for i := range 20 {
		last = relaxed(fmt.Sprintf("b%02d", i))
	}
	if n := d.RelaxedStats().Writes; n != 25 {
		t.Fatalf("%d writes were relaxed, want 25", n)
	}
	s.Kill()
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	after := database{url: url}.Open(t)
	b, err := after.Bounds(ctx)
	if err != nil || b.Head < sqlstore.RelaxedReserve || b.Floor != b.Head {
		t.Fatalf("after the crash the bounds are %v, %v", b, err)
	}
	rows, err := after.Scan(ctx, sqlstore.ScanRequest{Limit: 100})
	if err != nil || len(rows) < 6 {
		t.Fatalf("after the crash there are %d rows, %v", len(rows), err)
	}
	for i, row := range rows[:len(rows)-1] {
		if row.Revision != int64(i+1) && row.Revision != int64(i+2) { // the durable one is the last by its key, and sixth by revision
			t.Errorf("row %d is %s at revision %d: not the first of those that were written", i, row.Key, row.Revision)
		}
	}
	t.Logf("%d of 26 writes are there", len(rows))
	// The server that was there before goes on as the new one does.
	var out []sqlstore.Outcome
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if out, err = d.Apply(ctx, []sqlstore.Txn{createTxn("next", `"next"`)}, time.Now()); err == nil {
			break
		}
		if errors.Is(err, sqlstore.ErrUncertain) {
			_, _, _ = d.Resolve(ctx)
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	if got := out[0].Revisions[0]; got <= last || got != b.Head+1 {
		t.Fatalf("the next write has revision %d; %d was seen, the head was %d", got, last, b.Head)
	}
	var compacted *sqlstore.CompactedError
	if _, err := d.Changes(ctx, last, 10, false); !errors.As(err, &compacted) {
		t.Fatalf("watching on from a lost revision gave %v", err)
	}
	storetest.CheckTable(t, d)
}
