package postgres_test

import (
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
)

// TestCounterIsNotHeldOverTheNetwork: the lock of all writers, the row of the counter, is free
// again before the first byte of an answer has reached the server that wrote, so a server with a
// long way to the database does not hold up others for its round trips.
func TestCounterIsNotHeldOverTheNetwork(t *testing.T) {
	proxy, direct, far := behindProxy(t, postgres.Config{})
	near := direct.Open(t)
	update := func(expect int64) sqlstore.Txn {
		return sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Update, Key: createTxn("far", "").Ops[0].Key, Expect: expect, Value: []byte("y")}}}
	}
	must(t, far, createTxn("far", "x"))
	must(t, far, update(1)) // statements are prepared once for a connection, before a transaction begins
	must(t, near, createTxn("near", "x"))
	proxy.HoldResponses()
	type outcome struct {
		out []sqlstore.Outcome
		err error
	}
	answered := make(chan outcome, 1)
	// A row that is superseded, one that is new and one that is refused: all statements that a batch has.
	batch := []sqlstore.Txn{update(2), createTxn("second", "x"), createTxn("near", "again")}
	go func() {
		out, err := far.Apply(t.Context(), batch, at)
		answered <- outcome{out, err}
	}()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		b, err := near.Bounds(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if b.Head == 5 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("a batch of which no answer arrives is not committed: the head is %d", b.Head)
		}
	}
	for i, name := range []string{"a", "b", "c"} {
		if out := must(t, near, createTxn(name, "x")); out[0].Err != nil || out[0].Revisions[0] != int64(6+i) {
			t.Fatalf("a commit beside one whose answer is on the way: %+v", out)
		}
	}
	select {
	case o := <-answered:
		t.Fatalf("the answer was not held back: %+v", o)
	default:
	}
	proxy.Resume()
	o := <-answered
	if o.err != nil || o.out[0].Err != nil || o.out[0].Revisions[0] != 4 || o.out[1].Revisions[0] != 5 || o.out[2].Err == nil {
		t.Errorf("the far server gets %+v, %v", o.out, o.err)
	}
}
