package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// patience bounds how long a test waits for expected events.
const patience = 2 * time.Minute

var severalTests = map[string]func(*testing.T, Database){
	"one sees the other's writes": func(t *testing.T, db Database) {
		a, b := db.Open(t), db.Open(t)
		for i := range 20 {
			writer, reader := a, b
			if i%2 == 1 {
				writer, reader = b, a
			}
			r := must(t, writer, create(pod(fmt.Sprint(i)), "x"))
			if r != int64(i+1) {
				t.Fatalf("revision %d is %d", i+1, r)
			}
			wantBounds(t, reader, 0, r)
			wantCurrent(t, reader, sqlstore.Row{Key: pod(fmt.Sprint(i)), Revision: r, Created: r, Value: []byte("x"), WrittenAt: start})
		}
		trim(t, a, 5, 10, 0)
		wantBounds(t, b, 5, 20)
	},
	"the same cluster": func(t *testing.T, db Database) {
		a, err := db.Open(t).Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b, err := db.Open(t).Stats(t.Context())
		if err != nil || a.ClusterID != b.ClusterID || a.ClusterID == "" {
			t.Fatalf("cluster ids are %q and %q, %v", a.ClusterID, b.ClusterID, err)
		}
	},
	"hints": func(t *testing.T, db Database) {
		a, b := db.Open(t), db.Open(t)
		ctx, cancel := context.WithCancel(t.Context())
		hints := b.Hints(ctx)
		for i := range 3 {
			must(t, a, create(pod(fmt.Sprint(i)), "x"))
			for deadline := time.After(patience); ; {
				select {
				case <-hints:
				case <-deadline:
					t.Fatal("no hint came")
				}
				if bounds, err := b.Bounds(t.Context()); err != nil {
					t.Fatal(err)
				} else if bounds.Head == int64(i+1) {
					break
				}
			}
		}
		cancel()
		for range hints { // closes
		}
	},
	"exclusive": func(t *testing.T, db Database) {
		a := db.Open(t)
		before := a.Exclusive()
		b := db.Open(t)
		must(t, b, create(pod("a"), "x"))
		if e := a.Exclusive(); e != 0 && e == before {
			t.Fatal("a driver believes to be alone that is not")
		}
		b.Close()
		if e := a.Exclusive(); e != 0 && e == before {
			t.Fatal("a driver believes to have been alone that was not")
		}
	},
	"leads": func(t *testing.T, db Database) {
		a, b := db.Open(t), db.Open(t)
		_, release, ok, err := a.Lead(t.Context(), "x")
		if !ok || err != nil {
			t.Fatalf("nobody leads, and the lead is refused: %v", err)
		}
		for _, d := range []sqlstore.Driver{a, b} {
			if _, _, ok, err := d.Lead(t.Context(), "x"); ok || err != nil {
				t.Fatalf("a second leader: %v, %v", ok, err)
			}
		}
		_, other, ok, err := b.Lead(t.Context(), "y")
		if !ok || err != nil {
			t.Fatalf("another name is refused: %v", err)
		}
		other()
		release()
		release()
		waitFor(t, "the lead to be given up", func() bool {
			held, _, ok, err := b.Lead(t.Context(), "x")
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				select {
				case <-held:
					t.Fatal("a lead is lost as soon as won")
				default:
				}
			}
			return ok
		})
		if err := b.Close(); err != nil { // the holder goes
			t.Fatal(err)
		}
		waitFor(t, "the lead of a closed holder", func() bool {
			_, release, ok, err := a.Lead(t.Context(), "x")
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				release()
			}
			return ok
		})
	},
	"writers race on few keys": func(t *testing.T, db Database) {
		const servers, rounds, keys = 3, 60, 4
		var drivers []sqlstore.Driver
		for range servers {
			drivers = append(drivers, db.Open(t))
		}
		for i := range keys {
			must(t, drivers[0], create(pod(fmt.Sprint(i)), "0"))
		}
		var wg sync.WaitGroup
		for s, d := range drivers {
			wg.Go(func() {
				for round := 0; round < rounds; {
					won, err := increment(t.Context(), d, pod(fmt.Sprint((s+round)%keys)))
					if err != nil {
						t.Error(err)
						return
					}
					if won {
						round++
					}
				}
			})
		}
		wg.Wait()
		sum := 0
		for _, row := range scanAll(t, drivers[1], sqlstore.ScanRequest{Limit: 10}) {
			n, _ := strconv.Atoi(string(row.Value))
			sum += n
		}
		if sum != servers*rounds {
			t.Fatalf("%d increments are left of %d", sum, servers*rounds)
		}
		wantBounds(t, drivers[2], 0, keys+servers*rounds)
		log := changes(t, drivers[2], 0)
		contiguous(t, log, 0)
		for _, c := range log[keys:] { // each was made from the one it replaced
			was, _ := strconv.Atoi(string(c.PrevValue))
			is, _ := strconv.Atoi(string(c.Value))
			if is != was+1 {
				t.Fatalf("revision %d made %q of %q", c.Revision, c.Value, c.PrevValue)
			}
		}
	},
	"one winner creates": func(t *testing.T, db Database) {
		drivers := []sqlstore.Driver{db.Open(t), db.Open(t)}
		for i := range 30 {
			var wg sync.WaitGroup
			wins := make([]int, len(drivers))
			for s, d := range drivers {
				wg.Go(func() {
					out, err := applyAgain(t.Context(), d, create(pod(fmt.Sprint(i)), fmt.Sprint(s)))
					if err != nil {
						t.Error(err)
					} else if out.Err == nil {
						wins[s]++
					}
				})
			}
			wg.Wait()
			if wins[0]+wins[1] != 1 {
				t.Fatalf("round %d has winners %v", i, wins)
			}
		}
		wantBounds(t, drivers[0], 0, 30)
	},
}

// applyAgain repeats a batch while the database is busy, as Store does.
func applyAgain(ctx context.Context, d sqlstore.Driver, txn sqlstore.Txn) (sqlstore.Outcome, error) {
	for {
		out, err := d.Apply(ctx, []sqlstore.Txn{txn}, start)
		if err == nil {
			return out[0], nil
		}
		if !errors.Is(err, sqlstore.ErrBusy) {
			return sqlstore.Outcome{}, err
		}
	}
}

// increment adds one to the number that a key holds; won is false on a conflict.
func increment(ctx context.Context, d sqlstore.Driver, k sqlstore.Key) (won bool, err error) {
	row, err := d.Read(ctx, k, 0)
	if err != nil {
		return false, err
	}
	n, err := strconv.Atoi(string(row.Value))
	if err != nil {
		return false, err
	}
	out, err := applyAgain(ctx, d, update(k, row.Revision, strconv.Itoa(n+1)))
	if err != nil {
		return false, err
	}
	var conflict *sqlstore.ConflictError
	if errors.As(out.Err, &conflict) {
		if conflict.Current.Revision <= row.Revision {
			return false, fmt.Errorf("the conflict with %d shows the older revision %d", row.Revision, conflict.Current.Revision)
		}
		return false, nil
	}
	return true, out.Err
}

func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// twoServers writes at random through two servers and checks the changes that each has seen: the same log, in
// order, whole, with each acknowledged write, and equal to the table.
func twoServers(t *testing.T, db Database) {
	const writers, writes, keys = 6, 40, 5
	d := db.Open(t)
	servers := []*server{serve(t, d, sqlstore.Config{}), serve(t, db.Open(t), sqlstore.Config{})}
	for i := range keys {
		write(t, servers[0], create(pod(fmt.Sprint(i)), "0").Ops[0])
	}
	var mu sync.Mutex
	acknowledged := make(map[int64]string)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			s := servers[w%len(servers)]
			for n := 0; n < writes; {
				k := pod(strconv.Itoa(rng.IntN(keys)))
				row, err := s.Read(t.Context(), k, 0)
				if err != nil {
					t.Error(err)
					return
				}
				value := fmt.Sprintf("%d/%d", w, n)
				out, err := s.Write(t.Context(), update(k, row.Revision, value).Ops...)
				var conflict *sqlstore.ConflictError
				if errors.As(err, &conflict) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				n++
				if s.Applied() < out.Revisions[0] {
					t.Errorf("acknowledged %d and applied %d", out.Revisions[0], s.Applied())
				}
				mu.Lock()
				acknowledged[out.Revisions[0]] = value
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	head := int64(keys + writers*writes)
	wantBounds(t, d, 0, head)
	table := changes(t, d, 0)
	contiguous(t, table, 0)
	for _, s := range servers {
		waitFor(t, "the whole log", func() bool { return s.Applied() == head })
		log := s.Log(t)
		log = log[max(0, len(log)-writers*writes):]
		for i, c := range log {
			want := table[keys+i]
			if c.Revision != want.Revision || c.Key != want.Key || string(c.Value) != string(want.Value) || c.PrevRevision != want.PrevRevision {
				t.Fatalf("a sink was shown %+v, the table has %+v", c, want)
			}
			if acknowledged[c.Revision] != string(c.Value) {
				t.Fatalf("revision %d was acknowledged as %q and is %q", c.Revision, acknowledged[c.Revision], c.Value)
			}
		}
	}
}
