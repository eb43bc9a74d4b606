package sqlite_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// outline is the revisions that a driver says are live, sorted, each once.
func outline(t testing.TB, d *sqlite.Driver, at int64, splits ...sqlstore.Key) (all []int64) {
	t.Helper()
	var mu sync.Mutex
	err := d.Outline(t.Context(), at, splits, func(some []int64) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, some...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func rowsOf(t testing.TB, read func(take func([]sqlstore.Row) error) error) map[int64]string {
	t.Helper()
	var mu sync.Mutex
	rows := map[int64]string{}
	err := read(func(some []sqlstore.Row) error {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range some {
			rows[r.Revision] = fmt.Sprint(r.Key, r.Created, string(r.Value))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func write(t testing.TB, d *sqlite.Driver, verb sqlstore.Verb, namespace, name string, expect int64) int64 {
	t.Helper()
	op := sqlstore.Op{Verb: verb, Key: sqlstore.Key{Resource: "pods", Namespace: namespace, Name: name}, Expect: expect, Value: []byte(`{"n":"` + name + `"}`)}
	out, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{op}}}, time.Now())
	if err != nil || out[0].Err != nil {
		t.Fatal(err, out)
	}
	return out[0].Revisions[0]
}

// TestOutline compares what is live by the index with what is read whole, now and a way back.
func TestOutline(t *testing.T) {
	d := file{path: t.TempDir() + "/test.db"}.Open(t).(*sqlite.Driver)
	var last int64
	for i := range 300 {
		name := fmt.Sprintf("p%d", i)
		last = write(t, d, sqlstore.Create, fmt.Sprintf("ns%d", i%5), name, 0)
		switch i % 4 {
		case 1:
			last = write(t, d, sqlstore.Update, fmt.Sprintf("ns%d", i%5), name, last)
		case 2:
			last = write(t, d, sqlstore.Delete, fmt.Sprintf("ns%d", i%5), name, last)
		}
	}
	splits := []sqlstore.Key{{Resource: "a"}, {Resource: "pods", Namespace: "ns1", Name: "p111"}, {Resource: "pods", Namespace: "ns3"}, {Resource: "z"}}
	for _, at := range []int64{last, last - 1, last / 2, 1} {
		whole := rowsOf(t, func(take func([]sqlstore.Row) error) error { return d.ReadAll(t.Context(), at, take) })
		live := outline(t, d, at, splits...)
		if len(live) != len(whole) || !slices.Equal(live, outline(t, d, at)) {
			t.Fatalf("at %d: %d revisions of %d rows", at, len(live), len(whole))
		}
		read := rowsOf(t, func(take func([]sqlstore.Row) error) error { return d.ReadRows(t.Context(), live, take) })
		if fmt.Sprint(read) != fmt.Sprint(whole) {
			t.Fatalf("at %d: by revision\n%v\nwhole\n%v", at, read, whole)
		}
	}
	refused := errors.New("refused")
	if err := d.Outline(t.Context(), last, nil, func([]int64) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("an error of take: %v", err)
	}
	var future *sqlstore.FutureError
	if err := d.Outline(t.Context(), last+1, nil, func([]int64) error { return nil }); !errors.As(err, &future) {
		t.Errorf("ahead of the head: %v", err)
	}
	if _, err := d.Trim(t.Context(), last, 1000); err != nil {
		t.Fatal(err)
	}
	var gone *sqlstore.CompactedError
	if err := d.Outline(t.Context(), last-1, nil, func([]int64) error { return nil }); !errors.As(err, &gone) {
		t.Errorf("behind the floor: %v", err)
	}
	if err := d.ReadRows(t.Context(), []int64{2}, func([]sqlstore.Row) error { return nil }); !errors.As(err, &gone) {
		t.Errorf("a row that is gone: %v", err)
	}
}

// TestCopiesAreDropped sees for what the file vouches, and for what it does not any more.
func TestCopiesAreDropped(t *testing.T) {
	for name, tc := range map[string]struct {
		do      func(t *testing.T, f file, d *sqlite.Driver)
		dropped bool
	}{
		"nothing":           {func(*testing.T, file, *sqlite.Driver) {}, false},
		"a write":           {func(t *testing.T, _ file, d *sqlite.Driver) { write(t, d, sqlstore.Update, "a", "x", 1) }, false},
		"a delete":          {func(t *testing.T, _ file, d *sqlite.Driver) { write(t, d, sqlstore.Delete, "a", "x", 1) }, false},
		"compaction":        {trimAll, false},
		"a row is edited":   {sqlOf(`UPDATE kv SET value = '{}' WHERE name = 'x'`), true},
		"a row is renamed":  {sqlOf(`UPDATE kv SET name = 'y' WHERE name = 'x'`), true},
		"a row goes":        {sqlOf(`DELETE FROM kv WHERE name = 'x'`), true},
		"an upsert":         {sqlOf(`INSERT INTO kv SELECT * FROM kv WHERE name = 'x' ON CONFLICT (revision) DO UPDATE SET value = '{}'`), true},
		"a dump is read in": {sqlOf(`PRAGMA user_version = 0`), true},
		"keys are damaged":  {sqlOf(`UPDATE kv_meta SET value = 'x' || value WHERE key = 'copies'`), true},
	} {
		t.Run(name, func(t *testing.T) {
			f := file{path: t.TempDir() + "/test.db"}
			d := f.Open(t).(*sqlite.Driver)
			write(t, d, sqlstore.Create, "a", "x", 0)
			before, err := d.Copies(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i := range 20 {
				if err := d.Vouch(t.Context(), before.Edition, fmt.Sprint("copy", i), [32]byte{byte(i)}); err != nil {
					t.Fatal(err)
				}
			}
			tc.do(t, f, d)
			after, err := f.Open(t).(*sqlite.Driver).Copies(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			key, ok := after.Key("copy19")
			if ok == tc.dropped || ok && key != [32]byte{19} {
				t.Fatalf("the last copy is vouched for: %v", ok)
			}
			if _, ok := after.Key("copy1"); ok {
				t.Error("keys are kept for ever")
			}
			if err := d.Vouch(t.Context(), before.Edition, "late", [32]byte{}); errors.Is(err, sqlstore.ErrEdited) != tc.dropped {
				t.Errorf("vouching for what was read before: %v", err)
			}
		})
	}
}

func sqlOf(text string) func(*testing.T, file, *sqlite.Driver) {
	return func(t *testing.T, f file, _ *sqlite.Driver) { f.Exec(t, text) }
}

func trimAll(t *testing.T, _ file, d *sqlite.Driver) {
	revision := write(t, d, sqlstore.Update, "a", "x", 1)
	if n, err := d.Trim(t.Context(), revision, 10); err != nil || n == 0 {
		t.Fatal(n, err)
	}
}
