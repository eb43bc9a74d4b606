package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// OlderBinaries checks that a binary that knows nothing of packs is refused as long as there may be any, as
// it would delete rows that wait to be packed. compatible reads the version that the database requires.
func OlderBinaries(t *testing.T, d sqlstore.Driver, compatible func() (int64, error)) {
	must(t, d, create(pod("a"), "1"))
	must(t, d, create(pod("b"), "2"))
	older := sqlstore.Schema{Found: sqlstore.PackedSchema, Known: sqlstore.PackedSchema - 1}
	if _, err := older.Lacks(compatible, false); err != nil {
		t.Errorf("before anything is packed an older binary gets %v", err)
	}
	retain(t, sqlstore.Floors{Log: 1, Past: map[string]int64{"": 0}}, d)
	var refused *sqlstore.SchemaError
	if _, err := older.Lacks(compatible, false); !errors.As(err, &refused) {
		t.Errorf("with packs an older binary gets %v", err)
	}
	trim(t, d, 2, 10, 0)
	if _, err := older.Lacks(compatible, false); err != nil {
		t.Errorf("without packs an older binary gets %v", err)
	}
}

// groupsOfPast keeps resources of one plural in two groups, and one of neither, for different times: by
// the plural, by the whole name, and longer than the rest.
func groupsOfPast(t *testing.T, db Database) {
	d, m := db.Open(t), newModel()
	names := []string{"events", "events.events.k8s.io", "nodes", "leases.coordination.k8s.io", "leases.example.org"}
	keys := make([]sqlstore.Key, len(names))
	last := make([]int64, len(names))
	for i, name := range names {
		keys[i] = key(name, "", "same")
	}
	for round := range 40 {
		for i, k := range keys {
			txn := create(k, `{"round":0}`)
			if round > 0 {
				txn = update(k, last[i], fmt.Sprintf(`{"round":%d}`, round))
			}
			last[i] = must(t, d, txn)
			must(t, m, txn)
		}
	}
	to := sqlstore.Floors{Log: 150, Past: map[string]int64{"": 100, "events": 120, "events.events.k8s.io": 20, "leases": 30, "leases.example.org": 150}}
	retain(t, to, d, m)
	packAll(t, d, 20)
	packAll(t, m, 1)
	forget(t, d)
	f, err := d.Floors(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{120, 20, 100, 30, 150} {
		if f.Of(names[i]) != want {
			t.Errorf("the floor of %s is %d, want %d", names[i], f.Of(names[i]), want)
		}
		for revision := int64(1); revision <= 150; revision += 7 {
			want, wantE := m.Read(t.Context(), keys[i], revision)
			got, err := d.Read(t.Context(), keys[i], revision)
			if wantE != nil {
				wantErr(t, err, wantE)
			} else if wantRow(t, got, want); err != nil {
				t.Fatal(err)
			}
		}
		want, err := m.Past(t.Context(), keys[i], 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		wantPast(t, d, keys[i], 0, 100, want)
	}
}

// expiredPast renews keys with a time to live, lets them expire and creates them again, while a server packs:
// the last state that expiry wrote is there as a delete, with all states before it, and no pack has two
// lives.
func expiredPast(t *testing.T, db Database) {
	d := db.Open(t)
	now := start
	s := serve(t, d, sqlstore.Config{
		RetentionByResource: sqlstore.Retention{Default: time.Hour, ByResource: map[string]time.Duration{"events": 48 * time.Hour}}, LogRetention: time.Hour,
		ExpireEvery: time.Millisecond, CompactEvery: time.Hour, Clock: func() time.Time { return now },
	})
	k := key("events", "default", "often")
	for life := range 3 {
		out := write(t, s, sqlstore.Op{Verb: sqlstore.Create, Key: k, Value: fmt.Appendf(nil, `{"life":%d,"n":0}`, life), ExpiresAt: start.Add(time.Hour)})
		for n := 1; n < 4; n++ {
			op := sqlstore.Op{Verb: sqlstore.Update, Key: k, Expect: out.Revisions[0], Value: fmt.Appendf(nil, `{"life":%d,"n":%d}`, life, n), ExpiresAt: start.Add(time.Hour)}
			if n == 3 { // its time has come
				op.ExpiresAt = start.Add(-time.Minute)
			}
			out = write(t, s, op)
		}
		waitFor(t, "expiry", func() bool { return len(s.Log(t)) == 5*(life+1) })
	}
	s.stop()
	retain(t, sqlstore.Floors{Log: 14, Past: map[string]int64{"": 14, "events": 0}}, d)
	packAll(t, d, 3)
	rows, err := d.Past(t.Context(), k, 0, 100)
	if err != nil || len(rows) != 15 {
		t.Fatalf("%d states are kept, %v", len(rows), err)
	}
	for i, row := range rows {
		n := 14 - i
		life, step := n/5, min(n%5, 3)
		if want := fmt.Sprintf(`{"life":%d,"n":%d}`, life, step); string(row.Value) != want || row.Deleted != (n%5 == 4) || row.Created != int64(5*life+1) || row.ExpiresAt.IsZero() != row.Deleted {
			t.Errorf("state %d is %+v (%s), want %s", n, row, row.Value, want)
		}
	}
	for revision := int64(1); revision < 15; revision++ {
		_, err := d.Read(t.Context(), k, revision)
		if expired := revision%5 == 0; expired != (err != nil) {
			t.Errorf("at %d it gives %v", revision, err)
		}
	}
	if report, err := upkeep.Verify(t.Context(), d, func(sqlstore.Row) error { return nil }); err != nil || report.Count != 0 {
		t.Errorf("verify reports %+v, %v", report, err)
	}
}

// manySeconds raises the floor past more seconds than one transaction notes.
func manySeconds(t *testing.T, db Database) {
	d := db.Open(t)
	const seconds = 1200
	last := int64(0)
	for i := range seconds {
		txn := create(pod("a"), "{}")
		if i > 0 {
			txn = update(pod("a"), last, fmt.Sprintf(`{"n":%d}`, i))
		}
		last = applyAt(t, d, start.Add(time.Duration(i)*time.Second), txn)[0].Revisions[0]
	}
	to := sqlstore.Floors{Log: last - 1, Past: map[string]int64{"": 0}}
	for rounds := 1; ; rounds++ {
		f, err := d.Retain(t.Context(), to)
		if err != nil || rounds > 10 {
			t.Fatalf("after %d rounds the floor is %d, %v", rounds, f.Log, err)
		}
		if f.Log == to.Log {
			if s, err := d.Stats(t.Context()); err != nil || s.Driver == "sqlite" && rounds < 2 {
				t.Errorf("%d seconds were noted while writers waited, %v", seconds, err)
			}
			break
		}
	}
	for i := 0; i < seconds; i += 37 {
		at, ok, err := d.Since(t.Context(), int64(i+1))
		if first := start.Add(time.Duration(i) * time.Second); !ok || err != nil || at.Before(first) || at.After(first.Add(time.Second)) {
			t.Fatalf("revision %d held since %s, %t, %v; want %s", i+1, at, ok, err, first)
		}
		r, err := d.RevisionAt(t.Context(), start.Add(time.Duration(i)*time.Second+1500*time.Millisecond))
		if want := int64(i + 1); err != nil || r < want || r > want+1 {
			t.Fatalf("the revision after second %d is %d, %v", i, r, err)
		}
	}
}
