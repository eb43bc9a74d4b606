package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// withoutStandby is a database of the server whose commits wait for a standby that does not exist, once standbys names one.
type withoutStandby struct {
	database
	conn *pgx.Conn // of an administrator
}

func newWithoutStandby(t *testing.T) *withoutStandby {
	t.Helper()
	db := newDatabase(t, postgres.Config{LockTimeout: 100 * time.Millisecond})
	conn, err := pgx.Connect(t.Context(), db.url)
	if err != nil {
		t.Fatal(err)
	}
	s := &withoutStandby{db, conn}
	t.Cleanup(func() {
		s.standbys(t, "")
		conn.Close(context.Background())
	})
	return s
}

// standbys sets synchronous_standby_names.
func (s *withoutStandby) standbys(t *testing.T, names string) {
	t.Helper()
	for _, sql := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + names + "'", "SELECT pg_reload_conf()"} {
		if _, err := s.conn.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// waiting returns the process that waits for the standby to confirm a commit, or 0 if done has a value first.
func waiting[T any](t *testing.T, s *withoutStandby, done <-chan T) (pid int, ended T) {
	t.Helper()
	const query = "SELECT coalesce((SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name LIKE 'rowlock%' LIMIT 1), 0)"
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		if err := s.conn.QueryRow(t.Context(), query).Scan(&pid); err != nil {
			t.Fatal(err)
		}
		if pid != 0 {
			return pid, ended
		}
		select {
		case ended = <-done:
			return 0, ended
		default:
		}
		if time.Now().After(end) {
			t.Fatal("no commit waits for a standby, and none ends")
		}
	}
}

// begin writes objects until a commit waits for the standby. It returns the revision of the last one that did not wait, and
// the result of the one that does.
func (s *withoutStandby) begin(t *testing.T, ctx context.Context, d *postgres.Driver, name string) (last int64, pid int, result <-chan error) {
	t.Helper()
	last = 1
	for i := 0; ; i++ { // the setting takes effect some time later
		done := make(chan error, 1)
		go func() {
			out, err := d.Apply(ctx, []sqlstore.Txn{createTxn(name+string(rune('a'+i)), `"x"`)}, at)
			if err == nil {
				last = out[0].Revisions[0]
			}
			done <- err
		}()
		pid, err := waiting(t, s, done)
		if pid != 0 {
			return last, pid, done
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestCommitsWaitForTheStandbyUnseen: a server stops waiting for a commit that no standby has confirmed. PostgreSQL goes on
// waiting, so no server reads what a failover would lose.
func TestCommitsWaitForTheStandbyUnseen(t *testing.T) {
	s := newWithoutStandby(t)
	a, b := s.Open(t).(*postgres.Driver), s.Open(t).(*postgres.Driver)
	must(t, a, createTxn("first", `"x"`))
	s.standbys(t, "none")
	ctx, cancel := context.WithCancel(t.Context())
	last, pid, result := s.begin(t, ctx, a, "unseen")
	cancel()
	if err := <-result; !errors.Is(err, sqlstore.ErrUncertain) {
		t.Fatalf("a commit without an answer gives %v", err)
	}
	for range 2 {
		asking, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if _, _, err := a.Resolve(asking); err == nil {
			t.Error("the outcome is found before the standby has confirmed it")
		}
		cancel()
		if bounds, err := b.Bounds(t.Context()); err != nil || bounds.Head != last {
			t.Errorf("another server reads revision %d, %v; %d is the last one that was confirmed", bounds.Head, err, last)
		}
	}
	if still, _ := waiting[int](t, s, nil); still != pid {
		t.Errorf("process %d waits for the standby, want %d", still, pid)
	}
	s.standbys(t, "")
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		out, committed, err := a.Resolve(t.Context())
		if err == nil {
			if !committed || out[0].Revisions[0] != last+1 {
				t.Errorf("the outcome is %t, %+v; want revision %d", committed, out, last+1)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	storetest.CheckTable(t, b)
}

// TestCommitThatWasNotConfirmed: an administrator, or a program that ends long queries, cancels the wait for the standby. Then
// PostgreSQL reports the commit with a warning. It is acknowledged only once a standby has it.
func TestCommitThatWasNotConfirmed(t *testing.T) {
	s := newWithoutStandby(t)
	d := s.Open(t).(*postgres.Driver)
	must(t, d, createTxn("first", `"x"`))
	s.standbys(t, "none")
	last, pid, result := s.begin(t, t.Context(), d, "cancelled")
	cancelWait := func(pid int) {
		t.Helper()
		if _, err := s.conn.Exec(t.Context(), "SELECT pg_cancel_backend($1)", pid); err != nil {
			t.Fatal(err)
		}
	}
	cancelWait(pid)
	if err := <-result; !errors.Is(err, sqlstore.ErrUncertain) {
		t.Fatalf("a commit that no standby has confirmed gives %v", err)
	}
	resolve := func() <-chan error {
		done := make(chan error, 1)
		go func() {
			out, committed, err := d.Resolve(t.Context())
			if err == nil && (!committed || out[0].Revisions[0] != last+1) {
				t.Errorf("the outcome is %t, %+v; want revision %d", committed, out, last+1)
			}
			done <- err
		}()
		return done
	}
	result = resolve()
	if pid, _ = waiting(t, s, result); pid == 0 {
		t.Fatal("the outcome is found before the standby has confirmed it")
	}
	cancelWait(pid)
	if err := <-result; err == nil {
		t.Error("the outcome counts as found, although no standby has confirmed it")
	}
	s.standbys(t, "")
	if err := <-resolve(); err != nil {
		t.Error(err)
	}
	storetest.CheckTable(t, d)
}
