package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/rowlock/rowlock/sqlstore"
)

// intercepted is what a test makes of SQLite's writes: how much of one is written, or how it fails.
type intercepted func(fd int32, n int, to int64) (most int, err syscall.Errno)

var (
	interceptor atomic.Pointer[intercepted]
	realWrite   uintptr
)

type writeFunc = func(tls *libc.TLS, fd int32, data uintptr, n sqlite3.Tsize_t, to sqlite3.Toff_t) sqlite3.Tssize_t

func interceptWrite(tls *libc.TLS, fd int32, data uintptr, n sqlite3.Tsize_t, to sqlite3.Toff_t) sqlite3.Tssize_t {
	if f := interceptor.Load(); f != nil {
		most, err := (*f)(fd, int(n), int64(to))
		if err != 0 {
			*at[int32](libc.X__errno_location(tls)) = int32(err)
			return -1
		}
		n = min(n, sqlite3.Tsize_t(most))
	}
	return called[writeFunc](realWrite)(tls, fd, data, n, to)
}

// intercept has f see all writes until the test ends.
func intercept(t testing.TB, f intercepted) {
	t.Helper()
	if !gathersLog() {
		t.Fatal("the VFS could not be registered")
	}
	tls := libc.NewTLS()
	name, err := libc.CString("pwrite")
	if err != nil {
		t.Fatal(err)
	}
	vfs := at[sqlite3.Tsqlite3_vfs](unixVFS)
	set := func(to uintptr) {
		if rc := called[func(*libc.TLS, uintptr, uintptr, uintptr) int32](vfs.FxSetSystemCall)(tls, unixVFS, name, to); rc != sqlite3.SQLITE_OK {
			t.Fatal(rc)
		}
	}
	realWrite = called[func(*libc.TLS, uintptr, uintptr) uintptr](vfs.FxGetSystemCall)(tls, unixVFS, name)
	interceptor.Store(&f)
	set(pointerTo[writeFunc](interceptWrite))
	t.Cleanup(func() {
		set(0)
		interceptor.Store(nil)
		libc.Xfree(tls, name)
		tls.Close()
	})
}

func isLog(fd int32) bool {
	name, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd))
	return err == nil && strings.HasSuffix(name, "-wal")
}

// run runs statements that are not kept.
func (c *conn) run(query string, args ...any) error {
	named := make([]driver.NamedValue, len(args))
	for i, a := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	_, err := c.raw.(driver.ExecerContext).ExecContext(context.Background(), query, named)
	return translate(err)
}

func (c *conn) mustRun(t testing.TB, query string, args ...any) {
	t.Helper()
	if err := c.run(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// openSmall opens a connection with few pages in its cache, so that transactions go into the log before they are committed.
func openSmall(t testing.TB, vfs, path string) *conn {
	t.Helper()
	if !gathersLog() {
		t.Fatal("the VFS could not be registered")
	}
	params := url.Values{}
	if vfs != "" {
		params.Set("vfs", vfs)
	}
	c, err := connectBy(params, path, []string{"journal_mode(WAL)", "busy_timeout(5000)", "cache_size(10)", "wal_autocheckpoint(200)", "journal_size_limit(400000)"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const table = `CREATE TABLE t (id INTEGER PRIMARY KEY, k TEXT, v BLOB); CREATE INDEX tk ON t (k)`

// content is what another connection reads of a file, all of which has to be sound.
func content(t testing.TB, path string) string {
	t.Helper()
	c, err := connect(path, []string{"busy_timeout(5000)", "synchronous(OFF)"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	h := sha256.New()
	rows := 0
	err = c.query(t.Context(), func(v []driver.Value) error {
		fmt.Fprintf(h, "%v %v %x\n", v[0], v[1], v[2])
		rows++
		return nil
	}, `SELECT id, k, v FROM t ORDER BY id`)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var v [1]driver.Value
	if _, err := c.one(v[:], `PRAGMA integrity_check`); err != nil || text(v[0]) != "ok" {
		t.Fatalf("%s: integrity: %v, %v", path, v[0], err)
	}
	return fmt.Sprintf("%d rows, %x", rows, h.Sum(nil)[:8])
}

// killed is the content that is found when all processes were killed: by what lies in the two files.
func killed(t testing.TB, path string) string {
	t.Helper()
	other := filepath.Join(t.TempDir(), "left.db")
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		if err == nil {
			err = os.WriteFile(other+suffix, data, 0o600)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	defer func() {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			os.Remove(other + suffix)
		}
	}()
	return content(t, other)
}

// TestCommitIsOneWrite counts the system calls of commits.
func TestCommitIsOneWrite(t *testing.T) {
	const frame = pageSize + frameHeader
	for _, vfs := range []string{"", logVFS} {
		for _, rows := range []int{1, 10, 200} {
			t.Run(fmt.Sprintf("%q/%d", vfs, rows), func(t *testing.T) {
				c := openSmall(t, vfs, filepath.Join(t.TempDir(), "a.db"))
				defer c.close()
				c.mustRun(t, "PRAGMA cache_size(1000)")
				c.mustRun(t, table)
				var calls, bytes int
				intercept(t, func(fd int32, n int, _ int64) (int, syscall.Errno) {
					if isLog(fd) {
						calls++
						bytes += n
					}
					return n, 0
				})
				c.mustRun(t, "BEGIN IMMEDIATE")
				for i := range rows {
					c.mustRun(t, `INSERT INTO t VALUES (?, ?, zeroblob(3000))`, int64(i), fmt.Sprint(i))
				}
				if calls > 0 {
					t.Errorf("%d writes before the commit", calls)
				}
				c.mustRun(t, "COMMIT")
				frames := bytes / frame
				want := 2 * frames
				if vfs != "" {
					want = (bytes + gatheredMost - 1) / (gatheredMost / frame * frame)
				}
				if frames < rows/2 || bytes%frame != 0 || calls < 1 || calls > want || vfs == "" && calls != want {
					t.Errorf("%d writes for %d bytes, %d frames; want %d", calls, bytes, frames, want)
				}
			})
		}
	}
}

// TestGatheredAsStandard runs a script of transactions on two files, one with SQLite's own writes and one with gathered
// ones: after each step another connection reads the same of both, and so does who comes after all were killed.
func TestGatheredAsStandard(t *testing.T) {
	for _, seed := range []uint64{1, 2, uint64(time.Now().UnixNano())} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newScript(t, seed)
			for step := range 100 {
				what := s.step()
				var first string
				for i, p := range s.paths {
					live, after := content(t, p), killed(t, p)
					if i == 0 {
						first = live
					}
					if live != first || after != first {
						t.Fatalf("step %d, %s: file %d has %s, and after a kill %s; want %s", step, what, i, live, after, first)
					}
				}
			}
			for _, c := range s.conns {
				if err := c.close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

type script struct {
	t     *testing.T
	r     *rand.Rand
	paths [2]string
	vfs   [2]string
	conns [2]*conn
}

func newScript(t *testing.T, seed uint64) *script {
	s := &script{t: t, r: rand.New(rand.NewPCG(seed, 0)), vfs: [2]string{"", logVFS}}
	for i := range s.paths {
		s.paths[i] = filepath.Join(t.TempDir(), "a.db")
		s.conns[i] = openSmall(t, s.vfs[i], s.paths[i])
	}
	s.both(table)
	return s
}

// both runs a statement on both files, with the same result.
func (s *script) both(query string, args ...any) {
	s.t.Helper()
	for _, c := range s.conns {
		c.mustRun(s.t, query, args...)
	}
}

func (s *script) step() string {
	switch n := s.r.IntN(20); {
	case n < 13:
		return s.transaction()
	case n < 15:
		mode := []string{"PASSIVE", "FULL", "RESTART", "TRUNCATE"}[s.r.IntN(4)]
		s.both("PRAGMA wal_checkpoint(" + mode + ")")
		return mode
	case n < 18:
		own := s.conns
		for i := range s.conns {
			s.conns[i] = openSmall(s.t, "", s.paths[i])
		}
		what := s.transaction()
		for i := range s.conns {
			s.conns[i].close()
		}
		s.conns = own
		return "another's " + what
	default:
		for i := range s.conns {
			if err := s.conns[i].close(); err != nil {
				s.t.Fatal(err)
			}
			s.conns[i] = openSmall(s.t, s.vfs[i], s.paths[i])
		}
		return "opened again"
	}
}

func (s *script) transaction() string {
	level := []string{"OFF", "OFF", "OFF", "NORMAL", "FULL"}[s.r.IntN(5)]
	s.both("PRAGMA synchronous(" + level + ")")
	s.both("BEGIN IMMEDIATE")
	saved := false
	for range s.r.IntN(25) {
		switch n := s.r.IntN(12); {
		case n < 6:
			s.both(`INSERT OR REPLACE INTO t VALUES (?, ?, ?)`, s.id(), fmt.Sprint(s.r.IntN(1000)), s.value())
		case n == 6:
			first := s.id()
			s.both(`UPDATE t SET v = ? WHERE id BETWEEN ? AND ?`, s.value(), first, first+10)
		case n == 7:
			first := s.id()
			s.both(`DELETE FROM t WHERE id BETWEEN ? AND ?`, first, first+5)
		case n == 8:
			s.both(`UPDATE t SET k = k || 'x' WHERE id % 3 = ?`, int64(s.r.IntN(3)))
		case n == 9:
			s.same(`SELECT count(*) || ' ' || total(length(v)) || ' ' || group_concat(k) FROM t`)
		case !saved:
			s.both("SAVEPOINT s")
			saved = true
		case n == 10:
			s.both("ROLLBACK TO s")
		default:
			s.both("RELEASE s")
			saved = false
		}
	}
	end := "COMMIT"
	if s.r.IntN(3) == 0 {
		end = "ROLLBACK"
	}
	s.both(end)
	return level + " " + end
}

func (s *script) id() int64 { return int64(1 + s.r.IntN(60)) }

func (s *script) value() []byte {
	v := bytes.Repeat([]byte{byte(s.r.IntN(256))}, s.r.IntN(12_000))
	for i := range len(v) / 100 {
		v[i*100] = byte(s.r.IntN(256))
	}
	return v
}

// same reads the same within both transactions.
func (s *script) same(query string) {
	s.t.Helper()
	var got [2]string
	for i, c := range s.conns {
		var v [1]driver.Value
		if _, err := c.one(v[:], query); err != nil {
			s.t.Fatal(err)
		}
		got[i] = fmt.Sprint(v[0])
	}
	if got[0] != got[1] {
		s.t.Fatalf("within a transaction there are %s and %s", got[0], got[1])
	}
}

// logOf is what is known of the log of a connection.
func logOf(t *testing.T, c *conn) *logFile {
	tls := libc.NewTLS()
	defer tls.Close()
	place := libc.Xcalloc(tls, 1, 8)
	defer libc.Xfree(tls, place)
	db := uintptr(reflect.ValueOf(c.raw).Elem().FieldByName("db").Uint())
	if rc := sqlite3.Xsqlite3_file_control(tls, db, 0, sqlite3.SQLITE_FCNTL_FILE_POINTER, place); rc != sqlite3.SQLITE_OK {
		t.Fatal(rc)
	}
	return at[logFile](at[dbFile](*at[uintptr](place) + behind).log)
}

const (
	commitEnv = "ROWLOCK_SQLITE_COMMIT" // a file that a child commits to
	otherRows = 30                      // how many rows; more pages than a transaction has that is given up
)

// TestChildCommits is the other process of TestGivenUpBeforeAnothersCommit.
func TestChildCommits(t *testing.T) {
	path := os.Getenv(commitEnv)
	if path == "" {
		t.Skip("this is for a child")
	}
	c := openSmall(t, "", path)
	defer c.close()
	commitRows(t, c, otherRows)
}

func commitRows(t *testing.T, c *conn, n int) {
	t.Helper()
	c.mustRun(t, "BEGIN IMMEDIATE")
	for range n {
		c.mustRun(t, `INSERT INTO t (k, v) VALUES ('other', zeroblob(5000))`)
	}
	c.mustRun(t, "COMMIT")
}

// TestGivenUpBeforeAnothersCommit: a transaction is given up that has gone into the log in part, and another connection
// commits at the same place of it. What was gathered for the first must not come after that.
func TestGivenUpBeforeAnothersCommit(t *testing.T) {
	for name, other := range map[string]struct {
		rounds int // in each the transaction that is given up has a row more
		commit func(path string)
	}{
		"process": {6, func(path string) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestChildCommits$")
			cmd.Env = append(os.Environ(), commitEnv+"="+path)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}},
		"connection": {20, func(path string) {
			c := openSmall(t, "", path)
			defer c.close()
			commitRows(t, c, otherRows)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.db")
			c := openSmall(t, logVFS, path)
			defer c.close()
			c.mustRun(t, table)
			left := 0
			for round := range other.rounds {
				if round%2 == 0 { // else SQLite reads of the log as soon as the lock is released
					c.mustRun(t, "PRAGMA wal_checkpoint(TRUNCATE)")
				}
				c.mustRun(t, "BEGIN IMMEDIATE")
				for i := range 20 + round {
					c.mustRun(t, `INSERT INTO t (k, v) VALUES (?, zeroblob(4000))`, fmt.Sprint("given up ", i))
				}
				if logOf(t, c).n > 0 {
					left++
				}
				c.mustRun(t, "ROLLBACK")
				other.commit(path)
				want := int64((otherRows+1)*round + otherRows)
				if n, err := c.number(`SELECT count(*) FROM t WHERE length(v) = 5000 AND k = 'other' OR k = 'mine'`); n != want || err != nil {
					t.Fatalf("round %d: %d rows, %v, want %d", round, n, err, want)
				}
				c.mustRun(t, `INSERT INTO t (k, v) VALUES ('mine', 'x')`)
				live, after := content(t, path), killed(t, path)
				if !strings.HasPrefix(live, fmt.Sprint(want+1, " rows")) || after != live {
					t.Fatalf("round %d: there are %s, and after a kill %s", round, live, after)
				}
			}
			if left == 0 {
				t.Fatal("nothing was gathered when a transaction was given up")
			}
		})
	}
}

// TestFailedWritesOfTheLog: a transaction whose frames cannot be written is not committed, whenever it turns out, and the next is.
func TestFailedWritesOfTheLog(t *testing.T) {
	for _, vfs := range []string{"", logVFS} {
		for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO} {
			for _, when := range []string{"commit", "spill", "spill once", "statement once"} {
				for _, written := range []int{0, 10_000} {
					t.Run(fmt.Sprintf("%q/%v/%s/%d", vfs, errno, when, written), func(t *testing.T) { failWrites(t, vfs, errno, when, written) })
				}
			}
		}
	}
}

func failWrites(t *testing.T, vfs string, errno syscall.Errno, when string, written int) {
	path := filepath.Join(t.TempDir(), "a.db")
	c := openSmall(t, vfs, path)
	defer c.close()
	c.mustRun(t, table)
	commitRows(t, c, 5)
	before := content(t, path)
	broken, left, failures := false, 0, 0
	intercept(t, func(fd int32, n int, _ int64) (int, syscall.Errno) {
		if !broken || !isLog(fd) {
			return n, 0
		}
		if left > 0 {
			most := min(left, n)
			left -= most
			return most, 0
		}
		failures++
		broken = !strings.HasSuffix(when, "once")
		return 0, errno
	})
	if when == "commit" {
		c.mustRun(t, "PRAGMA cache_size(1000)")
	}
	for range 2 {
		broken, left = strings.HasPrefix(when, "spill"), written
		c.mustRun(t, "BEGIN IMMEDIATE")
		var err error
		for i := 0; i < 40 && err == nil; i++ {
			if err = c.run(`INSERT INTO t (k, v) VALUES ('lost', zeroblob(4000))`); err == nil {
				_, err = c.number(`SELECT total(length(v)) > 0 FROM t`)
			}
		}
		if !strings.HasPrefix(when, "spill") && err == nil {
			broken = true
		}
		if when == "statement once" && err == nil { // SQLite may give up the statement alone, and let the transaction go on
			err = c.run(`INSERT INTO t (id, k, v) SELECT id + 1000, k, v FROM t`)
		}
		if (err == nil) != (when == "commit") {
			t.Fatalf("before the commit: %v", err)
		}
		if err := c.run("COMMIT"); err == nil {
			t.Fatal("a transaction was committed of which a part could not be written")
		}
		if err := c.run("ROLLBACK"); err != nil && !isIdle(err) {
			t.Fatal(err)
		}
		broken = false
		if live, after := content(t, path), killed(t, path); live != before || after != before {
			t.Fatalf("there are %s, and after a kill %s; want %s", live, after, before)
		}
	}
	if failures == 0 {
		t.Fatal("no write failed")
	}
	commitRows(t, c, 5)
	if live, after := content(t, path), killed(t, path); !strings.HasPrefix(live, "10 rows") || after != live {
		t.Fatalf("after the next commit there are %s, and after a kill %s", live, after)
	}
}

// TestNothingIsWrittenAfterAFailedWrite: where SQLite learns of it by a read, and takes the pages before for written.
func TestNothingIsWrittenAfterAFailedWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	c := openSmall(t, logVFS, path)
	defer c.close()
	c.mustRun(t, table)
	commitRows(t, c, 5)
	before := content(t, path)
	c.mustRun(t, "BEGIN IMMEDIATE")
	l := logOf(t, c)
	fail := true
	intercept(t, func(_ int32, n int, _ int64) (int, syscall.Errno) {
		if fail {
			fail = false
			return 0, syscall.ENOSPC
		}
		return n, 0
	})
	tls := libc.NewTLS()
	defer tls.Close()
	page := libc.Xcalloc(tls, 1, pageSize)
	defer libc.Xfree(tls, page)
	const end = 1 << 20 // behind what is committed
	for i, step := range []struct {
		do   moveFunc
		at   int64
		want int32
	}{
		{xWrite, end, sqlite3.SQLITE_OK},
		{xRead, 0, sqlite3.SQLITE_OK}, // of what lies before
		{xRead, end, sqlite3.SQLITE_FULL},
		{xWrite, end, sqlite3.SQLITE_FULL},
		{xWrite, 0, sqlite3.SQLITE_FULL},
	} {
		if rc := step.do(tls, l.file, page, pageSize, step.at); rc != step.want {
			t.Errorf("step %d gave %d, want %d", i, rc, step.want)
		}
	}
	if err := c.run("INSERT INTO t (k, v) VALUES ('lost', 'x')"); err != nil {
		t.Fatal(err)
	}
	if err := c.run("COMMIT"); !errors.Is(err, sqlstore.ErrFull) {
		t.Fatalf("the commit gave %v", err)
	}
	if err := c.run("ROLLBACK"); err != nil && !isIdle(err) {
		t.Fatal(err)
	}
	if live, after := content(t, path), killed(t, path); live != before || after != before {
		t.Fatalf("there are %s, and after a kill %s; want %s", live, after, before)
	}
	commitRows(t, c, 5)
	if live, after := content(t, path), killed(t, path); !strings.HasPrefix(live, "10 rows") || after != live {
		t.Fatalf("after the next commit there are %s, and after a kill %s", live, after)
	}
}

// TestFailedWriteOfABatch: the driver tells of it as it is, and writes on.
func TestFailedWriteOfABatch(t *testing.T) {
	for _, writes := range []LogWrites{StandardLog, GatheredLog} {
		limit := sqlstore.ErrUncertain
		if writes == GatheredLog {
			limit = sqlstore.ErrFull
		}
		for errno, want := range map[syscall.Errno]error{syscall.ENOSPC: sqlstore.ErrFull, syscall.EFBIG: limit, syscall.EDQUOT: limit, syscall.EIO: sqlstore.ErrUncertain} {
			t.Run(fmt.Sprint(writes, errno), func(t *testing.T) {
				var broken atomic.Bool
				intercept(t, func(fd int32, n int, _ int64) (int, syscall.Errno) {
					if broken.Load() && isLog(fd) {
						return 0, errno
					}
					return n, 0
				})
				d, err := Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), Config{LogWrites: writes, NoCheckpoint: true})
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				apply := func(name string) error {
					key := sqlstore.Key{Resource: "pods", Namespace: "default", Name: name}
					out, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{{Verb: sqlstore.Create, Key: key, Value: []byte("{}")}}}}, time.Now())
					if err == nil {
						err = out[0].Err
					}
					return err
				}
				if err := apply("a"); err != nil {
					t.Fatal(err)
				}
				broken.Store(true)
				if err := apply("b"); !errors.Is(err, want) {
					t.Fatalf("a batch that could not be written gave %v, want %v", err, want)
				}
				broken.Store(false)
				if _, committed, err := d.Resolve(t.Context()); committed || err != nil {
					t.Fatalf("committed: %v, %v", committed, err)
				}
				if err := apply("b"); err != nil {
					t.Fatal(err)
				}
				if b, err := d.Bounds(t.Context()); b.Head != 2 || err != nil {
					t.Fatalf("the bounds are %v, %v", b, err)
				}
			})
		}
	}
}

// TestLocksThatAreNotSeen: with a lock that SQLite keeps for itself nothing is gathered.
func TestLocksThatAreNotSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	c := openSmall(t, "", path)
	c.mustRun(t, table)
	c.close()
	c = openSmall(t, logVFS, path)
	defer c.close()
	c.mustRun(t, "PRAGMA locking_mode(EXCLUSIVE)")
	c.mustRun(t, "PRAGMA synchronous(OFF)")
	for range 3 {
		commitRows(t, c, 5)
		c.mustRun(t, "BEGIN IMMEDIATE")
		c.mustRun(t, "DELETE FROM t")
		c.mustRun(t, "ROLLBACK")
	}
	if after := killed(t, path); !strings.HasPrefix(after, "15 rows") {
		t.Fatal(after)
	}
}

// processor is the processor time that this process has taken.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkLogWrites is what a row costs in commits of some rows.
func BenchmarkLogWrites(b *testing.B) {
	value := append(append([]byte(`{"data":"`), bytes.Repeat([]byte("a"), 1000)...), `"}`...)
	for _, rows := range []int{1, 10, 100} {
		for _, unsynced := range []bool{false, true} {
			for _, writes := range []LogWrites{StandardLog, GatheredLog} {
				b.Run(fmt.Sprintf("rows=%d/unsynced=%v/%s", rows, unsynced, writes), func(b *testing.B) {
					d, err := Open(b.Context(), filepath.Join(b.TempDir(), "a.db"), Config{LogWrites: writes, Unsynced: unsynced})
					if err != nil {
						b.Fatal(err)
					}
					defer d.Close()
					batch := make([]sqlstore.Txn, rows)
					before := processor(b)
					b.ResetTimer()
					for i := range b.N {
						for j := range batch {
							key := sqlstore.Key{Resource: "pods", Namespace: "default", Name: fmt.Sprintf("%d-%d", i, j)}
							batch[j] = sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Create, Key: key, Value: value}}}
						}
						if _, err := d.Apply(b.Context(), batch, time.Now()); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(processor(b)-before)/float64(b.N*rows), "cpu-ns/row")
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
				})
			}
		}
	}
}
