package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// resolve finds that a batch was not written.
func resolve(t *testing.T, d sqlstore.Driver) {
	t.Helper()
	if _, committed, err := d.Resolve(t.Context()); committed || err != nil {
		t.Fatalf("the batch: committed %v, %v", committed, err)
	}
}

// TestFailedSyncOfACommit: with a sync of a durable commit that fails the system may have thrown away
// relaxed commits before it. So all of the log goes into the file before anything else counts,
// also where another process relaxes.
func TestFailedSyncOfACommit(t *testing.T) {
	for name, fail := range map[string]func(t *testing.T, d *sqlite.Driver){
		"batch": func(t *testing.T, d *sqlite.Driver) {
			if _, err := d.Apply(t.Context(), []sqlstore.Txn{putIn("pods", "uncertain")}, time.Now()); !errors.Is(err, sqlstore.ErrUncertain) {
				t.Fatalf("the batch gave %v", err)
			}
			resolve(t, d)
		},
		"trim": func(t *testing.T, d *sqlite.Driver) {
			if _, err := d.Trim(t.Context(), 1, 10); !errors.Is(err, sqlstore.ErrUnavailable) {
				t.Fatalf("trimming gave %v", err)
			}
		},
		"retain": func(t *testing.T, d *sqlite.Driver) {
			if _, err := d.Retain(t.Context(), sqlstore.Floors{Log: 1}); !errors.Is(err, sqlstore.ErrUnavailable) {
				t.Fatalf("raising the floors gave %v", err)
			}
		},
	} {
		for _, other := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", relaxed by another: ", other), func(t *testing.T) {
				f := relaxedFile(t)
				relaxing := f.Open(t).(*sqlite.Driver)
				d := relaxing
				if other {
					f.cfg.Relaxed = nil
					d = f.Open(t).(*sqlite.Driver)
				}
				mustApply(t, relaxing, putIn("pods", "durable"))
				mustApply(t, relaxing, putIn(leases, "relaxed"))
				before := logSize(t, f)
				d.FailCommit()
				fail(t, d)
				mustApply(t, d, putIn("pods", "next"))
				if got := logSize(t, f); got >= before {
					t.Fatalf("the log had %d bytes before the sync that failed, and has %d", before, got)
				}
				wantNames(t, d, "relaxed", "durable", "next")
			})
		}
	}
}

// TestFailedSyncOfADurableCommit: where nothing is relaxed, all before it was synced, and the log is
// left alone: another program may be about to copy it.
func TestFailedSyncOfADurableCommit(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{NoCheckpoint: true}}
	d := f.Open(t).(*sqlite.Driver)
	mustApply(t, d, put("a", "a"))
	before := logSize(t, f)
	d.FailCommit()
	if _, err := d.Apply(t.Context(), []sqlstore.Txn{put("b", "b")}, time.Now()); !errors.Is(err, sqlstore.ErrUncertain) {
		t.Fatalf("the batch gave %v", err)
	}
	resolve(t, d)
	mustApply(t, d, put("c", "c"))
	if got := logSize(t, f); got <= before {
		t.Fatalf("the log had %d bytes, and has %d", before, got)
	}
}

// TestFailedSyncOfAPiece: the disk may lack a piece of a large value in the middle of the log, behind which recovery would find
// nothing. So all of the log goes into the file before anything else counts, whichever process notices.
func TestFailedSyncOfAPiece(t *testing.T) {
	for name, fail := range map[string]func(t *testing.T, d, other *sqlite.Driver, ops []sqlstore.Op) (next *sqlite.Driver){
		"of this process": func(t *testing.T, d, _ *sqlite.Driver, ops []sqlstore.Op) *sqlite.Driver {
			syncs := 0
			d.SyncLogWith(func() error {
				if syncs++; syncs == 3 {
					return errors.New("the disk is broken")
				}
				return nil
			})
			if err := d.Stage(t.Context(), ops); err != nil || ops[0].Staged != 0 || syncs != 3 {
				t.Fatalf("after %d syncs, staged %d, %v", syncs, ops[0].Staged, err)
			}
			return d
		},
		"of another process": func(t *testing.T, d, other *sqlite.Driver, ops []sqlstore.Op) *sqlite.Driver {
			mustStage(t, d, ops)
			other.FailCommit()
			if _, err := other.Apply(t.Context(), []sqlstore.Txn{put("b", "b")}, time.Now()); !errors.Is(err, sqlstore.ErrUncertain) {
				t.Fatalf("the batch gave %v", err)
			}
			resolve(t, other)
			return other
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{NoCheckpoint: true}}
			d, other := f.Open(t).(*sqlite.Driver), f.Open(t).(*sqlite.Driver)
			mustApply(t, d, put("c", "c"))
			ops := []sqlstore.Op{{Verb: sqlstore.Create, Key: object, Value: storetest.LargeJSON(1, 2<<20)}}
			next := fail(t, d, other, ops)
			mustApply(t, next, put("d", "d"))
			if got := logSize(t, f); got > 512<<10 {
				t.Errorf("the log still has the pieces, and %d bytes", got)
			}
			mustApply(t, d, sqlstore.Txn{Ops: ops})
			d.Unstage(ops, true)
			wantValue(t, d, ops[0].Value)
			wantNames(t, d, "a", "c", "d")
		})
	}
}

// TestFailedSyncOfALoad: the write-ahead log may have all of a load whose sync failed, and recovery would find it there. So
// another commit replaces it, or the outcome is unknown.
func TestFailedSyncOfALoad(t *testing.T) {
	for name, c := range map[string]struct {
		fail      func(*sqlite.Driver)
		uncertain bool
	}{
		"replaced":     {(*sqlite.Driver).FailCommit, false},
		"not replaced": {(*sqlite.Driver).FailReplacedCommit, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{NoCheckpoint: true}}
			d := f.Open(t).(*sqlite.Driver)
			row := sqlstore.Row{Key: sqlstore.Key{Resource: "pods", Namespace: "default", Name: "a"}, Revision: 1, Created: 1, Value: []byte("{}"), WrittenAt: time.Now()}
			content := sqlstore.Content{Bounds: sqlstore.Bounds{Head: 1}, Rows: func(yield func(sqlstore.Row, error) bool) { yield(row, nil) }}
			before := logSize(t, f)
			c.fail(d)
			if err := d.Load(t.Context(), content); !errors.Is(err, sqlstore.ErrUnavailable) || errors.Is(err, sqlstore.ErrUncertain) != c.uncertain {
				t.Fatalf("the load gave %v", err)
			}
			if got := logSize(t, f); got > before == c.uncertain {
				t.Errorf("the log had %d bytes, and has %d", before, got)
			}
			if b, err := d.Bounds(t.Context()); b.Head != 0 || err != nil {
				t.Errorf("there is revision %d, %v", b.Head, err)
			}
			if err := d.Load(t.Context(), content); err != nil {
				t.Errorf("the next load gave %v", err)
			}
			wantNames(t, d, "a")
		})
	}
}

// TestLogIsSyncedThroughOneFile: the system tells of what it could not write to files that were open then.
func TestLogIsSyncedThroughOneFile(t *testing.T) {
	f := relaxedFile(t)
	d := f.Open(t).(*sqlite.Driver)
	mustApply(t, d, putIn("pods", "a"))
	mustApply(t, d, putIn(leases, "b"))
	if err := os.Rename(f.path+"-wal", f.path+"-moved"); err != nil { // it cannot be opened again
		t.Fatal(err)
	}
	waitSynced(t, d)
	if s := d.RelaxedStats(); s.Failures != 0 {
		t.Errorf("%d syncs failed", s.Failures)
	}
	if err := os.Rename(f.path+"-moved", f.path+"-wal"); err != nil {
		t.Fatal(err)
	}
}

// TestKilledWithoutRelaxedCommits: a commit that a process had not synced when it was killed is shown by the
// next one, which sees to it first that a power loss does not take it. Where other processes have the file
// it leaves the log to them.
func TestKilledWithoutRelaxedCommits(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{NoCheckpoint: true}}
	d := f.Open(t)
	mustApply(t, d, put("a", "a"))
	left := afterKill(t, f, logSize(t, f))
	left.cfg = sqlite.Config{}
	again := left.Open(t)
	if got := logSize(t, left); got != 0 {
		t.Errorf("the log of the killed process has %d bytes", got)
	}
	wantNames(t, again, "a")
	mustApply(t, again, put("b", "b"))
	before := logSize(t, left)
	left.Open(t)
	if got := logSize(t, left); got < before {
		t.Errorf("the log of a process that lives had %d bytes, and has %d", before, got)
	}
}

// TestFailedSyncOfTheFile: the system may have dropped data that was copied into the file, and SQLite would
// not copy it again. So the log is never begun anew, nor removed in the end, and has all of it for the next
// process.
func TestFailedSyncOfTheFile(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	opened, err := sqlite.Open(t.Context(), f.path, f.cfg)
	if err != nil {
		t.Fatal(err)
	}
	d := opened
	disk, err := os.ReadFile(f.path) // and nothing that is copied into it from here on
	if err != nil {
		t.Fatal(err)
	}
	d.SyncFileWith(func() error { return errors.New("the disk is broken") })
	value := `"` + string(bytes.Repeat([]byte("x"), 1<<20)) + `"`
	names := []string{"000"}
	mustApply(t, d, put("000", value))
	// Only with this is the log long enough to be copied: no write comes between the copy and its sync, where
	// SQLite, whose own syncs do not fail here, would begin it anew.
	var batch []sqlstore.Txn
	for i := 1; i < 8; i++ {
		batch = append(batch, put(fmt.Sprintf("%03d", i), value))
	}
	if _, err := d.Apply(t.Context(), batch, time.Now()); err == nil {
		for i := range batch {
			names = append(names, batch[i].Ops[0].Key.Name)
		}
	} else if !errors.Is(err, sqlstore.ErrUncertain) { // it was copied before it was acknowledged
		t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Minute); d.Healthy() == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the log is not copied")
		}
	}
	for range 2 {
		if _, err := d.Apply(t.Context(), []sqlstore.Txn{put("late", "late")}, time.Now()); !errors.Is(err, sqlstore.ErrGone) && !errors.Is(err, sqlstore.ErrUncertain) {
			t.Fatalf("a write behind a sync that failed gave %v", err)
		}
	}
	if _, err := d.Trim(t.Context(), 1, 1); !errors.Is(err, sqlstore.ErrGone) {
		t.Fatalf("trimming behind a sync that failed gave %v", err)
	}
	if err := d.Healthy(); !errors.Is(err, sqlstore.ErrGone) {
		t.Fatalf("the store is reported as kept: %v", err)
	}
	if row, err := d.Read(t.Context(), sqlstore.Key{Resource: "pods", Namespace: "default", Name: names[0]}, 0); err != nil || len(row.Value) != len(value) {
		t.Fatalf("reading gave %d bytes, %v", len(row.Value), err)
	}
	if err := d.Close(); !errors.Is(err, sqlstore.ErrGone) {
		t.Fatalf("the end gave %v", err)
	}
	after := afterKill(t, f, logSize(t, f))
	if err := os.WriteFile(after.path, disk, 0o600); err != nil {
		t.Fatal(err)
	}
	again := after.Open(t)
	rows, err := again.Scan(t.Context(), sqlstore.ScanRequest{Limit: 1001})
	if err != nil || len(rows) < len(names) {
		t.Fatalf("of %d rows %d are there: %v", len(names), len(rows), err)
	}
}
