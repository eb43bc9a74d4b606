// Package storetest has the tests that every driver passes: conformance, random histories that are compared with those of
// the driver in memory, properties of watches, crashes, and benchmarks. Only tests import it.
package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// Database is one fresh, empty database. Open may be called several times: each
// call is another server on it. A driver is closed by the test's cleanup.
type Database interface {
	Open(t testing.TB) sqlstore.Driver
	// Exec runs SQL behind the driver's back, to do damage.
	Exec(t testing.TB, sql string)
}

// Damager is a Database of a driver that checks rows.
type Damager interface {
	// Damage changes the stored bytes of an object's live row behind the driver's back.
	Damage(t testing.TB, key sqlstore.Key)
}

// Sessions is a Database whose server may still be at work for a process that has died.
type Sessions interface {
	// Ended waits until all connections have ended.
	Ended(t testing.TB)
}

// Run runs every test of the suite, or those of some groups; fresh makes a database for each.
func Run(t *testing.T, fresh func(t testing.TB) Database, only ...string) {
	groups := []struct {
		name  string
		tests map[string]func(*testing.T, Database)
	}{
		{"Apply", applyTests}, {"Read", readTests}, {"Past", pastTests}, {"Trim", trimTests}, {"Several", severalTests}, {"Store", storeTests}, {"Faults", faultTests}, {"Clocks", clockTests}, {"Sealed", sealedTests}, {"Damage", damageTests}, {"Large", largeTests},
	}
	for _, g := range groups {
		if len(only) > 0 && !slices.Contains(only, g.name) {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			for name, test := range g.tests {
				t.Run(name, func(t *testing.T) { test(t, fresh(t)) })
			}
		})
	}
	if len(only) > 0 && !slices.Contains(only, "Model") {
		return
	}
	t.Run("Model", func(t *testing.T) { runModel(t, fresh) })
}

// start is the clock of most tests.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func key(resource, namespace, name string) sqlstore.Key {
	return sqlstore.Key{Resource: resource, Namespace: namespace, Name: name}
}

func pod(name string) sqlstore.Key { return key("pods", "default", name) }

func create(k sqlstore.Key, value string) sqlstore.Txn { return one(sqlstore.Create, k, 0, value) }

func update(k sqlstore.Key, expect int64, value string) sqlstore.Txn {
	return one(sqlstore.Update, k, expect, value)
}

func remove(k sqlstore.Key, expect int64, value string) sqlstore.Txn {
	return one(sqlstore.Delete, k, expect, value)
}

func one(verb sqlstore.Verb, k sqlstore.Key, expect int64, value string) sqlstore.Txn {
	return sqlstore.Txn{Ops: []sqlstore.Op{{Verb: verb, Key: k, Expect: expect, Value: []byte(value)}}}
}

func join(txns ...sqlstore.Txn) sqlstore.Txn {
	var all sqlstore.Txn
	for _, t := range txns {
		all.Ops = append(all.Ops, t.Ops...)
	}
	return all
}

// apply writes a batch and fails the test on an error of the batch.
func apply(t testing.TB, d sqlstore.Driver, txns ...sqlstore.Txn) []sqlstore.Outcome {
	t.Helper()
	return applyAt(t, d, start, txns...)
}

func applyAt(t testing.TB, d sqlstore.Driver, now time.Time, txns ...sqlstore.Txn) []sqlstore.Outcome {
	t.Helper()
	out, err := d.Apply(t.Context(), txns, now)
	if err != nil {
		t.Fatalf("Apply: %v", err)
	}
	if len(out) != len(txns) {
		t.Fatalf("Apply: %d outcomes for %d transactions", len(out), len(txns))
	}
	return out
}

// must writes one transaction that has to succeed, and returns its first revision.
func must(t testing.TB, d sqlstore.Driver, txn sqlstore.Txn) int64 {
	t.Helper()
	out := apply(t, d, txn)[0]
	if out.Err != nil {
		t.Fatalf("%s: %v", txn.Ops[0].Key, out.Err)
	}
	if len(out.Revisions) != len(txn.Ops) || len(out.Created) != len(txn.Ops) {
		t.Fatalf("%d revisions and %d created for %d operations", len(out.Revisions), len(out.Created), len(txn.Ops))
	}
	return out.Revisions[0]
}

// updates writes an object that is at a revision n times more, a hundred in a batch. There must be no other
// writer.
func updates(t testing.TB, d sqlstore.Driver, k sqlstore.Key, revision int64, n int) {
	t.Helper()
	for i := 0; i < n; i += 100 {
		batch := make([]sqlstore.Txn, min(100, n-i))
		for j := range batch {
			batch[j] = update(k, revision+int64(j), fmt.Sprint(i+j))
		}
		for _, out := range apply(t, d, batch...) {
			if out.Err != nil {
				t.Fatal(out.Err)
			}
			revision = out.Revisions[0]
		}
	}
}

func wantBounds(t testing.TB, d sqlstore.Driver, floor, head int64) {
	t.Helper()
	if b, want := boundsOf(t, d), (sqlstore.Bounds{Floor: floor, Head: head}); b != want {
		t.Fatalf("bounds are %+v, want %+v", b, want)
	}
}

// scanAll reads all pages of a scan.
func scanAll(t testing.TB, d sqlstore.Driver, req sqlstore.ScanRequest) []sqlstore.Row {
	t.Helper()
	var all []sqlstore.Row
	for {
		page, err := d.Scan(t.Context(), req)
		if err != nil {
			t.Fatalf("Scan(%+v): %v", req, err)
		}
		if len(page) > req.Limit {
			t.Fatalf("Scan(%+v): %d rows", req, len(page))
		}
		all = append(all, page...)
		if len(page) < req.Limit {
			return all
		}
		req.After = page[len(page)-1].Key
	}
}

// changes reads the log after a revision to its head.
func changes(t testing.TB, d sqlstore.Driver, after int64) []sqlstore.Change {
	t.Helper()
	var all []sqlstore.Change
	for {
		page, err := d.Changes(t.Context(), after, 100, true)
		if err != nil {
			t.Fatalf("Changes(%d): %v", after, err)
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		after = page[len(page)-1].Revision
	}
}

func sameRow(a, b sqlstore.Row) bool {
	return a.Key == b.Key && a.Revision == b.Revision && a.Created == b.Created && a.Superseded == b.Superseded && a.Deleted == b.Deleted &&
		bytes.Equal(a.Value, b.Value) && a.ExpiresAt.Equal(b.ExpiresAt) && a.WrittenAt.Equal(b.WrittenAt)
}

func wantRow(t testing.TB, got, want sqlstore.Row) {
	t.Helper()
	if !sameRow(got, want) {
		t.Fatalf("row is\n%s, want\n%s", show(got), show(want))
	}
}

func wantRows(t testing.TB, got, want []sqlstore.Row) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if !sameRow(got[i], want[i]) {
			t.Fatalf("row %d is\n%s, want\n%s", i, show(got[i]), show(want[i]))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d rows %v, want %d %v", len(got), names(got), len(want), names(want))
	}
}

func show(r sqlstore.Row) string {
	value := string(r.Value)
	if len(value) > 60 {
		value = value[:60] + "..."
	}
	r.Value = nil
	return fmt.Sprintf("%+v with %q", r, value)
}

func names(rows []sqlstore.Row) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%s@%d ", r.Key, r.Revision)
	}
	return b.String()
}

// wantErr compares errors: those without data by errors.Is, the others by their type and data.
func wantErr(t testing.TB, got, want error) {
	t.Helper()
	if !errors.Is(got, want) &&
		!same(got, want, func(g, w *sqlstore.ExistsError) bool { return g.Key == w.Key && sameRow(g.Current, w.Current) }) &&
		!same(got, want, func(g, w *sqlstore.ConflictError) bool {
			return g.Key == w.Key && g.Expect == w.Expect && sameRow(g.Current, w.Current)
		}) &&
		!same(got, want, func(g, w *sqlstore.NotFoundError) bool { return *g == *w }) &&
		!same(got, want, func(g, w *sqlstore.CompactedError) bool { return *g == *w }) &&
		!same(got, want, func(g, w *sqlstore.FutureError) bool { return *g == *w }) {
		t.Fatalf("error is %v (%T), want %v (%T)", got, got, want, want)
	}
}

// same reports whether both errors wrap one of a type, and these are equal.
func same[E error](got, want error, equal func(got, want E) bool) bool {
	g, ok := errors.AsType[E](got)
	w, wanted := errors.AsType[E](want)
	return ok && wanted && equal(g, w)
}
