package memory_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive"
	"github.com/rowlock/rowlock/sqlstore/memory"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A backup of a database, with its history or without, fills one in memory and one of SQLite
// alike.
func TestLoad(t *testing.T) {
	t.Parallel()
	rng, now := rand.New(rand.NewPCG(7, 7)), start
	d := fresh(t).Open(t)
	for range 80 {
		now = now.Add(time.Second)
		if _, err := d.Apply(t.Context(), anyBatch(t, rng, d, now), now); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Trim(t.Context(), 40, 1<<20); err != nil {
		t.Fatal(err)
	}
	for _, history := range []bool{false, true} {
		var backup bytes.Buffer
		if _, _, err := archive.Backup(t.Context(), d, &backup, archive.Options{History: history}); err != nil {
			t.Fatal(err)
		}
		to, twin := fresh(t).Open(t), newFile(t).Open(t)
		for _, empty := range []sqlstore.Driver{to, twin} {
			if _, _, err := archive.Restore(t.Context(), empty, bytes.NewReader(backup.Bytes()), nil); err != nil {
				t.Fatal(err)
			}
		}
		step := fmt.Sprintf("restored, with history: %t", history)
		same(t, step, rng, to, twin)
		was, err := d.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if is, err := to.Stats(t.Context()); err != nil || is.ClusterID != was.ClusterID || is.LiveRows != was.LiveRows || history && is.HistoryRows != was.HistoryRows {
			t.Fatalf("%s: statistics are %+v, %v; were %+v", step, is, err, was)
		}
		both(t, step, rng, now, to, twin)
		same(t, step+", and written to", rng, to, twin)
		if _, _, err := archive.Restore(t.Context(), to, bytes.NewReader(backup.Bytes()), nil); !errors.Is(err, sqlstore.ErrNotEmpty) {
			t.Fatalf("restoring once more gave %v", err)
		}
		small := database{memory.New(memory.Config{MaxBytes: 1000})}.Open(t)
		if _, _, err := archive.Restore(t.Context(), small, bytes.NewReader(backup.Bytes()), nil); !errors.Is(err, sqlstore.ErrFull) {
			t.Fatalf("restoring into too little gave %v", err)
		}
		if b, err := small.Bounds(t.Context()); err != nil || b != (sqlstore.Bounds{}) {
			t.Fatalf("after that there is %+v, %v", b, err)
		}
	}
}

// A database that is full takes deletes, and nothing else until history has gone.
func TestFull(t *testing.T) {
	d := database{memory.New(memory.Config{MaxBytes: 20 << 10})}.Open(t)
	op := func(verb sqlstore.Verb, name string, expect int64) sqlstore.Txn {
		return sqlstore.Txn{Ops: []sqlstore.Op{{Verb: verb, Key: sqlstore.Key{Resource: "pods", Namespace: "a", Name: name}, Expect: expect, Value: make([]byte, 1000)}}}
	}
	written := int64(0)
	for {
		_, err := d.Apply(t.Context(), []sqlstore.Txn{op(sqlstore.Create, fmt.Sprint(written), 0)}, start)
		if errors.Is(err, sqlstore.ErrFull) {
			break
		}
		if written++; err != nil || written > 20 {
			t.Fatalf("write %d: %v", written, err)
		}
	}
	if s, err := d.Stats(t.Context()); err != nil || s.Bytes > 20<<10 || s.Bytes < 18<<10 {
		t.Fatalf("a full database has %d bytes, %v", s.Bytes, err)
	}
	out, err := d.Apply(t.Context(), []sqlstore.Txn{op(sqlstore.Create, "more", 0), op(sqlstore.Delete, "0", 1), op(sqlstore.Create, "0", 0)}, start)
	if err != nil || !errors.Is(out[0].Err, sqlstore.ErrFull) || out[1].Err != nil || !errors.Is(out[2].Err, sqlstore.ErrFull) {
		t.Fatalf("a batch of all kinds gave %+v, %v", out, err)
	}
	if _, err := d.Trim(t.Context(), written+1, 100); err != nil {
		t.Fatal(err)
	}
	if out, err := d.Apply(t.Context(), []sqlstore.Txn{op(sqlstore.Create, "more", 0)}, start); err != nil || out[0].Err != nil {
		t.Fatalf("after history has gone: %+v, %v", out, err)
	}
}

// same compares all that two drivers answer, but for their statistics of bytes.
func same(t *testing.T, step string, rng *rand.Rand, a, b sqlstore.Driver) {
	t.Helper()
	ctx := t.Context()
	want := func(what string, x, y any, errX, errY error) {
		t.Helper()
		if g, w := fmt.Sprintf("%+v, %v", x, cause(errX)), fmt.Sprintf("%+v, %v", y, cause(errY)); g != w {
			t.Fatalf("%s: %s is\n%s, and in SQLite\n%s", step, what, g, w)
		}
	}
	bounds, err := a.Bounds(ctx)
	other, errB := b.Bounds(ctx)
	want("bounds", bounds, other, err, errB)
	revisions := []int64{0, bounds.Head, bounds.Floor + rng.Int64N(bounds.Head-bounds.Floor+1), bounds.Floor - 1, bounds.Head + 1}
	for _, revision := range revisions {
		req := sqlstore.ScanRequest{Limit: 1 + rng.IntN(40), Revision: max(0, revision), After: anyKey(rng)}
		if rng.IntN(2) == 0 {
			req.Resource = anyKey(rng).Resource
		}
		if rng.IntN(3) == 0 {
			req.Namespace = anyKey(rng).Namespace
		}
		x, errX := a.Scan(ctx, req)
		y, errY := b.Scan(ctx, req)
		want(fmt.Sprintf("%+v", req), rowsOf(x), rowsOf(y), errX, errY)
		k := anyKey(rng)
		r, errX := a.Read(ctx, k, req.Revision)
		s, errY := b.Read(ctx, k, req.Revision)
		want(fmt.Sprintf("%s at %d", k, revision), rowsOf([]sqlstore.Row{r}), rowsOf([]sqlstore.Row{s}), errX, errY)
		c, errX := a.Changes(ctx, max(0, revision), 30, true)
		d, errY := b.Changes(ctx, max(0, revision), 30, true)
		want(fmt.Sprintf("the log after %d", revision), logOf(c), logOf(d), errX, errY)
	}
	at := start.Add(time.Duration(rng.IntN(3000)) * time.Second)
	x, errX := a.Expired(ctx, at, 1000)
	y, errY := b.Expired(ctx, at, 1000)
	byRevision := func(a, b sqlstore.Row) int { return int(a.Revision - b.Revision) }
	slices.SortFunc(x, byRevision)
	slices.SortFunc(y, byRevision)
	want("what has expired", rowsOf(x), rowsOf(y), errX, errY)
	r, errX := a.RevisionAt(ctx, at)
	s, errY := b.RevisionAt(ctx, at)
	want("the revision at a time", r, s, errX, errY)
	m, errX := a.Stats(ctx)
	n, errY := b.Stats(ctx)
	want("the count", fmt.Sprint(m.LiveRows, m.HistoryRows, m.Resources, m.OldestWrittenAt), fmt.Sprint(n.LiveRows, n.HistoryRows, n.Resources, n.OldestWrittenAt), errX, errY)
}

// cause returns the error of the contract inside of another one, without the text of the driver.
func cause(err error) error {
	for err != nil {
		switch err.(type) {
		case *sqlstore.NotFoundError, *sqlstore.CompactedError, *sqlstore.FutureError:
			return err
		}
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
	return nil
}

func rowsOf(rows []sqlstore.Row) (out []string) {
	for _, r := range rows {
		out = append(out, fmt.Sprintf("%s %d %d %d %t %q %s %s", r.Key, r.Revision, r.Created, r.Superseded, r.Deleted, r.Value, r.ExpiresAt.UTC(), r.WrittenAt.UTC()))
	}
	return out
}

func logOf(changes []sqlstore.Change) (out []string) {
	for _, c := range changes {
		out = append(out, fmt.Sprintf("%s before: %d %q", rowsOf([]sqlstore.Row{c.Row})[0], c.PrevRevision, c.PrevValue))
	}
	return out
}

func anyKey(rng *rand.Rand) sqlstore.Key {
	k := sqlstore.Key{Resource: []string{"pods", "nodes", "deployments.apps"}[rng.IntN(3)], Name: string(rune('a' + rng.IntN(20)))}
	if k.Resource != "nodes" {
		k.Namespace = []string{"a", "b", "kube-system"}[rng.IntN(3)]
	}
	return k
}

// anyBatch is mostly right for the driver that it is made for.
func anyBatch(t *testing.T, rng *rand.Rand, d sqlstore.Driver, now time.Time) []sqlstore.Txn {
	batch := make([]sqlstore.Txn, 1+rng.IntN(5))
	for i := range batch {
		used := map[sqlstore.Key]bool{}
		for range 1 + rng.IntN(3) {
			op := sqlstore.Op{Verb: sqlstore.Create, Key: anyKey(rng), Value: fmt.Appendf(nil, "value %d", rng.Uint64())}
			if used[op.Key] {
				continue
			}
			used[op.Key] = true
			if row, err := d.Read(t.Context(), op.Key, 0); err == nil && rng.IntN(10) > 0 {
				op.Verb, op.Expect = sqlstore.Verb(2+rng.IntN(2)), row.Revision
			} else if rng.IntN(10) == 0 {
				op.Verb, op.Expect = sqlstore.Verb(1+rng.IntN(3)), rng.Int64N(50)
			}
			if rng.IntN(4) == 0 {
				op.ExpiresAt = now.Add(time.Duration(rng.IntN(1e9)) * time.Microsecond)
			}
			batch[i].Ops = append(batch[i].Ops, op)
		}
	}
	return batch
}

// both does the same with two drivers and compares the results.
func both(t *testing.T, step string, rng *rand.Rand, now time.Time, a, b sqlstore.Driver) {
	t.Helper()
	if rng.IntN(8) == 0 {
		bounds, err := a.Bounds(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// Both delete what ended first, so that they are at the same row after any limit.
		to, limit := bounds.Floor+rng.Int64N(bounds.Head-bounds.Floor+3), 1+rng.IntN(60)
		n, errN := a.Trim(t.Context(), to, limit)
		m, errM := b.Trim(t.Context(), to, limit)
		if n != m || errN != nil || errM != nil {
			t.Fatalf("%s: trimming to %d, up to %d rows, deleted %d, %v, and in SQLite %d, %v", step, to, limit, n, errN, m, errM)
		}
		return
	}
	batch := anyBatch(t, rng, a, now)
	out, err := a.Apply(t.Context(), batch, now)
	other, errB := b.Apply(t.Context(), batch, now)
	if got, want := fmt.Sprint(out, err), fmt.Sprint(other, errB); got != want {
		t.Fatalf("%s: %+v gave\n%s, and in SQLite\n%s", step, batch, got, want)
	}
}

// The driver and SQLite's get the same random history, and must give the same answers at every step. In
// between databases are cloned, and continue separately: the content of one database becomes the backup of
// its twin.
func TestLikeSQLite(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 1))
		type pair struct {
			memory *memory.Database
			driver sqlstore.Driver
			twin   sqlstore.Driver
		}
		first := memory.New(memory.Config{})
		pairs := []pair{{first, database{first}.Open(t), newFile(t).Open(t)}}
		now := start
		for step := range 130 {
			now = now.Add(time.Duration(rng.IntN(20000)) * time.Millisecond)
			i := rng.IntN(len(pairs))
			p := pairs[i]
			name := fmt.Sprintf("seed %d, step %d, database %d", seed, step, i)
			both(t, name, rng, now, p.driver, p.twin)
			if step%50 == 49 {
				// Rows that are about to be deleted are in no backup, but in a clone.
				bounds, err := p.driver.Bounds(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range []sqlstore.Driver{p.driver, p.twin} {
					if _, err := d.Trim(t.Context(), bounds.Floor, 1<<20); err != nil {
						t.Fatal(err)
					}
				}
				clone := p.memory.Clone()
				pairs = append(pairs, pair{clone, database{clone}.Open(t), copied(t, p.twin)})
			}
			if step%10 == 9 {
				for i, p := range pairs {
					same(t, fmt.Sprintf("seed %d, step %d, database %d", seed, step, i), rng, p.driver, p.twin)
				}
			}
		}
	}
}

// copied returns a database with the content of another, by way of a backup.
func copied(t *testing.T, d sqlstore.Driver) sqlstore.Driver {
	t.Helper()
	var file bytes.Buffer
	if _, _, err := archive.Backup(t.Context(), d, &file, archive.Options{History: true}); err != nil {
		t.Fatal(err)
	}
	to := newFile(t).Open(t)
	if _, _, err := archive.Restore(t.Context(), to, &file, nil); err != nil {
		t.Fatal(err)
	}
	return to
}

// Clones are made, written to and read at the same time, while their origin is written to: each has its own
// content.
func TestClonesAtOnce(t *testing.T) {
	const objects, clones, rounds = 300, 8, 50
	origin := memory.New(memory.Config{})
	d := database{origin}.Open(t)
	write := func(d sqlstore.Driver, op sqlstore.Op) int64 {
		out, err := d.Apply(context.Background(), []sqlstore.Txn{{Ops: []sqlstore.Op{op}}}, start)
		if err != nil || out[0].Err != nil {
			t.Errorf("%s: %v, %v", op.Key, err, out)
			return 0
		}
		return out[0].Revisions[0]
	}
	key := func(i int) sqlstore.Key {
		return sqlstore.Key{Resource: "pods", Namespace: "a", Name: fmt.Sprint(i)}
	}
	for i := range objects {
		write(d, sqlstore.Op{Verb: sqlstore.Create, Key: key(i), Value: []byte("origin")})
	}
	kept := origin.Snapshot()
	var all sync.WaitGroup
	for c := range clones {
		all.Go(func() {
			own := kept.Clone()
			mine := own.Open()
			defer mine.Close()
			value := fmt.Sprint("clone ", c)
			for i := range rounds {
				at := (i*7 + c) % objects
				row, err := mine.Read(context.Background(), key(at), 0)
				if err != nil || string(row.Value) != "origin" {
					t.Errorf("clone %d has %q, %v", c, row.Value, err)
					return
				}
				write(mine, sqlstore.Op{Verb: sqlstore.Update, Key: key(at), Expect: row.Revision, Value: []byte(value)})
				again := own.Clone().Open()
				if row, err := again.Read(context.Background(), key(at), 0); err != nil || string(row.Value) != value {
					t.Errorf("the clone of clone %d has %q, %v", c, row.Value, err)
				}
				again.Close()
			}
			rows, err := mine.Scan(context.Background(), sqlstore.ScanRequest{Limit: 2 * objects})
			changed := 0
			for _, r := range rows {
				if string(r.Value) == value {
					changed++
				} else if string(r.Value) != "origin" {
					t.Errorf("clone %d has %q", c, r.Value)
				}
			}
			if err != nil || len(rows) != objects || changed != rounds {
				t.Errorf("clone %d has %d objects, %d changed, %v", c, len(rows), changed, err)
			}
		})
	}
	all.Go(func() {
		for i := range objects {
			write(d, sqlstore.Op{Verb: sqlstore.Delete, Key: key(i), Expect: int64(i + 1), Value: []byte("gone")})
		}
	})
	all.Wait()
	if kept.Revision() != objects {
		t.Errorf("a snapshot moved to revision %d", kept.Revision())
	}
	if rows, err := d.Scan(t.Context(), sqlstore.ScanRequest{Limit: 10}); err != nil || len(rows) != 0 {
		t.Errorf("the origin has %d objects, %v", len(rows), err)
	}
}

// ignorant is the sink of a store without a feed.
type ignorant struct{}

func (ignorant) Apply([]sqlstore.Change) {}

func running(t *testing.T, d sqlstore.Driver) *sqlstore.Store {
	// The entries that these tests write are as old as start: by a retention of minutes they are gone before
	// the feed has seen it.
	const always = 200 * 365 * 24 * time.Hour
	s := sqlstore.New(d, sqlstore.Config{Retention: always, LogRetention: always})
	b, err := d.Bounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, b.Head, ignorant{}) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// Reset undoes whatever was done since a snapshot, as often as it is asked, by writes that
// others follow.
func TestReset(t *testing.T) {
	db := memory.New(memory.Config{})
	d := database{db}.Open(t)
	rng, now := rand.New(rand.NewPCG(1, 1)), start
	for range 60 {
		now = now.Add(time.Second)
		if _, err := d.Apply(t.Context(), anyBatch(t, rng, d, now), now); err != nil {
			t.Fatal(err)
		}
	}
	kept, state := db.Snapshot(), liveOf(t, d)
	s := running(t, d)
	for range 5 {
		for range 1 + rng.IntN(60) {
			now = now.Add(time.Second)
			if _, err := d.Apply(t.Context(), anyBatch(t, rng, d, now), now); err != nil {
				t.Fatal(err)
			}
		}
		before, err := d.Bounds(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(liveOf(t, d), state) {
			t.Fatal("nothing was changed")
		}
		if err := db.Reset(t.Context(), kept, s); err != nil {
			t.Fatal(err)
		}
		if got := liveOf(t, d); !slices.Equal(got, state) {
			t.Fatalf("after a reset there is\n%q, want\n%q", got, state)
		}
		after, err := d.Bounds(t.Context())
		if err != nil || after.Head <= before.Head {
			t.Fatalf("a reset went from revision %d to %d, %v", before.Head, after.Head, err)
		}
		if err := db.Reset(t.Context(), kept, s); err != nil {
			t.Fatal(err)
		}
		if again, err := d.Bounds(t.Context()); err != nil || again != after {
			t.Fatalf("a reset with nothing to do wrote up to %+v, %v", again, err)
		}
	}
}

func liveOf(t *testing.T, d sqlstore.Driver) (out []string) {
	t.Helper()
	rows, err := d.Scan(t.Context(), sqlstore.ScanRequest{Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		out = append(out, fmt.Sprintf("%s %q %s", r.Key, r.Value, r.ExpiresAt))
	}
	return out
}
