package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// behindProxy opens a fresh database through a proxy.
func behindProxy(t *testing.T, cfg postgres.Config) (*pgtest.Proxy, database, *postgres.Driver) {
	t.Helper()
	direct := migratedDatabase(t, cfg)
	proxy, err := pgtest.NewProxy(server.Port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	name := direct.url[strings.LastIndex(direct.url, "/")+1 : strings.Index(direct.url, "?")]
	d := database{proxy.URL(name), cfg}.Open(t).(*postgres.Driver)
	return proxy, direct, d
}

func createTxn(name, value string) sqlstore.Txn {
	return sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "pods", Namespace: "default", Name: name}, Value: []byte(value)}}}
}

func must(t *testing.T, d sqlstore.Driver, batch ...sqlstore.Txn) []sqlstore.Outcome {
	t.Helper()
	out, err := d.Apply(t.Context(), batch, at)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestResolveFindsWhatWasCommitted(t *testing.T) {
	proxy, direct, d := behindProxy(t, postgres.Config{})
	must(t, d, createTxn("first", "x"))
	proxy.DropCommitReplies(1)
	second := createTxn("second", "x")
	// Two waves, a failure in each, and a Txn of two operations.
	batch := []sqlstore.Txn{
		second, createTxn("first", "again"),
		{Ops: append(createTxn("third", "x").Ops, createTxn("fourth", "x").Ops...)},
		{Ops: []sqlstore.Op{{Verb: sqlstore.Update, Key: second.Ops[0].Key, Expect: 2, Value: []byte("y")}}},
		{Ops: []sqlstore.Op{{Verb: sqlstore.Delete, Key: second.Ops[0].Key, Expect: 2, Value: []byte("y")}}},
	}
	if _, err := d.Apply(t.Context(), batch, at); !errors.Is(err, sqlstore.ErrUncertain) {
		t.Fatalf("the lost answer gives %v", err)
	}
	out, committed, err := d.Resolve(t.Context())
	if err != nil || !committed {
		t.Fatalf("committed is %v, %v", committed, err)
	}
	var exists *sqlstore.ExistsError
	var conflict *sqlstore.ConflictError
	if got := fmt.Sprint(out[0].Revisions, out[2].Revisions, out[3].Revisions, out[3].Created); got != "[2] [3 4] [5] [2]" {
		t.Errorf("revisions are %s", got)
	}
	if !errors.As(out[1].Err, &exists) || exists.Current.Revision != 1 {
		t.Errorf("the second create of first gives %v", out[1].Err)
	}
	if !errors.As(out[4].Err, &conflict) || conflict.Current.Revision != 5 {
		t.Errorf("the outdated delete gives %v", out[4].Err)
	}
	if r := must(t, d, createTxn("fifth", "x"))[0].Revisions[0]; r != 6 {
		t.Errorf("the next write is revision %d", r)
	}
	storetest.CheckTable(t, direct.Open(t))
}

func TestResolveFindsThatNothingWasCommitted(t *testing.T) {
	proxy, direct, d := behindProxy(t, postgres.Config{})
	must(t, d, createTxn("first", strings.Repeat("x", 1000)))
	for i := range 5 {
		proxy.CutRequests(1)
		if _, err := d.Apply(t.Context(), []sqlstore.Txn{createTxn("second", strings.Repeat("x", 1000))}, at); !errors.Is(err, sqlstore.ErrUncertain) {
			t.Fatalf("the cut request gives %v", err)
		}
		out, committed, err := d.Resolve(t.Context())
		if err != nil || committed || out != nil {
			t.Fatalf("round %d: %v, committed is %v, %v", i, out, committed, err)
		}
	}
	if r := must(t, d, createTxn("second", "x"))[0].Revisions[0]; r != 2 {
		t.Errorf("the next write is revision %d", r)
	}
	storetest.CheckTable(t, direct.Open(t))
}

// TestLoadFindsItsOutcome: a load whose COMMIT was done and not answered has filled the database, also if the caller is gone by then.
func TestLoadFindsItsOutcome(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		proxy, direct, d := behindProxy(t, postgres.Config{})
		proxy.DropCommitReplies(1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if cancelled {
			go func() {
				for proxy.Pending() > 0 && ctx.Err() == nil {
					time.Sleep(time.Millisecond)
				}
				cancel()
			}()
		}
		err := d.Load(ctx, sqlstore.Content{Bounds: sqlstore.Bounds{Floor: 3, Head: 3}, Rows: func(yield func(sqlstore.Row, error) bool) {
			for revision := range int64(3) {
				row := sqlstore.Row{Key: createTxn(fmt.Sprint(revision), "").Ops[0].Key, Revision: revision + 1, Created: revision + 1, Value: []byte("x"), WrittenAt: at}
				if !yield(row, nil) {
					return
				}
			}
		}})
		if err != nil || proxy.Pending() > 0 {
			t.Errorf("a load that was committed ended with %v, %d commits to lose", err, proxy.Pending())
		}
		if b, err := direct.Open(t).Bounds(t.Context()); err != nil || b.Head != 3 {
			t.Errorf("the database has %+v, %v", b, err)
		}
	}
}

// TestResolveWithANumberThatIsNoProcess: a pooler sends its clients made-up process numbers of 32 bits.
func TestResolveWithANumberThatIsNoProcess(t *testing.T) {
	for _, poll := range []bool{false, true} {
		for _, pid := range []uint32{0, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
			proxy, direct, d := behindProxy(t, postgres.Config{Poll: poll})
			must(t, d, createTxn("first", "x"))
			proxy.DropCommitReplies(1)
			if _, err := d.Apply(t.Context(), []sqlstore.Txn{createTxn("second", "x")}, at); !errors.Is(err, sqlstore.ErrUncertain) {
				t.Fatalf("the lost answer gives %v", err)
			}
			d.SetPendingPID(pid)
			if _, committed, err := d.Resolve(t.Context()); err != nil || !committed {
				t.Errorf("process %d: committed is %v, %v", pid, committed, err)
			}
			storetest.CheckTable(t, direct.Open(t))
		}
	}
}

// A server that starts removes the markers of those that have been silent for long, by revisions. Where many are left out after a
// failover, that may be the marker of a batch whose outcome is not known yet. Nothing then shows that it was not written.
func TestResolveWithoutTheMarker(t *testing.T) {
	proxy, direct, d := behindProxy(t, postgres.Config{})
	must(t, d, createTxn("first", "x"))
	proxy.DropCommitReplies(1)
	if _, err := d.Apply(t.Context(), []sqlstore.Txn{createTxn("second", "x")}, at); !errors.Is(err, sqlstore.ErrUncertain) {
		t.Fatalf("the lost answer gives %v", err)
	}
	direct.Exec(t, "DELETE FROM kv_meta WHERE key LIKE 'batch:%'")
	if out, committed, err := d.Resolve(t.Context()); !errors.Is(err, sqlstore.ErrUncertain) {
		t.Errorf("the outcome is %v, %t, %v", out, committed, err)
	}
	if r := must(t, d, createTxn("third", "x"))[0].Revisions[0]; r != 3 {
		t.Errorf("the next write is revision %d", r)
	}
	storetest.CheckTable(t, direct.Open(t))
}

// A batch whose writer no longer waits must not lend its outcome to the next.
func TestAnUnresolvedBatchIsForgotten(t *testing.T) {
	proxy, _, d := behindProxy(t, postgres.Config{})
	must(t, d, createTxn("first", "x"))
	proxy.DropCommitReplies(1)
	if _, err := d.Apply(t.Context(), []sqlstore.Txn{createTxn("second", "x")}, at); !errors.Is(err, sqlstore.ErrUncertain) {
		t.Fatalf("the lost answer gives %v", err)
	}
	out := must(t, d, createTxn("third", "x"), createTxn("second", "x"))
	if out[0].Err != nil || out[0].Revisions[0] != 3 {
		t.Errorf("the next batch gives %+v", out[0])
	}
	var exists *sqlstore.ExistsError
	if !errors.As(out[1].Err, &exists) || exists.Current.Revision != 2 {
		t.Errorf("the row of the unresolved batch gives %+v", out[1])
	}
	if _, committed, err := d.Resolve(t.Context()); committed || err != nil {
		t.Errorf("Resolve has something left to find: %v, %v", committed, err)
	}
}

// The proxy keeps the session of a half-sent batch open on the server's side: it
// holds the writers' lock until Resolve ends it.
func TestResolveEndsTheStuckSession(t *testing.T) {
	proxy, direct, d := behindProxy(t, postgres.Config{LockTimeout: 500 * time.Millisecond})
	must(t, d, createTxn("first", "x"))
	came := proxy.StallBatch()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		<-came
	}()
	_, err := d.Apply(ctx, []sqlstore.Txn{createTxn("second", "x")}, at)
	if !errors.Is(err, sqlstore.ErrUncertain) {
		t.Fatalf("the silence gives %v", err)
	}
	proxy.Resume()
	_, committed, err := d.Resolve(t.Context())
	for i := 0; err != nil && i < 20; i++ {
		_, committed, err = d.Resolve(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	want := int64(2)
	if committed {
		want = 3
	}
	if r := must(t, d, createTxn("third", "x"))[0].Revisions[0]; r != want {
		t.Errorf("committed is %v and the next write is revision %d", committed, r)
	}
	storetest.CheckTable(t, direct.Open(t))
}

// lead asks for a lead until there is an answer: one that comes after LeadFor is none.
func lead(t *testing.T, d sqlstore.Driver, name string) (held <-chan struct{}, release func(), ok, again bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; again = true {
		held, release, ok, err := d.Lead(t.Context(), name)
		if err == nil {
			return held, release, ok, again
		}
		if !errors.Is(err, sqlstore.ErrUnavailable) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// firstLead takes a free lead; a late answer may have given it to this caller, whom the next call does
// not recognize.
func firstLead(t *testing.T, d sqlstore.Driver, name string) (held <-chan struct{}, release func()) {
	t.Helper()
	late := false
	for {
		held, release, ok, again := lead(t, d, name)
		if ok {
			return held, release
		}
		if late = late || again; !late {
			t.Fatal("nobody has it, and it cannot be had")
		}
	}
}

func TestReadsThroughABrokenNetwork(t *testing.T) {
	proxy, _, d := behindProxy(t, postgres.Config{})
	must(t, d, createTxn("first", "x"))
	proxy.CloseConnections()
	var err error
	for range 10 { // each connection of the pool may have to be found dead
		if _, err = d.Bounds(t.Context()); err == nil {
			break
		}
		if !errors.Is(err, sqlstore.ErrUnavailable) {
			t.Fatalf("a cut connection gives %v", err)
		}
	}
	if err != nil {
		t.Fatal("the pool does not recover:", err)
	}
}

func TestLeadIsTakenOverWhenItsHolderFallsSilent(t *testing.T) {
	cfg := postgres.Config{LeadFor: 500 * time.Millisecond}
	proxy, direct, d := behindProxy(t, cfg)
	held, release := firstLead(t, d, "work")
	defer release()
	other := direct.Open(t)
	if _, _, ok, _ := lead(t, other, "work"); ok {
		t.Fatal("a second leader")
	}
	proxy.Stall()
	defer proxy.Resume()
	for began := time.Now(); ; {
		_, free, ok, _ := lead(t, other, "work")
		if ok {
			defer free()
			break
		}
		if time.Since(began) > 2*time.Minute {
			t.Fatal("nobody takes the lead over")
		}
	}
	select {
	case <-held:
	case <-time.After(2 * time.Minute): // a busy machine may be late to tell it
		t.Fatal("the former leader does not know that it lost the lead")
	}
}

func TestErrors(t *testing.T) {
	db := newDatabase(t, postgres.Config{LockTimeout: 100 * time.Millisecond})
	d := db.Open(t)
	must(t, d, createTxn("first", "x"))
	conn, err := pgx.Connect(t.Context(), db.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("BEGIN")
	exec("SELECT * FROM kv_meta WHERE key = 'revision' FOR UPDATE")
	if _, err := d.Apply(t.Context(), []sqlstore.Txn{createTxn("a", "x")}, at); !errors.Is(err, sqlstore.ErrBusy) {
		t.Errorf("a held lock gives %v", err)
	}
	exec("ROLLBACK")
	exec(`DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET default_transaction_read_only = on'; END $$`)
	exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'rowlock%' AND datname = current_database()")
	var last error
	for range 20 { // at first the ended sessions show
		_, last = d.Apply(t.Context(), []sqlstore.Txn{createTxn("a", "x")}, at)
		if errors.Is(last, sqlstore.ErrUncertain) {
			_, _, last = d.Resolve(t.Context())
		}
		if last != nil && !errors.Is(last, sqlstore.ErrUnavailable) {
			t.Fatalf("a server without writes gives %v", last)
		}
	}
	if last == nil {
		t.Fatal("a server that takes no writes is written to")
	}
	if _, err := postgres.Open(t.Context(), db.url, postgres.Config{}); !errors.Is(err, sqlstore.ErrUnavailable) {
		t.Errorf("opening a server without writes gives %v", err)
	}
	exec(`DO $$ BEGIN SET LOCAL transaction_read_only = off; EXECUTE 'ALTER DATABASE ' || current_database() || ' RESET default_transaction_read_only'; END $$`)
	if r := must(t, d, createTxn("a", "x"))[0].Revisions[0]; r != 2 {
		t.Errorf("after the recovery comes revision %d", r)
	}
}

func TestNoPasswordInErrors(t *testing.T) {
	for _, url := range []string{
		"postgres://user:s3cret@127.0.0.1:1/db?sslmode=disable&connect_timeout=1",
		"postgres://user:s3cret@127.0.0.1:bad/db",
		"postgres://user:s3cret@[::1/db",
		"host=127.0.0.1 port=1 user=u password=s3cret dbname=db sslmode=disable connect_timeout=1",
		"host=127.0.0.1 password='s3cret",
		"postgres://user:s3cret@127.0.0.1/db?sslmode=nonsense",
		"postgres://127.0.0.1/db?password=s3cret&port=x",
	} {
		_, err := postgres.Open(t.Context(), url, postgres.Config{})
		if err == nil {
			t.Fatalf("%s opens", url)
		}
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the error has the password: %v", err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	url := newDatabase(t, postgres.Config{}).url
	t.Setenv("PGHOST", "127.0.0.1")
	t.Setenv("PGPORT", fmt.Sprint(server.Port))
	t.Setenv("PGUSER", "postgres")
	t.Setenv("PGDATABASE", url[strings.LastIndex(url, "/")+1:strings.Index(url, "?")])
	t.Setenv("PGSSLMODE", "disable")
	d := database{"postgres://", postgres.Config{}}.Open(t)
	must(t, d, createTxn("a", "x"))
	storetest.CheckTable(t, database{url, postgres.Config{}}.Open(t))
}
