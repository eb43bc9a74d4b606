package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
)

// listening has a driver listen for notifications, as a server does: its leads end with that session.
func listening(t *testing.T, d sqlstore.Driver) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	hints := d.Hints(ctx)
	t.Cleanup(func() {
		cancel()
		for range hints {
		}
	})
}

func wantLead(t *testing.T, d sqlstore.Driver, name string) (held <-chan struct{}) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		held, _, ok, err := d.Lead(t.Context(), name)
		if ok {
			return held
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody takes the lead over: %v", err)
		}
	}
}

// forever is longer than a test: no lead is taken because it was not renewed.
const forever = time.Hour

// TestLeadEndsWithTheSessionOfItsHolder: the sessions of a killed process end at once, and with them its leads.
func TestLeadEndsWithTheSessionOfItsHolder(t *testing.T) {
	t.Parallel()
	proxy, direct, d := behindProxy(t, postgres.Config{LeadFor: forever})
	listening(t, d)
	wantLead(t, d, "work")
	other := direct.Open(t)
	if _, _, ok, err := other.Lead(t.Context(), "work"); ok || err != nil {
		t.Fatalf("a second leader: %v, %v", ok, err)
	}
	proxy.Close()
	wantLead(t, other, "work")
}

// TestLeadOutlivesASession: a holder whose session breaks makes another one, and goes on.
func TestLeadOutlivesASession(t *testing.T) {
	t.Parallel()
	db := newDatabase(t, postgres.Config{LeadFor: forever})
	d, other := db.Open(t), db.Open(t)
	listening(t, d)
	held := wantLead(t, d, "work")
	for range 10 {
		db.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
		if _, _, ok, _ := other.Lead(t.Context(), "work"); ok {
			t.Fatal("a second leader")
		}
		time.Sleep(150 * time.Millisecond) // as servers ask
	}
	select {
	case <-held:
		t.Error("the lead is lost")
	default:
	}
}

// TestLeadOutlivesABusyPool: reads that occupy all other connections keep a holder from no renewal.
func TestLeadOutlivesABusyPool(t *testing.T) {
	t.Parallel()
	db := newDatabase(t, postgres.Config{MaxConns: 4})
	d := db.Open(t).(*postgres.Driver)
	held := wantLead(t, d, "work")
	var was, until time.Time
	renewed := func() {
		t.Helper()
		const row = `SELECT until FROM kv_lead WHERE name = 'work'`
		for db.Query(t, row, &was); until.Equal(was) || until.IsZero(); db.Query(t, row, &until) {
			select {
			case <-held:
				t.Fatal("the lead is lost")
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	renewed()
	free, err := d.Occupy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer free()
	for range 20 {
		renewed()
	}
}

// TestLeaderStopsInATransaction: a transaction on behalf of a lead that its process does not end keeps the lead from others for
// no longer than a lead lasts.
func TestLeaderStopsInATransaction(t *testing.T) {
	t.Parallel()
	proxy, direct, d := behindProxy(t, postgres.Config{StatementTimeout: forever})
	other := direct.Open(t)
	wantLead(t, d, "work")
	inside, moved, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- d.Change(sqlstore.WithLead(t.Context(), "work"), func() error {
			close(inside)
			select {
			case <-moved:
				return nil
			case <-t.Context().Done():
				return t.Context().Err()
			}
		})
	}()
	<-inside
	proxy.Stall()
	defer proxy.Resume()
	wantLead(t, other, "work")
	proxy.Resume()
	close(moved)
	if err := <-done; err == nil {
		t.Error("a transaction of the former leader is committed")
	}
}

// TestAStoppedLeaderWritesNothing: another process has taken the lead over, and its former holder does not know it.
func TestAStoppedLeaderWritesNothing(t *testing.T) {
	t.Parallel()
	db := newDatabase(t, postgres.Config{LeadFor: forever})
	d := db.Open(t)
	must(t, d, createTxn("first", "x"))
	for name, write := range map[string]func(ctx context.Context) error{
		"Apply": func(ctx context.Context) error {
			led := createTxn("led", "x")
			led.Lead = sqlstore.Leading(ctx)
			out, err := d.Apply(ctx, []sqlstore.Txn{led, createTxn("ordinary", "x")}, at)
			if err != nil || out[1].Err != nil {
				t.Fatalf("the other write of the batch: %v, %v", out, err)
			}
			return out[0].Err
		},
		"Trim": func(ctx context.Context) error {
			_, err := d.Trim(ctx, 1, 1)
			return err
		},
		"Retain": func(ctx context.Context) error {
			_, err := d.Retain(ctx, sqlstore.Floors{Log: 1})
			return err
		},
		"Forget": func(ctx context.Context) error {
			_, err := d.Forget(ctx, 1)
			return err
		},
	} {
		held := wantLead(t, d, name)
		if _, err := d.Floors(sqlstore.WithLead(t.Context(), name)); err != nil {
			t.Fatal(err)
		}
		db.Exec(t, `UPDATE kv_lead SET holder = 'other' WHERE name = '`+name+`'`)
		if err := write(sqlstore.WithLead(t.Context(), name)); !errors.Is(err, sqlstore.ErrLeadLost) {
			t.Errorf("%s without the lead: %v", name, err)
		}
		select {
		case <-held:
		case <-time.After(2 * time.Minute):
			t.Errorf("%s: the former holder does not know that it lost the lead", name)
		}
		if name == "Apply" {
			continue
		}
		if err := write(t.Context()); err != nil {
			t.Errorf("%s on nobody's behalf: %v", name, err)
		}
	}
	if b, err := d.Bounds(t.Context()); err != nil || b.Head != 2 {
		t.Errorf("the head is %+v, %v; want 2", b, err)
	}
	// No other process can hold a lead that this process still has.
	held := wantLead(t, d, "again")
	var holder string
	db.Query(t, `SELECT holder FROM kv_lead WHERE name = 'again'`, &holder)
	db.Exec(t, `UPDATE kv_lead SET holder = 'other' WHERE name = 'again'`)
	<-held
	db.Exec(t, `UPDATE kv_lead SET holder = '`+holder+`' WHERE name = 'again'`)
	wantLead(t, d, "again")
}

// TestOutcomeOfAStoppedLeader: the answer to a batch is lost, one of whose writes is on behalf of a lead that is lost.
func TestOutcomeOfAStoppedLeader(t *testing.T) {
	t.Parallel()
	proxy, _, d := behindProxy(t, postgres.Config{})
	must(t, d, createTxn("first", "x"))
	led := createTxn("led", "x")
	led.Lead = "nobody's"
	proxy.DropCommitReplies(1)
	_, err := d.Apply(t.Context(), []sqlstore.Txn{led, createTxn("ordinary", "x")}, at)
	if !errors.Is(err, sqlstore.ErrUncertain) {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; {
		out, committed, err := d.Resolve(t.Context())
		if err != nil && time.Now().Before(deadline) {
			continue
		}
		if err != nil || committed && (!errors.Is(out[0].Err, sqlstore.ErrLeadLost) || out[1].Err != nil) {
			t.Errorf("%v, %v, %v", out, committed, err)
		}
		break
	}
	if out := must(t, d, led); !errors.Is(out[0].Err, sqlstore.ErrLeadLost) {
		t.Errorf("a batch of such writes alone: %v", out)
	}
}

// TestLongTransactionOfALead: a transaction of compaction that takes longer than a lead lasts neither ends
// the lead, because its row is renewed, nor makes other processes wait for the row behind the writers' lock.
func TestLongTransactionOfALead(t *testing.T) {
	t.Parallel()
	db := newDatabase(t, postgres.Config{})
	held := wantLead(t, db.Open(t), "work")
	long, err := pgx.Connect(t.Context(), db.url)
	if err != nil {
		t.Fatal(err)
	}
	defer long.Close(context.Background())
	tx, err := long.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var holder string
	if err := tx.QueryRow(t.Context(), postgres.Statements["qLeader"], "work").Scan(&holder); err != nil {
		t.Fatal(err)
	}
	var first, until time.Time
	row := `SELECT until FROM kv_lead WHERE name = 'work'`
	db.Query(t, row, &first)
	for until = first; until.Equal(first); db.Query(t, row, &until) {
		select {
		case <-held:
			t.Fatal("the lead is lost while a transaction on its behalf goes on")
		case <-time.After(20 * time.Millisecond):
		}
	}
	db.Exec(t, `UPDATE kv_lead SET holder = 'stopped' WHERE name = 'work'`) // which ends the renewals
	<-held
	db.Query(t, row, &until)
	other, err := pgx.Connect(t.Context(), db.url)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	if _, err := other.Exec(t.Context(), `SET lock_timeout = '1s'`); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{0, 1} {
		tag, err := other.Exec(t.Context(), postgres.Statements["qTakeLead"], "work", "next", time.Minute, "stopped", until, false, int64(0))
		if err != nil || tag.RowsAffected() != want {
			t.Errorf("taking the lead: %d rows, %v; want %d", tag.RowsAffected(), err, want)
		}
		if err := tx.Rollback(t.Context()); err != nil && want == 0 {
			t.Fatal(err)
		}
	}
}
