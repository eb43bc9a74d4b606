package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

const leases = "leases.coordination.k8s.io"

func relaxedFile(t *testing.T) file {
	return file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{Relaxed: []string{leases}, NoCheckpoint: true}}
}

func putIn(resource, name string) sqlstore.Txn {
	txn := put(name, `"`+name+`"`)
	txn.Ops[0].Key.Resource = resource
	return txn
}

// logSize returns the size of the write-ahead log.
func logSize(t *testing.T, f file) int64 {
	t.Helper()
	info, err := os.Stat(f.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// afterPowerLoss copies what the disk has when nothing of the write-ahead log beyond a size was
// synced, and has the machine started again.
func afterPowerLoss(t *testing.T, f file, synced int64) file {
	t.Helper()
	other := afterKill(t, f, synced)
	other.Exec(t, `UPDATE kv_meta SET value = 'another run' WHERE key = 'boot'`)
	return other
}

// afterKill copies what a process leaves that is killed, with so much of the write-ahead log.
func afterKill(t *testing.T, f file, size int64) file {
	t.Helper()
	other := f
	other.path = filepath.Join(t.TempDir(), "test.db")
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(f.path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if suffix == "-wal" {
			data = data[:size]
		}
		if err := os.WriteFile(other.path+suffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return other
}

func waitSynced(t *testing.T, d *sqlite.Driver) {
	t.Helper()
	for end := time.Now().Add(time.Minute); d.RelaxedStats().Unsynced > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("relaxed commits are not synced")
		}
	}
}

func wantNames(t *testing.T, d sqlstore.Driver, names ...string) {
	t.Helper()
	rows, err := d.Scan(t.Context(), sqlstore.ScanRequest{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range rows {
		got = append(got, row.Key.Name)
	}
	if len(got) != len(names) {
		t.Fatalf("there are %q, want %q", got, names)
	}
	for i := range names {
		if got[i] != names[i] {
			t.Fatalf("there are %q, want %q", got, names)
		}
	}
}

// TestPowerLoss: relaxed writes that were not synced are lost, all others are there, and no lost revision is
// assigned again, nor can a client continue a watch from one.
func TestPowerLoss(t *testing.T) {
	f := relaxedFile(t)
	d := f.Open(t).(*sqlite.Driver)
	mustApply(t, d, putIn("pods", "z-durable"))
	mustApply(t, d, putIn(leases, "a-synced"))
	waitSynced(t, d) // by a sync of its own
	synced := logSize(t, f)
	mustApply(t, d, putIn(leases, "b-lost"))
	if logSize(t, f) == synced {
		t.Fatal("the log did not grow")
	}
	after := afterPowerLoss(t, f, synced).Open(t)
	wantNames(t, after, "a-synced", "z-durable")
	b, err := after.Bounds(t.Context())
	if err != nil || b.Head < 3 || b.Floor != b.Head {
		t.Fatalf("the bounds are %v, %v", b, err)
	}
	out, err := after.Apply(t.Context(), []sqlstore.Txn{putIn(leases, "c-new")}, time.Now())
	if err != nil || out[0].Revisions[0] != b.Head+1 {
		t.Fatalf("the next write gave %v, %v", out, err)
	}
	var compacted *sqlstore.CompactedError
	if _, err := after.Changes(t.Context(), 3, 10, false); !errors.As(err, &compacted) {
		t.Fatalf("watching on from a lost revision gave %v", err)
	}
	storetest.CheckTable(t, after)
}

// TestPowerLossBehindADurableWrite: a durable commit brings all relaxed ones before it to the
// disk, and one that is durable in part is durable.
func TestPowerLossBehindADurableWrite(t *testing.T) {
	f := relaxedFile(t)
	d := f.Open(t).(*sqlite.Driver)
	mustApply(t, d, putIn("pods", "first"))
	level := func(want int64) {
		t.Helper()
		if got, err := d.Synchronous(); got != want || err != nil {
			t.Fatalf("the commit had synchronous=%d, %v, want %d", got, err, want)
		}
	}
	mustApply(t, d, putIn(leases, "relaxed"))
	level(1)
	mustApply(t, d, putIn(leases, "mixed"), putIn("pods", "durable"))
	level(2)
	if s := d.RelaxedStats(); s.Writes != 1 {
		t.Fatalf("%d writes were relaxed, want 1", s.Writes)
	}
	after := afterPowerLoss(t, f, logSize(t, f)).Open(t)
	wantNames(t, after, "mixed", "relaxed", "durable", "first")
}

// TestRelaxedInGoodOrder: a server that ends, or is killed and starts again while the machine runs on,
// leaves out no revision.
func TestRelaxedInGoodOrder(t *testing.T) {
	f := relaxedFile(t)
	d := f.Open(t)
	mustApply(t, d, putIn("pods", "a"), putIn(leases, "b"))
	d.Close()
	f.Exec(t, `UPDATE kv_meta SET value = 'another run' WHERE key = 'boot'`)
	again := f.Open(t)
	if b, err := again.Bounds(t.Context()); b != (sqlstore.Bounds{Head: 2}) || err != nil {
		t.Fatalf("after a good end the bounds are %v, %v", b, err)
	}
}

// TestFailedSync: after a failed sync, commits reach the disk another way first.
func TestFailedSync(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{NoCheckpoint: true}}
	d := f.Open(t).(*sqlite.Driver)
	broken, failed, end := errors.New("the disk is broken"), make(chan struct{}), make(chan struct{})
	d.RelaxWith([]string{leases}, func() error {
		d.SyncFailed(broken) // reported before its end: else the syncer may come again, and mend it, before the writer does
		close(failed)
		<-end
		return broken
	})
	defer close(end)
	mustApply(t, d, putIn("pods", "a"))
	mustApply(t, d, putIn(leases, "b"))
	<-failed
	before := logSize(t, f)
	mustApply(t, d, putIn(leases, "c")) // after a checkpoint, so that the log begins anew
	if got := logSize(t, f); got >= before {
		t.Fatalf("the log had %d bytes and has %d", before, got)
	}
	if got, err := d.Synchronous(); got != 2 || err != nil {
		t.Fatalf("the commit after it had synchronous=%d, %v", got, err)
	}
}

// TestSyncThatFailedOnceIsNotForgotten: the next sync may find nothing to do, as the system takes the pages
// for written. So it is no sync, but all of the log goes into the file, also without writes.
func TestSyncThatFailedOnceIsNotForgotten(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{NoCheckpoint: true}}
	d := f.Open(t).(*sqlite.Driver)
	var syncs atomic.Int32
	d.RelaxWith([]string{leases}, func() error {
		if syncs.Add(1) == 1 {
			return errors.New("the disk was broken")
		}
		return nil
	})
	mustApply(t, d, putIn("pods", "a"))
	mustApply(t, d, putIn(leases, "b"))
	waitSynced(t, d)
	if s := d.RelaxedStats(); s.Failures != 1 || syncs.Load() != 1 {
		t.Fatalf("%d syncs, %d of them failed", syncs.Load(), s.Failures)
	}
	if got := logSize(t, f); got != 0 {
		t.Fatalf("the log has %d bytes still", got)
	}
	mustApply(t, d, putIn(leases, "c"))
	waitSynced(t, d)
	if syncs.Load() != 2 {
		t.Fatalf("%d syncs once all was mended", syncs.Load())
	}
}

// TestKilledAfterAFailedSync: a sync may have failed before the process was killed, and another one
// would find nothing to do. So the next process has all of the log in the file before it serves.
func TestKilledAfterAFailedSync(t *testing.T) {
	f := relaxedFile(t)
	d := f.Open(t)
	mustApply(t, d, putIn("pods", "a"))
	mustApply(t, d, putIn(leases, "b"))
	for _, other := range []bool{false, true} { // whether another program copies the log
		left := afterKill(t, f, logSize(t, f))
		left.cfg.NoCheckpoint = other
		left.cfg.Relaxed = nil
		again := left.Open(t)
		if got := logSize(t, left); (got != 0) != other {
			t.Errorf("the log has %d bytes; it is for another program: %v", got, other)
		}
		wantNames(t, again, "b", "a")
	}
}

// TestOlderBinariesAndRelaxed: a binary that does not look for lost revisions may open only a file in which
// none can be lost; the same holds for packs.
func TestOlderBinariesAndRelaxed(t *testing.T) {
	want := func(f file, when string, n int64) {
		t.Helper()
		if got, err := f.compatible(); got != n || err != nil {
			t.Errorf("%s the oldest schema is %d, %v, not %d", when, got, err, n)
		}
	}
	f := relaxedFile(t)
	d := f.Open(t)
	want(f, "before any write", sqlstore.UnpackedSchema)
	mustApply(t, d, putIn("pods", "a"))
	want(f, "with revisions set aside", sqlstore.RelaxedSchema)
	after := afterPowerLoss(t, f, logSize(t, f))
	other := after
	other.cfg.Relaxed = nil
	other.Open(t).Close()
	want(other, "once what may be lost was skipped", sqlstore.UnpackedSchema)
	d.Close()
	want(f, "after a good end", sqlstore.UnpackedSchema)
	d = f.Open(t)
	mustApply(t, d, putIn("pods", "b"))
	if _, err := d.Retain(t.Context(), sqlstore.Floors{Log: 1, Past: map[string]int64{"": 0}}); err != nil {
		t.Fatal(err)
	}
	want(f, "beside packs", sqlstore.RelaxedSchema)
	d.Close()
	want(f, "beside packs after a good end", sqlstore.PackedSchema)
}
