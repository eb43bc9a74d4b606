package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// TestOtherWritersComeBetweenPieces: while a value is being staged, other batches of the process are committed.
func TestOtherWritersComeBetweenPieces(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	d := f.Open(t)
	comeBetweenPieces(t, f, d, d)
}

// TestOtherProcessesComeBetweenPieces: the same with batches of another process.
func TestOtherProcessesComeBetweenPieces(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	comeBetweenPieces(t, f, f.Open(t), f.Open(t))
}

// comeBetweenPieces stages a value with one driver until batches of another one have been committed between two pieces. SQLite's lock is
// not fair to waiters, so it commits batches until the next piece is there.
func comeBetweenPieces(t *testing.T, f file, d, other sqlstore.Driver) {
	t.Helper()
	db, err := sql.Open("sqlite", f.path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	pieces := func() (n int) {
		t.Helper()
		if err := db.QueryRow("SELECT count(*) FROM kv_pieces").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	value := storetest.LargeJSON(1, 32<<20)
	for end, try := time.Now().Add(patience), 0; ; try++ {
		done := make(chan error, 1)
		ops := []sqlstore.Op{{Verb: sqlstore.Create, Key: object, Value: value}}
		before := pieces()
		go func() { done <- d.Stage(t.Context(), ops) }()
		for pieces() == before && time.Now().Before(end) {
			time.Sleep(time.Millisecond)
		}
		begun := pieces() - before
		after, batches := begun, 0
		for ; after == begun && len(done) == 0 && time.Now().Before(end); batches++ {
			mustApply(t, other, put(fmt.Sprintf("small%d-%d", try, batches), "{}"))
			after = pieces() - before
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		whole := pieces() - before
		d.Unstage(ops, false)
		f.becomes(t, 0, stored)
		if begun < after && after < whole { // pieces before, between and after the batches
			break
		}
		if time.Now().After(end) {
			t.Fatalf("of %d pieces, %d were there when a batch began, and %d when %d had been committed", whole, begun, after, batches)
		}
	}
}

// TestPiecesAreSyncedWithoutLock: batches are committed while a piece is being synced. The commit of the row waits for the disk.
func TestPiecesAreSyncedWithoutLock(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	d := f.Open(t).(*sqlite.Driver)
	var syncs atomic.Int64
	begun, end := make(chan struct{}), make(chan struct{})
	d.SyncLogWith(func() error {
		if syncs.Add(1) == 1 {
			close(begun)
			<-end
		}
		return nil
	})
	ops := []sqlstore.Op{{Verb: sqlstore.Create, Key: object, Value: storetest.LargeJSON(1, 4<<20)}}
	staged := make(chan error, 1)
	go func() { staged <- d.Stage(t.Context(), ops) }()
	wait(t, "the first sync", begun)
	small := make(chan error, 1)
	go func() {
		n, err := d.Synchronous()
		if err == nil && n != 1 {
			err = fmt.Errorf("the commit of a piece had the setting %d", n)
		}
		if _, e := d.Apply(t.Context(), []sqlstore.Txn{put("small", "{}")}, time.Now()); err == nil {
			err = e
		}
		small <- err
	}()
	err := wait(t, "the batch", small)
	close(end)
	if e := wait(t, "the staging", staged); err != nil || e != nil {
		t.Fatal(err, e)
	}
	if n := f.number(t, "SELECT count(*) FROM kv_pieces"); n < 16 || n != syncs.Load() {
		t.Errorf("%d pieces were synced %d times", n, syncs.Load())
	}
	mustApply(t, d, sqlstore.Txn{Ops: ops})
	d.Unstage(ops, true)
	wantValue(t, d, ops[0].Value)
	if n, err := d.Synchronous(); n != 2 || err != nil {
		t.Errorf("the commit of the row had the setting %d, %v", n, err)
	}
}

// wait receives from a channel.
func wait[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Errorf("%s is still awaited", what)
	}
	return v
}

// TestUnsyncedPieces: where the system writes at its own time, nothing syncs pieces.
func TestUnsyncedPieces(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{Unsynced: true}}
	d := f.Open(t).(*sqlite.Driver)
	d.SyncLogWith(func() error { return errors.New("it was synced") })
	writeValue(t, d, true, sqlstore.Create, 0, storetest.LargeJSON(1, 2<<20))
	if n, err := d.Synchronous(); n != 0 || err != nil {
		t.Errorf("the setting is %d, %v", n, err)
	}
}

// TestValuesOfDeadProcesses: a process that dies between the pieces and the commit leaves a value that the next one deletes, unless
// another process may be writing it.
func TestValuesOfDeadProcesses(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	first := f.Open(t)
	ops := []sqlstore.Op{{Verb: sqlstore.Create, Key: object, Value: storetest.LargeJSON(1, 4<<20)}}
	mustStage(t, first, ops)
	second := f.Open(t)
	mustApply(t, second, put("b", "{}"))
	if n := f.number(t, `SELECT count(*) FROM kv_large WHERE revision IS NULL`); n != 1 {
		t.Fatalf("beside a living writer %d values wait for their row, want 1", n)
	}
	out, err := first.Apply(t.Context(), []sqlstore.Txn{{Ops: ops}}, time.Now())
	if err != nil || out[0].Err != nil {
		t.Fatal(err, out)
	}
	if n := f.number(t, `SELECT value FROM kv WHERE name = 'a'`); n != ops[0].Staged {
		t.Fatalf("the row has value %d, staged was %d", n, ops[0].Staged)
	}
	again := []sqlstore.Op{{Verb: sqlstore.Update, Key: object, Expect: 2, Value: storetest.LargeJSON(2, 4<<20)}}
	mustStage(t, second, again)
	mustStage(t, second, []sqlstore.Op{{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "pods", Name: "c"}, Value: storetest.LargeJSON(3, 2<<20)}})
	f.Exec(t, `UPDATE kv_large SET begun_at = begun_at + 1000000 * 86400 WHERE id = (SELECT max(id) FROM kv_large)`) // by a clock that was ahead
	first.Close()
	second.Close() // without Unstage
	if n := f.number(t, `SELECT count(*) FROM kv_large WHERE revision IS NULL`); n != 2 {
		t.Fatalf("%d values have no row", n)
	}
	d := f.Open(t)
	f.becomes(t, 0, leftOver)
	wantValue(t, d, ops[0].Value)
	if n := f.number(t, stored); n != 1 {
		t.Fatalf("%d values are left", n)
	}
}

// TestLostPiecesAreWrittenAgain: what was staged is not trusted: if some of it is gone, the commit writes the value.
func TestLostPiecesAreWrittenAgain(t *testing.T) {
	for name, damage := range map[string]string{
		"abandoned":            `UPDATE kv_large SET revision = 0`,
		"deleted":              `DELETE FROM kv_large; DELETE FROM kv_pieces`,
		"the last piece":       `DELETE FROM kv_pieces WHERE piece = (SELECT max(piece) FROM kv_pieces)`,
		"a piece in the midst": `DELETE FROM kv_pieces WHERE piece = 3`,
		"shorter":              `UPDATE kv_pieces SET data = x'7b' WHERE piece = 3`,
		"of another row":       `UPDATE kv_large SET revision = 77`,
	} {
		t.Run(name, func(t *testing.T) {
			f := file{path: filepath.Join(t.TempDir(), "test.db")}
			d := f.Open(t)
			ops := []sqlstore.Op{{Verb: sqlstore.Create, Key: object, Value: storetest.LargeJSON(1, 2<<20)}}
			mustStage(t, d, ops)
			f.Exec(t, damage)
			out, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: ops}}, time.Now())
			if err != nil || out[0].Err != nil {
				t.Fatal(err, out)
			}
			d.Unstage(ops, true)
			wantValue(t, d, ops[0].Value)
			if n := f.number(t, `SELECT value FROM kv`); n == ops[0].Staged {
				t.Errorf("the row has the staged value %d", n)
			}
			storetest.CheckTable(t, d)
		})
	}
}

// TestStagedValuesHaveRoom: of more than there is room for, a value waits until another is committed or deleted.
func TestStagedValuesHaveRoom(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	d := f.Open(t).(*sqlite.Driver)
	d.SetStagingRoom(3 << 20)
	op := func(name string) []sqlstore.Op {
		return []sqlstore.Op{{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "pods", Name: name}, Value: storetest.LargeJSON(1, 2<<20)}}
	}
	for i, committed := range []bool{false, true} {
		first, second := op(fmt.Sprint("first", i)), op(fmt.Sprint("second", i))
		mustStage(t, d, first)
		done := make(chan error, 1)
		go func() { done <- d.Stage(t.Context(), second) }()
		mustApply(t, d, put(fmt.Sprint("small", i), "{}")) // needs no room
		select {
		case err := <-done:
			t.Fatalf("two values were staged at once, %v", err)
		case <-time.After(20 * time.Millisecond):
		}
		if committed {
			mustApply(t, d, sqlstore.Txn{Ops: first})
		}
		d.Unstage(first, committed)
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(patience):
			t.Fatal("the second value still waits")
		}
		if n := f.number(t, stored); !committed && n != 1 {
			t.Fatalf("%d values are stored while the second one takes the room of the first", n)
		}
		d.Unstage(second, false)
	}
	larger := []sqlstore.Op{{Verb: sqlstore.Create, Key: object, Value: storetest.LargeJSON(1, 4<<20)}}
	mustStage(t, d, larger) // than the room
	d.Unstage(larger, false)
	f.becomes(t, 0, leftOver)
}

// TestStageAfterClose: the driver closes while a value waits for room. The values for which it waits are deleted by the next process,
// and it does not wait for that.
func TestStageAfterClose(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	d := f.Open(t).(*sqlite.Driver)
	d.SetStagingRoom(3 << 20)
	op := func(name string) []sqlstore.Op {
		return []sqlstore.Op{{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "pods", Name: name}, Value: storetest.LargeJSON(1, 2<<20)}}
	}
	first, second := op("first"), op("second")
	mustStage(t, d, first)
	done := make(chan error, 1)
	go func() { done <- d.Stage(t.Context(), second) }()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d.Unstage(first, false)
	select {
	case err := <-done:
		if err != nil || second[0].Staged != 0 {
			t.Fatalf("staged %d, %v", second[0].Staged, err)
		}
	case <-time.After(patience):
		t.Fatal("it still waits")
	}
	d.Unstage(second, false)
	f.Open(t)
	f.becomes(t, 0, stored)
}

// TestFullWhileStaging: a value that does not fit is refused by its commit. No piece of it is stored, for which others would lack room.
func TestFullWhileStaging(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{MaxBytes: 8 << 20}}
	d := f.Open(t)
	ops := []sqlstore.Op{{Verb: sqlstore.Create, Key: object, Value: storetest.LargeJSON(1, 12<<20)}}
	if err := d.Stage(t.Context(), ops); err != nil || ops[0].Staged != 0 {
		t.Fatalf("staged %d, %v", ops[0].Staged, err)
	}
	begun := func(want int64) {
		t.Helper()
		if n := f.number(t, "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'kv_large'"); n != want {
			t.Fatalf("%d values were begun, want %d", n, want)
		}
	}
	begun(0)
	if _, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: ops}}, time.Now()); !errors.Is(err, sqlstore.ErrFull) {
		t.Fatalf("a value that does not fit gave %v", err)
	}
	d.Unstage(ops, false)
	f.becomes(t, 0, stored)
	writeValue(t, d, true, sqlstore.Create, 0, storetest.LargeJSON(2, 5<<20))
	wantValue(t, d, storetest.LargeJSON(2, 5<<20))
	begun(1)
	again := []sqlstore.Op{{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "pods", Name: "b"}, Value: storetest.LargeJSON(1, 2<<20)}}
	if err := d.Stage(t.Context(), again); err != nil || again[0].Staged != 0 {
		t.Fatalf("beside it %d was staged, %v", again[0].Staged, err)
	}
	begun(1)
	d.Unstage(again, false)
}
