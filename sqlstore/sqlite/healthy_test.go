package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// TestGone: nothing is acknowledged that would go with the process, or while other processes do not find this one, and
// a file that comes back is written to again.
func TestGone(t *testing.T) {
	for _, suffix := range []string{"", "-wal", ".lock"} {
		for name, take := range map[string]func(path string) error{
			"deleted": os.Remove,
			"renamed": func(path string) error { return os.Rename(path, path+".away") },
			"replaced": func(path string) error {
				if err := os.Rename(path, path+".away"); err != nil {
					return err
				}
				return os.WriteFile(path, nil, 0o600)
			},
		} {
			t.Run(name+suffix, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "rowlock.db")
				d, err := sqlite.Open(t.Context(), path, sqlite.Config{})
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				write := func(name string) error {
					op := sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "pods", Name: name}, Value: []byte("{}")}
					_, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{op}}}, time.Now())
					return err
				}
				if err := errors.Join(write("a"), d.Healthy()); err != nil {
					t.Fatal(err)
				}
				if err := take(path + suffix); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if err := write("b"); !errors.Is(err, sqlstore.ErrGone) || errors.Is(err, sqlstore.ErrUncertain) {
						t.Errorf("a write: %v", err)
					}
				}
				if err := d.Healthy(); !errors.Is(err, sqlstore.ErrGone) {
					t.Errorf("asked: %v", err)
				}
				if b, err := d.Bounds(t.Context()); err != nil || b.Head != 1 {
					t.Errorf("a read: %+v, %v", b, err)
				}
				if name == "deleted" {
					return
				}
				if err := os.Rename(path+suffix+".away", path+suffix); err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(write("b"), d.Healthy()); err != nil {
					t.Errorf("put back: %v", err)
				}
			})
		}
	}
}

// TestAnUnresolvedBatchIsForgotten: the file is away just after a commit, and the store gives up waiting for it. Once the file
// is back, the next batch must not get the outcome of that one.
func TestAnUnresolvedBatchIsForgotten(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "rowlock.db")}
	d := f.Open(t).(*sqlite.Driver)
	mustApply(t, d, put("first", "x"))
	hints := d.Hints(t.Context())
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	d.AfterCommit(func() { move(f.path, f.path+".away") })
	if _, err := d.Apply(t.Context(), []sqlstore.Txn{put("second", "x")}, time.Now()); !errors.Is(err, sqlstore.ErrUncertain) {
		t.Fatalf("a commit to a file that is away gives %v", err)
	}
	if _, _, err := d.Resolve(t.Context()); !errors.Is(err, sqlstore.ErrGone) {
		t.Fatalf("the outcome is found in a file that is away: %v", err)
	}
	if _, err := d.Apply(t.Context(), []sqlstore.Txn{put("third", "x")}, time.Now()); !errors.Is(err, sqlstore.ErrGone) || errors.Is(err, sqlstore.ErrUncertain) {
		t.Errorf("a batch while the file is away gives %v", err)
	}
	move(f.path+".away", f.path)
	out, err := d.Apply(t.Context(), []sqlstore.Txn{put("third", "x")}, time.Now())
	if errors.Is(err, sqlstore.ErrUncertain) {
		out, _, err = d.Resolve(t.Context()) // as the store does
	}
	if err != nil || len(out) != 1 || out[0].Err != nil || out[0].Revisions[0] != 3 {
		t.Errorf("the next batch gives %+v, %v; want revision 3", out, err)
	}
	wantNames(t, d, "first", "second", "third")
	if _, committed, err := d.Resolve(t.Context()); committed || err != nil {
		t.Errorf("Resolve has something left to find: %v, %v", committed, err)
	}
	select {
	case <-hints: // the store does not know of the second batch
	case <-time.After(2 * time.Minute):
		t.Error("the store was not told to check the table")
	}
}

// TestAnotherProcessWritesBeforeTheOutcomeIsFound: the database names the last batch alone, of whichever process.
func TestAnotherProcessWritesBeforeTheOutcomeIsFound(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "rowlock.db")}
	a, b := f.Open(t).(*sqlite.Driver), f.Open(t).(*sqlite.Driver)
	mustApply(t, a, put("first", "x"))
	uncertain := func(name string) {
		t.Helper()
		if _, err := a.Apply(t.Context(), []sqlstore.Txn{put(name, "x")}, time.Now()); !errors.Is(err, sqlstore.ErrUncertain) {
			t.Fatalf("the commit gives %v", err)
		}
		mustApply(t, b, put("after "+name, "x"))
	}
	a.AfterCommit(func() {
		if err := os.Rename(f.path, f.path+".away"); err != nil {
			t.Error(err)
		}
	})
	if _, err := a.Apply(t.Context(), []sqlstore.Txn{put("committed", "x")}, time.Now()); !errors.Is(err, sqlstore.ErrUncertain) {
		t.Fatalf("the commit gives %v", err)
	}
	if err := os.Rename(f.path+".away", f.path); err != nil {
		t.Fatal(err)
	}
	mustApply(t, b, put("after it", "x"))
	out, committed, err := a.Resolve(t.Context())
	if err != nil || !committed || out[0].Revisions[0] != 2 {
		t.Errorf("a commit that was made: %+v, %t, %v", out, committed, err)
	}
	a.FailCommit()
	uncertain("failed")
	if out, committed, err := a.Resolve(t.Context()); err != nil || committed {
		t.Errorf("a commit that was not made: %+v, %t, %v", out, committed, err)
	}
	wantNames(t, a, "after failed", "after it", "committed", "first")
}
