package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// LargeJSON returns JSON of a size, with characters of several bytes, that differs in all its parts from that of another seed.
func LargeJSON(seed, size int) []byte {
	value := fmt.Appendf(nil, `{"metadata":{"uid":"u%d","labels":{"ä":"%d"}},"status":{"nodes":"`, seed, seed)
	const end = `"}}`
	filling := strings.Repeat("€é ", 100)
	for i := 0; len(value) < size-len(end)-len(filling)-24; i++ {
		value = append(fmt.Appendf(value, "%d-%d ", seed, i), filling...)
	}
	value = append(value, bytes.Repeat([]byte("x"), max(0, size-len(value)-len(end)))...)
	return append(value, end...)
}

// staged is a driver that stages the values of each transaction before it applies it, as Store does.
type staged struct{ sqlstore.Driver }

func (s staged) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) ([]sqlstore.Outcome, error) {
	batch = slices.Clone(batch)
	for i := range batch {
		batch[i].Ops = slices.Clone(batch[i].Ops)
		if err := s.Stage(ctx, batch[i].Ops); err != nil {
			return nil, err
		}
	}
	out, err := s.Driver.Apply(ctx, batch, now)
	for i := range batch {
		s.Unstage(batch[i].Ops, err == nil && out[i].Err == nil)
	}
	return out, err
}

// largeTests test values that a driver may store in another way than small ones.
var largeTests = map[string]func(*testing.T, Database){
	"as small ones": func(t *testing.T, db Database) { asSmall(t, db, func(d sqlstore.Driver) sqlstore.Driver { return d }) },
	"as small ones, staged": func(t *testing.T, db Database) {
		asSmall(t, db, func(d sqlstore.Driver) sqlstore.Driver { return staged{d} })
	},
	"conditions":             largeConditions,
	"another one was faster": largeOvertaken,
	"through a store":        largeThroughStore,
	"of two servers":         largeOfTwoServers,
	"restated":               largeRestated,
	"loaded":                 largeLoaded,
	"expired":                largeExpired,
}

// sizes are sizes of values below and above LargeValue.
var sizes = []int{0, 100, sqlstore.LargeValue - 1, sqlstore.LargeValue, sqlstore.LargeValue + 1, 2*sqlstore.LargeValue + 12345}

// largeHistory writes the same random values to drivers, all of them to a few keys.
func largeHistory(t *testing.T, seed, n int, drivers ...sqlstore.Driver) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(seed), 11))
	for i := range n {
		k := historyKeys[rng.IntN(3)]
		value := LargeJSON(seed*1000+i, sizes[rng.IntN(len(sizes))])
		if i%7 == 0 {
			value = append([]byte(sqlstore.SealHead("aesgcm", "key 1")+"\x00\xff"), value...)
		}
		op := sqlstore.Op{Verb: sqlstore.Create, Key: k, Value: value}
		if row, err := drivers[0].Read(t.Context(), k, 0); err == nil {
			op.Verb, op.Expect = sqlstore.Update, row.Revision
			if rng.IntN(5) == 0 {
				op.Verb = sqlstore.Delete
			}
		}
		for _, d := range drivers {
			must(t, d, sqlstore.Txn{Ops: []sqlstore.Op{op}})
		}
	}
}

// asSmall compares the results of all reads with the model, before and after upkeep and a restart.
func asSmall(t *testing.T, db Database, through func(sqlstore.Driver) sqlstore.Driver) {
	opened := db.Open(t)
	d, m := through(opened), newModel()
	largeHistory(t, 1, 14, d, m)
	for _, driver := range []sqlstore.Driver{d, m} {
		if _, err := driver.Trim(t.Context(), 3, 1000); err != nil {
			t.Fatal(err)
		}
	}
	sameLarge(t, d, m)
	clean(t, d)
	retain(t, sqlstore.Floors{Log: 11, Past: map[string]int64{"": 5}}, d, m)
	packAll(t, d, 3)
	packAll(t, m, 3)
	largeHistory(t, 2, 4, d, m)
	opened.Close()
	d = through(db.Open(t))
	sameLarge(t, d, m)
	CheckTable(t, d)
	clean(t, d)
}

func sameLarge(t *testing.T, d sqlstore.Driver, m sqlstore.Driver) {
	t.Helper()
	b := boundsOf(t, m)
	wantBounds(t, d, b.Floor, b.Head)
	for revision := int64(0); revision <= b.Head; revision++ {
		req := sqlstore.ScanRequest{Resource: "pods", Limit: 2, Revision: revision}
		if _, err := m.Scan(t.Context(), req); err != nil {
			_, e := d.Scan(t.Context(), req)
			wantErr(t, e, err)
			continue
		}
		want := scanAll(t, m, req)
		wantRows(t, scanAll(t, d, req), want)
		for _, row := range want {
			got, err := d.Read(t.Context(), row.Key, revision)
			if err != nil {
				t.Fatalf("%s at %d: %v", row.Key, revision, err)
			}
			wantRow(t, got, row)
		}
	}
	for _, k := range historyKeys[:3] {
		want, _ := m.Past(t.Context(), k, 0, 30)
		wantPast(t, d, k, 0, 30, want)
	}
	wantRows(t, olderAll(t, d, b.Head, 5), olderAll(t, m, b.Head, 1000))
	after := b.Floor
	got, want := changes(t, d, after), changes(t, m, after)
	if len(got) != len(want) {
		t.Fatalf("the log has %d entries, want %d", len(got), len(want))
	}
	for i := range want {
		wantRow(t, got[i].Row, want[i].Row)
		if got[i].PrevRevision != want[i].PrevRevision || !bytes.Equal(got[i].PrevValue, want[i].PrevValue) {
			t.Fatalf("revision %d replaced %d with %d bytes, want %d with %d", want[i].Revision, got[i].PrevRevision, len(got[i].PrevValue), want[i].PrevRevision, len(want[i].PrevValue))
		}
	}
	plain := func(rows []sqlstore.Row) []sqlstore.Row {
		for i := range rows {
			r := &rows[i]
			rows[i] = sqlstore.Row{Key: r.Key, Revision: r.Revision, Created: r.Created, Value: r.Value}
		}
		return rows
	}
	for _, revision := range []int64{max(1, b.Floor), b.Head} {
		wantRows(t, plain(whole(t, sqlstore.New(d, sqlstore.Config{}), revision)), plain(scanAll(t, m, sqlstore.ScanRequest{Limit: 100, Revision: revision})))
	}
}

// largeConditions: a refused write leaves nothing, whether its condition never held or no longer holds.
func largeConditions(t *testing.T, db Database) {
	d := staged{db.Open(t)}
	k, big := pod("a"), string(LargeJSON(1, 2*sqlstore.LargeValue))
	must(t, d, create(k, big))
	current := sqlstore.Row{Key: k, Revision: 1, Created: 1, Value: []byte(big), WrittenAt: start}
	other := string(LargeJSON(2, 3*sqlstore.LargeValue))
	for _, c := range []struct {
		txn  sqlstore.Txn
		want error
	}{
		{create(k, other), &sqlstore.ExistsError{Key: k, Current: current}},
		{update(k, 7, other), &sqlstore.ConflictError{Key: k, Expect: 7, Current: current}},
		{remove(k, 7, other), &sqlstore.ConflictError{Key: k, Expect: 7, Current: current}},
		{update(pod("b"), 1, other), &sqlstore.NotFoundError{Key: pod("b")}},
		{join(create(pod("b"), other), update(k, 7, other)), &sqlstore.ConflictError{Key: k, Expect: 7, Current: current}},
	} {
		wantErr(t, apply(t, d, c.txn)[0].Err, c.want)
		wantErr(t, apply(t, d.Driver, c.txn)[0].Err, c.want)
	}
	wantBounds(t, d, 0, 1)
	wantCurrent(t, d, current)
	out := apply(t, d, create(pod("b"), other), create(pod("b"), big), join(update(k, 1, "small"), create(pod("c"), big)), update(pod("b"), 2, big))
	wantOutcomes(t, out, 2, 0, 3, 5)
	wantCurrent(t, d, sqlstore.Row{Key: pod("b"), Revision: 5, Created: 2, Value: []byte(big), WrittenAt: start})
	wantCurrent(t, d, sqlstore.Row{Key: pod("c"), Revision: 4, Created: 4, Value: []byte(big), WrittenAt: start})
	CheckTable(t, d)
}

// largeOvertaken: the condition of a write holds while its value is staged, but no longer when it is committed.
func largeOvertaken(t *testing.T, db Database) {
	d := db.Open(t)
	k := pod("a")
	must(t, d, create(k, "1"))
	for _, verb := range []sqlstore.Verb{sqlstore.Update, sqlstore.Delete} {
		ops := []sqlstore.Op{{Verb: verb, Key: k, Expect: 1, Value: LargeJSON(3, 2*sqlstore.LargeValue)}}
		if verb == sqlstore.Delete {
			ops[0].Expect = 2
		}
		if err := d.Stage(t.Context(), ops); err != nil {
			t.Fatal(err)
		}
		now := must(t, d, update(k, ops[0].Expect, fmt.Sprint("faster", verb)))
		wantErr(t, apply(t, d, sqlstore.Txn{Ops: ops})[0].Err, &sqlstore.ConflictError{Key: k, Expect: ops[0].Expect, Current: sqlstore.Row{Key: k, Revision: now, Created: 1, Value: fmt.Append(nil, "faster", verb), WrittenAt: start}})
		d.Unstage(ops, false)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ops := []sqlstore.Op{{Verb: sqlstore.Create, Key: pod("b"), Value: LargeJSON(4, sqlstore.LargeValue)}}
	if err := d.Stage(ctx, ops); err == nil { // of a driver that stages nothing
		d.Unstage(ops, false)
	} else {
		wantErr(t, err, context.Canceled)
	}
	wantBounds(t, d, 0, 3)
	CheckTable(t, d)
}

// largeOfTwoServers: what one server stages and commits, another reads, replaces and deletes.
func largeOfTwoServers(t *testing.T, db Database) {
	a, b := staged{db.Open(t)}, staged{db.Open(t)}
	k := pod("a")
	var last []byte
	for i := range 5 {
		value := LargeJSON(i, sqlstore.LargeValue+i)
		txn := update(k, int64(i), string(value))
		if i == 0 {
			txn = create(k, string(value))
		}
		must(t, []sqlstore.Driver{a, b}[i%2], txn)
		for _, d := range []sqlstore.Driver{a, b} {
			wantCurrent(t, d, sqlstore.Row{Key: k, Revision: int64(i + 1), Created: 1, Value: value, WrittenAt: start})
		}
		last = value
	}
	must(t, b, remove(k, 5, string(last)))
	for _, d := range []sqlstore.Driver{a, b} {
		CheckTable(t, d)
	}
	if n, err := a.Trim(t.Context(), 6, 100); err != nil || n != 6 {
		t.Fatalf("%d rows were deleted, %v", n, err)
	}
	wantBounds(t, b, 6, 6)
	if rows := scanAll(t, b, sqlstore.ScanRequest{Limit: 10}); len(rows) != 0 {
		t.Fatalf("%s are left", names(rows))
	}
}

// largeRestated replaces values of ended rows by larger and smaller ones; the live row stays.
func largeRestated(t *testing.T, db Database) {
	d := db.Open(t)
	if _, err := d.ReplaceEnded(t.Context(), nil); errors.Is(err, errors.ErrUnsupported) {
		t.Log("the driver does not replace values")
		return
	}
	k := pod("a")
	small, big := []byte(`{"small":1}`), LargeJSON(1, 2*sqlstore.LargeValue)
	for i, value := range [][]byte{big, small, big, big} {
		txn := update(k, int64(i), string(value))
		if i == 0 {
			txn = create(k, string(value))
		}
		must(t, d, txn)
	}
	rows, err := d.Past(t.Context(), k, 0, 10)
	if err != nil || len(rows) != 4 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	live := rows[0]
	slices.Reverse(rows)
	for i, value := range [][]byte{small, LargeJSON(2, sqlstore.LargeValue), LargeJSON(3, 3*sqlstore.LargeValue), LargeJSON(4, sqlstore.LargeValue)} {
		rows[i].Value = value
	}
	if n, err := d.ReplaceEnded(t.Context(), rows); err != nil || n != 3 {
		t.Fatalf("%d rows were replaced, %v; want 3, without the live one", n, err)
	}
	rows[3] = live
	slices.Reverse(rows)
	wantPast(t, d, k, 0, 10, rows)
	clean(t, d)
	retain(t, sqlstore.Floors{Log: 4, Past: map[string]int64{"": 0}}, d)
	packAll(t, d, 10)
	wantPast(t, d, k, 0, 10, rows)
	clean(t, d)
}

// largeLoaded fills a database as a restore does, and continues to write to it.
func largeLoaded(t *testing.T, db Database) {
	d, m := db.Open(t), newModel()
	largeHistory(t, 3, 10, m)
	b := boundsOf(t, m)
	rows := append(scanAll(t, m, sqlstore.ScanRequest{Limit: 100}), olderAll(t, m, b.Head, 1000)...)
	content := sqlstore.Content{Bounds: b, Rows: func(yield func(sqlstore.Row, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}}
	if err := d.Load(t.Context(), content); err != nil {
		t.Fatal(err)
	}
	clean(t, d)
	largeHistory(t, 4, 4, staged{d}, m)
	sameLarge(t, d, m)
	clean(t, d)
}

// largeExpired: the row of an expired large value is a delete that has the value.
func largeExpired(t *testing.T, db Database) {
	d := db.Open(t)
	value := LargeJSON(1, 2*sqlstore.LargeValue)
	must(t, d, sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Create, Key: pod("a"), Value: value, ExpiresAt: start.Add(-time.Second)}}})
	rows, err := d.Expired(t.Context(), start, 10)
	if err != nil || len(rows) != 1 || !bytes.Equal(rows[0].Value, value) {
		t.Fatalf("%d rows have expired, %v", len(rows), err)
	}
	s := serve(t, d, sqlstore.Config{ExpireEvery: time.Millisecond})
	waitFor(t, "the expiry", func() bool { return s.Applied() == 2 })
	row, err := d.Past(t.Context(), pod("a"), 0, 1)
	if err != nil || len(row) != 1 || !row[0].Deleted || !bytes.Equal(row[0].Value, value) {
		t.Fatalf("the delete is %d rows, %v", len(row), err)
	}
}
