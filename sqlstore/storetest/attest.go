package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
)

// Event changes a database.
type Event func(t testing.TB, db Database)

// ByExec runs SQL.
func ByExec(sql string) Event {
	return func(t testing.TB, db Database) { db.Exec(t, sql) }
}

// CacheFiles tests a driver as an Attestor. After each event of dropped, a database attests to no file that was
// written before; after each of kept it still does. The events concern rows with the name x in the namespace a.
func CacheFiles(t *testing.T, fresh func(t testing.TB) Database, dropped, kept map[string]Event) {
	t.Run("Revisions", func(t *testing.T) { revisionsListed(t, fresh(t)) })
	t.Run("Many", func(t *testing.T) { manyAttested(t, fresh(t)) })
	keeps := map[string]Event{"nothing": func(testing.TB, Database) {}}
	for verb, name := range map[sqlstore.Verb]string{sqlstore.Create: "a create", sqlstore.Update: "an update", sqlstore.Delete: "a delete"} {
		keeps[name] = func(t testing.TB, db Database) {
			d := db.Open(t)
			if verb == sqlstore.Create {
				must(t, d, create(key("pods", "a", "y"), "{}"))
			} else {
				must(t, d, one(verb, key("pods", "a", "x"), 1, "{}"))
			}
		}
	}
	keeps["compaction"] = func(t testing.TB, db Database) {
		d := db.Open(t)
		to := must(t, d, update(key("pods", "a", "x"), 1, "{}"))
		if n, err := d.Trim(t.Context(), to, 10); err != nil || n == 0 {
			t.Fatal(n, err)
		}
	}
	drops := map[string]Event{
		"a new epoch": func(t testing.TB, db Database) {
			if err := db.Open(t).Attestor().NewEpoch(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"keys go": ByExec(`DELETE FROM kv_meta WHERE key = 'cache_files'`),
	}
	for name, event := range dropped {
		drops[name] = event
	}
	for name, event := range kept {
		keeps[name] = event
	}
	for name, event := range drops {
		t.Run("Dropped/"+name, func(t *testing.T) { attestedAfter(t, fresh(t), event, false) })
	}
	for name, event := range keeps {
		t.Run("Kept/"+name, func(t *testing.T) { attestedAfter(t, fresh(t), event, true) })
	}
}

// attestedAfter tests whether a database attests after an event to an older file, and to one of rows that were read before it.
func attestedAfter(t *testing.T, db Database, event Event, kept bool) {
	d := db.Open(t)
	must(t, d, create(key("pods", "a", "x"), `{"n":"x"}`))
	c := d.Attestor()
	before, err := c.CacheFiles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.CacheFiles(t.Context()); err != nil || again.Epoch != before.Epoch {
		t.Fatalf("epoch %s, then %s without a reason (%v)", before.Epoch, again.Epoch, err)
	}
	if err := c.Attest(t.Context(), before.Epoch, "file", [32]byte{19}); err != nil {
		t.Fatal(err)
	}
	if known, err := c.CacheFiles(t.Context()); err != nil || known.Epoch != before.Epoch {
		t.Fatalf("epoch %s, and %s with a file (%v)", before.Epoch, known.Epoch, err)
	}
	event(t, db)
	after, err := db.Open(t).Attestor().CacheFiles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := after.Key("file"); ok != kept || ok && got != [32]byte{19} {
		t.Errorf("it attests to the file: %v", ok)
	}
	if err := c.Attest(t.Context(), before.Epoch, "late", [32]byte{}); errors.Is(err, sqlstore.ErrEpochChanged) == kept || kept && err != nil {
		t.Errorf("attesting to what was read before: %v", err)
	}
	// From there on it is as with any other database.
	if err := c.Attest(t.Context(), after.Epoch, "next", [32]byte{20}); err != nil {
		t.Fatal(err)
	}
	if last, err := c.CacheFiles(t.Context()); err != nil || last.Epoch != after.Epoch {
		t.Fatalf("epoch %s, then %s without a reason (%v)", after.Epoch, last.Epoch, err)
	} else if got, ok := last.Key("next"); !ok || got != [32]byte{20} {
		t.Error("it does not attest to the next file")
	}
}

// manyAttested has servers write their files at their own pace: a server that writes often does no harm to
// another that was away, and keys are not kept forever.
func manyAttested(t *testing.T, db Database) {
	c := db.Open(t).Attestor()
	known, err := c.CacheFiles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	attest := func(name string) {
		t.Helper()
		if err := c.Attest(t.Context(), known.Epoch, name, [32]byte{}); err != nil {
			t.Fatal(err)
		}
		if known, err = c.CacheFiles(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	has := func(want bool, names ...string) {
		t.Helper()
		for _, name := range names {
			if _, ok := known.Key(name); ok != want {
				t.Errorf("it attests to %s: %v", name, ok)
			}
		}
	}
	attest("away" + "0000")
	for i := range 100 {
		attest(fmt.Sprintf("busy%04d", i))
	}
	has(true, "away0000", "busy0099", "busy0098") // until the last one lies in the place of that before it, a start reads this
	has(false, "busy0097", "busy0000")
	for i := range 100 {
		attest(fmt.Sprintf("%04dsome", i))
	}
	has(false, "away0000", "busy0099", "0000some")
	has(true, "0099some", "0080some")
}

// revisionsListed compares the live objects of the list of revisions with those of a full read, now and in the past.
func revisionsListed(t *testing.T, db Database) {
	d := db.Open(t)
	c := d.Attestor()
	list := func(at int64, splits ...sqlstore.Key) (all []int64, err error) {
		var mu sync.Mutex
		err = c.ListRevisions(t.Context(), at, splits, func(some []int64) error {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, some...)
			return nil
		})
		slices.Sort(all)
		return slices.Compact(all), err
	}
	rowsOf := func(read func(take func([]sqlstore.Row) error) error) map[int64]string {
		t.Helper()
		var mu sync.Mutex
		rows := map[int64]string{}
		if err := read(func(some []sqlstore.Row) error {
			mu.Lock()
			defer mu.Unlock()
			for _, r := range some {
				rows[r.Revision] = fmt.Sprint(r.Key, r.Created, string(r.Value))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	var last int64
	for i := range 600 {
		k := key("pods", fmt.Sprintf("ns%d", i%5), fmt.Sprintf("p%d", i))
		last = must(t, d, create(k, fmt.Sprintf(`{"n":%d}`, i)))
		switch i % 4 {
		case 1:
			last = must(t, d, update(k, last, `{"changed":true}`))
		case 2:
			last = must(t, d, remove(k, last, `{"gone":true}`))
		}
	}
	splits := []sqlstore.Key{{Resource: "a"}, key("pods", "ns1", "p111"), key("pods", "ns3", ""), {Resource: "z"}}
	for _, at := range []int64{last, last - 1, last / 2, 1} {
		all := rowsOf(func(take func([]sqlstore.Row) error) error { return d.ReadAll(t.Context(), at, take) })
		live, err := list(at, splits...)
		if plain, _ := list(at); err != nil || len(live) != len(all) || !slices.Equal(live, plain) {
			t.Fatalf("at %d: %d revisions of %d rows, %v", at, len(live), len(all), err)
		}
		read := rowsOf(func(take func([]sqlstore.Row) error) error { return c.ReadRows(t.Context(), live, take) })
		if fmt.Sprint(read) != fmt.Sprint(all) {
			t.Fatalf("at %d: by revision\n%v\nwhole\n%v", at, read, all)
		}
	}
	refused := errors.New("refused")
	if err := c.ListRevisions(t.Context(), last, nil, func([]int64) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("an error of take: %v", err)
	}
	if err := c.ReadRows(t.Context(), []int64{last}, func([]sqlstore.Row) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("an error of take: %v", err)
	}
	if err := c.ReadRows(t.Context(), nil, func([]sqlstore.Row) error { return refused }); err != nil {
		t.Errorf("no rows: %v", err)
	}
	if _, err := list(last + 1); !isA[*sqlstore.FutureError](err) {
		t.Errorf("ahead of the head: %v", err)
	}
	if _, err := d.Trim(t.Context(), last, 1000); err != nil {
		t.Fatal(err)
	}
	if _, err := list(last - 1); !isA[*sqlstore.CompactedError](err) {
		t.Errorf("behind the floor: %v", err)
	}
	var gone *sqlstore.CompactedError // revision 2 was replaced, 1 is there
	if err := c.ReadRows(t.Context(), []int64{1, 2}, func([]sqlstore.Row) error { return nil }); !errors.As(err, &gone) || gone.Revision != 2 {
		t.Errorf("a row that is gone: %v", err)
	}
}

func isA[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}
