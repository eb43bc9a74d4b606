package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// pastTests test the history of one key.
var pastTests = map[string]func(*testing.T, Database){
	"newest first": func(t *testing.T, db Database) {
		d := db.Open(t)
		k := pod("a")
		must(t, d, create(k, "1"))
		must(t, d, create(pod("b"), "2"))
		must(t, d, update(k, 1, "3"))
		must(t, d, remove(k, 3, "4"))
		must(t, d, create(k, "5"))
		rows := []sqlstore.Row{
			{Key: k, Revision: 5, Created: 5, Value: []byte("5"), WrittenAt: start},
			{Key: k, Revision: 4, Created: 1, Superseded: 4, Deleted: true, Value: []byte("4"), WrittenAt: start},
			{Key: k, Revision: 3, Created: 1, Superseded: 4, Value: []byte("3"), WrittenAt: start},
			{Key: k, Revision: 1, Created: 1, Superseded: 3, Value: []byte("1"), WrittenAt: start},
		}
		for before, want := range [][]sqlstore.Row{rows, nil, rows[3:], rows[3:], rows[2:], rows[1:], rows} {
			for limit := 1; limit <= 5; limit++ {
				wantPast(t, d, k, int64(before), limit, want[:min(limit, len(want))])
			}
		}
		wantPast(t, d, pod("c"), 0, 5, nil)
		_, err := d.Past(t.Context(), k, 7, 1)
		wantErr(t, err, &sqlstore.FutureError{Revision: 6, Head: 5})
	},
	"packed":                      packedPast,
	"by a server, by resource":    packedByStore,
	"a retention that is lowered": loweredRetention,
	"somebody trims":              somebodyTrims,
	"two pack at once":            twoPackers,
	"damaged":                     damagedPacks,
	"large values":                largePast,
	"encrypted anew":              resealedPast,
	"encrypted while packed":      resealedWhilePacked,
	"encrypted below floors":      resealedBelowFloors,
	"names in several groups":     groupsOfPast,
	"what expires":                expiredPast,
	"many seconds":                manySeconds,
	"down to the floor": func(t *testing.T, db Database) {
		d, m := db.Open(t), newModel()
		history(t, 120, d, m)
		for _, floor := range []int64{0, 1, 40, 77, 120} {
			for _, driver := range []sqlstore.Driver{d, m} {
				if _, err := driver.Trim(t.Context(), floor, 7); err != nil { // more is left than is shown
					t.Fatal(err)
				}
			}
			for before := floor % 2; before <= 121; before += 2 { // the even and the odd ones in turn
				for _, k := range historyKeys {
					want, err := m.Past(t.Context(), k, before, 9)
					if err != nil {
						t.Fatal(err)
					}
					wantPast(t, d, k, before, 9, want)
				}
			}
		}
	},
}

func wantPast(t testing.TB, d sqlstore.Driver, k sqlstore.Key, before int64, limit int, want []sqlstore.Row) {
	t.Helper()
	got, err := d.Past(t.Context(), k, before, limit)
	if err != nil {
		t.Fatalf("Past(%s, %d): %v", k, before, err)
	}
	wantRows(t, got, want)
}

// packAll packs, or deletes, all that ended at or below the floor of the log.
func packAll(t testing.TB, d sqlstore.Driver, limit int) (rows int) {
	t.Helper()
	var from sqlstore.Cursor
	for {
		done, err := d.Pack(t.Context(), from, limit)
		if err != nil {
			t.Fatalf("Pack(%+v): %v", from, err)
		}
		if rows += done.Rows; done.Done {
			return rows
		}
		from = done.Next
	}
}

// retain raises the floors of drivers to the same.
func retain(t testing.TB, to sqlstore.Floors, drivers ...sqlstore.Driver) {
	t.Helper()
	var want string
	for _, d := range drivers {
		f, err := d.Retain(t.Context(), to)
		if err != nil {
			t.Fatalf("Retain(%+v): %v", to, err)
		}
		if want == "" {
			want = f.Text()
		}
		if now, err := d.Floors(t.Context()); err != nil || f.Text() != want || now.Text() != want {
			t.Fatalf("the floors are %+v, then %+v, %v; want %s", f, now, err, want)
		}
	}
}

func forget(t testing.TB, d sqlstore.Driver) {
	t.Helper()
	for {
		n, err := d.Forget(t.Context(), 3)
		if err != nil {
			t.Fatalf("Forget: %v", err)
		}
		if n < 3 {
			return
		}
	}
}

// samePast compares all readable states of the past with the model, and the errors for the others.
func samePast(t testing.TB, d sqlstore.Driver, m sqlstore.Driver) {
	t.Helper()
	b := boundsOf(t, m)
	wantBounds(t, d, b.Floor, b.Head)
	scans := 0
	step := 1 + b.Head/20
	for revision := 1 + b.Floor%step; revision <= b.Head; revision += step { // others where the floor has moved
		for _, resource := range []string{"", "pods", "nodes", "deployments.apps"} {
			req := sqlstore.ScanRequest{Resource: resource, Limit: []int{1, 3, 100}[scans%3], Revision: revision} // each limit at a third
			scans++
			if _, err := m.Scan(t.Context(), req); err != nil {
				_, e := d.Scan(t.Context(), req)
				wantErr(t, e, err)
				continue
			}
			wantRows(t, scanAll(t, d, req), scanAll(t, m, req))
		}
		for _, k := range historyKeys {
			want, wantE := m.Read(t.Context(), k, revision)
			got, err := d.Read(t.Context(), k, revision)
			if wantE != nil {
				wantErr(t, err, wantE)
				continue
			}
			if err != nil {
				t.Fatalf("%s at %d: %v", k, revision, err)
			}
			wantRow(t, got, want)
		}
	}
	for _, k := range historyKeys {
		for before := int64(0); before <= b.Head+1; before += step {
			want, _ := m.Past(t.Context(), k, before, 11)
			wantPast(t, d, k, before, 11, want)
		}
	}
	for _, limit := range []int{7, 1000} {
		for _, upTo := range []int64{b.Floor, b.Floor / 2, b.Head} {
			wantRows(t, olderAll(t, d, upTo, limit), olderAll(t, m, upTo, 1000))
		}
	}
}

func olderAll(t testing.TB, d sqlstore.Driver, upTo int64, limit int) (all []sqlstore.Row) {
	t.Helper()
	var after sqlstore.Cursor
	for {
		rows, err := d.Older(t.Context(), upTo, after, limit)
		if err != nil {
			t.Fatalf("Older(%d, %+v): %v", upTo, after, err)
		}
		if all = append(all, rows...); len(rows) == 0 {
			return all
		}
		after = sqlstore.Cursor{Key: rows[len(rows)-1].Key, Revision: rows[len(rows)-1].Revision}
	}
}

func packedPast(t *testing.T, db Database) {
	d, m := db.Open(t), newModel()
	lives(t, 1, d, m)
	for round, to := range []sqlstore.Floors{
		{Log: 60, Past: map[string]int64{"": 0}},
		{Log: 120, Past: map[string]int64{"": 5, "pods": 30}},
		{Log: 130, Past: map[string]int64{"": 40, "pods": 125, "deployments.apps": 10}},
		{Log: 170, Past: map[string]int64{"": 41, "deployments": 50}},
		{Log: 200, Past: map[string]int64{"": 200}},
	} {
		retain(t, to, d, m)
		samePast(t, d, m)
		moved := packAll(t, d, 1+round*20)
		packAll(t, m, 1)
		samePast(t, d, m)
		forget(t, d)
		samePast(t, d, m)
		if s, err := d.Stats(t.Context()); err != nil || s.Driver != "memory" && (round < 4 && moved == 0 || s.PackedRows == 0) != (round == 4) {
			t.Fatalf("after round %d the statistics are %+v, %v", round, s, err)
		}
		lives(t, int64(round+2), d, m)
	}
	d.Close()
	samePast(t, db.Open(t), m)
}

// lives writes JSON that changes a little, to keys that come and go; some of it not JSON.
func lives(t testing.TB, seed int64, drivers ...sqlstore.Driver) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(seed), 5))
	for i := range 200 {
		k := historyKeys[rng.IntN(len(historyKeys))]
		value := fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"ä":"€"}},"spec":{"renewTime":"2026-03-01T12:00:%02d.%06dZ"},"status":"%d"}`, k.Name, i%60, rng.IntN(1000000), i)
		if i%41 == 0 {
			value = ""
		}
		if i%17 == 0 {
			value = sqlstore.SealedPrefix + "aescbc:key1:\x00\xff" + value
		}
		op := sqlstore.Op{Verb: sqlstore.Create, Key: k, Value: []byte(value)}
		if row, err := drivers[0].Read(t.Context(), k, 0); err == nil {
			op.Verb, op.Expect = sqlstore.Update, row.Revision
			if rng.IntN(30) == 0 {
				op.Verb = sqlstore.Delete
			}
		}
		if op.Verb != sqlstore.Delete && rng.IntN(5) == 0 {
			op.ExpiresAt = start.Add(time.Duration(i) * time.Hour)
		}
		for _, d := range drivers {
			if out := applyAt(t, d, start.Add(time.Duration(i)*time.Second), sqlstore.Txn{Ops: []sqlstore.Op{op}}); out[0].Err != nil {
				t.Fatal(out[0].Err)
			}
		}
	}
}

// looked counts the reads of old rows: each round of compaction does one for each retention.
type looked struct {
	sqlstore.Driver
	looks *atomic.Int64
}

func (l looked) Aged(ctx context.Context, newest, by, now time.Time) (int64, time.Time, error) {
	defer l.looks.Add(1)
	return l.Driver.Aged(ctx, newest, by, now)
}

// packedByStore lets a server keep a resource for less, and one for longer, than the rest.
func packedByStore(t *testing.T, db Database) {
	var looks, now atomic.Int64
	d := looked{db.Open(t), &looks}
	clock := func() time.Time { return start.Add(time.Duration(now.Load())) }
	cfg := sqlstore.Config{
		RetentionByResource: sqlstore.Retention{Default: time.Hour, ByResource: map[string]time.Duration{"pods": time.Minute, "nodes": 4 * time.Hour}},
		LogRetention:        10 * time.Minute, Clock: clock, Elapsed: func() time.Duration { return time.Duration(now.Load()) }, CompactEvery: time.Millisecond,
	}
	s := serve(t, d, cfg)
	revisions := map[string][]int64{}
	for minute := range 120 {
		for _, resource := range []string{"pods", "nodes", "leases.coordination.k8s.io"} {
			op := sqlstore.Op{Verb: sqlstore.Create, Key: key(resource, "", "a"), Value: fmt.Appendf(nil, `{"minute":%d}`, minute)}
			if minute > 0 {
				op.Verb, op.Expect = sqlstore.Update, revisions[resource][minute-1]
			}
			r, err := s.Write(t.Context(), op)
			if err != nil {
				t.Fatal(err)
			}
			revisions[resource] = append(revisions[resource], r.Revisions[0])
		}
		seen := looks.Load()
		waitFor(t, "a look at the head", func() bool { return looks.Load() > seen+8 })
		now.Add(int64(time.Minute))
	}
	now.Add(int64(10 * time.Minute))
	// The floor of the log may be seen in the database before the server that raises it knows of the others.
	waitFor(t, "the last pass", func() bool { return s.PastFloor("pods") >= 345 && s.PastFloor("pods") == s.Floor() })
	nodes, pods, leases := s.PastFloor("nodes"), s.PastFloor("pods"), s.PastFloor("leases.coordination.k8s.io")
	if nodes != 0 || leases < 150 || leases > 230 || pods != s.Floor() {
		t.Fatalf("the floors are %d, %d and %d", nodes, leases, pods)
	}
	for _, resource := range []string{"pods", "nodes", "leases.coordination.k8s.io"} {
		floor := s.PastFloor(resource)
		for minute, r := range revisions[resource] {
			row, err := s.Read(t.Context(), key(resource, "", "a"), r)
			if r < floor {
				wantErr(t, err, &sqlstore.CompactedError{Revision: r, Floor: floor})
			} else if want := fmt.Sprintf(`{"minute":%d}`, minute); err != nil || string(row.Value) != want {
				t.Fatalf("%s at %d is %s, %v; want %s", resource, r, row.Value, err, want)
			}
		}
	}
	for minute := 5; minute < 120; minute += 10 {
		r, err := s.RevisionAt(t.Context(), start.Add(time.Duration(minute)*time.Minute+30*time.Second))
		if want := revisions["leases.coordination.k8s.io"][minute]; err != nil || r < want-2 || r > want+1 {
			t.Fatalf("the revision at minute %d is %d, %v; want %d", minute, r, err, want)
		}
	}
}

// somebodyTrims imitates a server that knows nothing of packs: it deletes the history below its floor.
func somebodyTrims(t *testing.T, db Database) {
	d, m := db.Open(t), newModel()
	lives(t, 1, d, m)
	retain(t, sqlstore.Floors{Log: 100, Past: map[string]int64{"": 10}}, d, m)
	// A server with a shorter retention that lags: rows that wait to be packed are not its own.
	for _, to := range []int64{0, 50, 100} {
		for _, driver := range []sqlstore.Driver{d, m} {
			if n, err := driver.Trim(t.Context(), to, 1000); err != nil || n != 0 {
				t.Fatalf("trimming below the floor deleted %d rows, %v", n, err)
			}
		}
		samePast(t, d, m)
	}
	packAll(t, d, 50)
	for _, driver := range []sqlstore.Driver{d, m} {
		if _, err := driver.Trim(t.Context(), 150, 1000); err != nil {
			t.Fatal(err)
		}
	}
	samePast(t, d, m)
	forget(t, d)
	if s, err := d.Stats(t.Context()); err != nil || s.PackedRows != 0 {
		t.Fatalf("packs are left: %+v, %v", s, err)
	}
	retain(t, sqlstore.Floors{Log: 170, Past: map[string]int64{"": 20}}, d, m)
	packAll(t, d, 50)
	samePast(t, d, m)
}

// twoPackers pack at once: each row is moved by one of them.
func twoPackers(t *testing.T, db Database) {
	a, b, m := db.Open(t), db.Open(t), newModel()
	lives(t, 1, a, m)
	retain(t, sqlstore.Floors{Log: 190, Past: map[string]int64{"": 10}}, a, m)
	var packing sync.WaitGroup
	for _, d := range []sqlstore.Driver{a, b} {
		packing.Go(func() {
			for tries := 0; ; tries++ {
				var from sqlstore.Cursor
				done, err := sqlstore.Packed{}, error(nil)
				for !done.Done && err == nil {
					done, err = d.Pack(t.Context(), from, 3)
					from = done.Next
				}
				if err == nil {
					return
				}
				if !errors.Is(err, sqlstore.ErrBusy) || tries > 1000 {
					t.Errorf("packing beside another gave %v", err)
					return
				}
			}
		})
	}
	packing.Wait()
	samePast(t, a, m)
	clean(t, a)
}
