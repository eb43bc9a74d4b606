package intake_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/transfer/intake"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/foreign"
)

// TestLoaded: a database belongs to a spool as long as it has nothing else, over several pages.
func TestLoaded(t *testing.T) {
	entries := []foreign.Entry{service("s", 9, 1), service("t", 9, 2)}
	for i := range 120 {
		entries = append([]foreign.Entry{configMap(fmt.Sprintf("c-%03d", 119-i), int64(i%40)+1)}, entries...)
	}
	j := job(t, entries...)
	if intake.MayBeFinished(j.Spool) || j.Finished() != nil {
		t.Error("there is a spool before anything was read")
	}
	if _, err := j.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := j.Finished()
	if s == nil || !intake.MayBeFinished(j.Spool) {
		t.Fatal("what was read is not found")
	}
	d := load(t, s)
	loaded(t, s, d, true)
	before := content(t, d)

	other := job(t, append(entries[:0:0], append([]foreign.Entry{configMap("b", 3)}, entries[1:]...)...)...)
	o, err := other.Read(t.Context())
	if err != nil || o.Head != s.Head {
		t.Fatalf("%+v, %v: want the same revisions", o, err)
	}
	loaded(t, s, load(t, o), false)

	res, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "configmaps", Namespace: "a", Name: "new"}, Value: []byte("{}")}}}}, time.Unix(1, 0))
	if err != nil || len(content(t, d)) != len(before)+1 {
		t.Fatalf("%+v, %v", res, err)
	}
	loaded(t, s, d, false)

	if err := os.Remove(s.Path + ".rows"); err != nil {
		t.Fatal(err)
	}
	if ok, err := s.Loaded(t.Context(), load(t, o)); ok || err == nil {
		t.Errorf("without the rows: %v, %v", ok, err)
	}
}

func loaded(t *testing.T, s *intake.Spooled, d sqlstore.Driver, want bool) {
	t.Helper()
	if got, err := s.Loaded(t.Context(), d); err != nil || got != want {
		t.Errorf("loaded: %v, %v, want %v", got, err, want)
	}
}
