// Package sqlite is the driver of one SQLite file.
//
// It uses WAL with synchronous=FULL, so that acknowledged writes survive a crash of the process or the machine;
// one writer connection with immediate transactions; and readers that never wait for the writer. Several processes
// of one machine may use a file together.
//
// If the operator enables it, commits of some resources are acknowledged before they are on disk: see
// Config.Relaxed and docs/durability.md.
//
// Goroutines: the checkpointer, the sweeper of large values, and the one that syncs after relaxed commits, which Close ends; one
// for each Hints call, which its context or Close ends.
package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/rowlock/rowlock/sqlstore"
)

// Config sets a driver up. Zero values take the defaults named.
type Config struct {
	Readers      int           // connections for reading; default 4
	BusyTimeout  time.Duration // how long to wait for another process's write; default 5s
	Patience     time.Duration // how long Trim, Retain, Pack and Forget go on waiting for it; default BusyTimeout
	PollInterval time.Duration // how often to look for writes of other processes, where there are any; default 50ms
	MaxBytes     int64         // the file's largest size; 0: no limit but the disk
	Unsynced     bool          // the system writes to the disk at its own time: acknowledged writes survive a crash of the process, not of the machine
	Relaxed      []string      // resources whose commits are acknowledged up to sqlstore.RelaxedFor before they are on the disk; without effect where Unsynced
	NoCheckpoint bool          // leave it to another program, as Litestream, to copy the write-ahead log into the file
	NoMigrate    bool          // fail with SchemaError instead of bringing an older schema up to date
}

func (c Config) withDefaults() Config {
	if c.Readers <= 0 {
		c.Readers = 4
	}
	if c.BusyTimeout <= 0 {
		c.BusyTimeout = 5 * time.Second
	}
	if c.PollInterval <= 0 {
		c.PollInterval = 50 * time.Millisecond
	}
	return c
}

// Driver is one open database file.
type Driver struct {
	path    string
	cfg     Config
	lock    *lockFile
	file    *os.File                    // the database, to sync it
	inode   os.FileInfo                 // of file
	log     atomic.Pointer[os.FileInfo] // of the write-ahead log, once there is one
	readers chan *conn                  // idle reading connections
	opened  int                         // how many there are
	far     int64                       // depth from which snapshots are read key by key
	loops   sync.WaitGroup
	closing chan struct{}
	once    sync.Once
	closed  error

	began     time.Time
	spare     atomic.Bool   // there may be free pages to give back
	written   atomic.Bool   // there were writes since the last look
	trimmed   atomic.Int64  // when rows were last deleted, in nanoseconds since began
	reclaimed time.Duration // when pages were last given back, since began; of the goroutine of Hints
	wrote     chan struct{} // the write-ahead log has grown

	staging *staging

	trimming sync.Mutex // held while rows are deleted, and while the log is copied; before mu

	relaxed *sqlstore.Relaxed
	boot    string // ID of the machine's boot; "" if unknown

	waiting  atomic.Int32 // how many wait for mu to write
	mu       sync.Mutex   // guards the writer
	reserved int64        // revisions up to here may be given to relaxed commits
	writer   *conn
	version  int64 // data_version of the writer when last seen
	pending  *pendingBatch
	unsynced error // of the last commit whose sync may have failed; nil once that is repaired

	logMu    sync.Mutex
	logFile  *os.File              // the write-ahead log, to sync it; opened when it is needed
	syncDB   func() error          // of file; another one in tests
	syncWAL  func() error          // syncLog; another one in tests
	doubtful atomic.Pointer[error] // why data that was copied into the file may be missing
	seq      uint64                // of batches, for their markers
	nonce    string

	sums sqlstore.Checksummer // of the writer
}

// Open opens path, creating file and schema as needed. The folder must exist.
// Errors: SchemaError, CorruptError, ErrBusy, ErrReadOnly, ErrUnavailable.
func Open(ctx context.Context, path string, cfg Config) (*Driver, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	d := &Driver{began: time.Now(), path: abs, cfg: cfg.withDefaults(), far: farBack, closing: make(chan struct{}), wrote: make(chan struct{}, 1), boot: bootID(), staging: newStaging()}
	d.syncWAL = d.syncLog
	if !cfg.Unsynced {
		d.relax(cfg.Relaxed, d.syncLog)
	}
	if d.lock, err = openLock(ctx, abs+".lock"); err != nil {
		return nil, withDenied(fmt.Errorf("opening %s: %w", path, err), abs)
	}
	if err := d.open(ctx); err != nil {
		d.Close()
		return nil, withDenied(err, abs)
	}
	return d, nil
}

// withDenied adds the missing permission to an error that does not name it.
func withDenied(err error, path string) error {
	if !errors.Is(err, os.ErrPermission) && !errors.Is(err, sqlstore.ErrReadOnly) && !hasCode(err, sqlite3.SQLITE_CANTOPEN) && !hasCode(err, sqlite3.SQLITE_PERM) {
		return err
	}
	if lacks := denied(path); lacks != "" {
		return fmt.Errorf("%w: %s", err, lacks)
	}
	return err
}

func (d *Driver) open(ctx context.Context) error {
	denied, err := createPrivate(d.path)
	if err != nil {
		return fmt.Errorf("opening %s: %w", d.path, err)
	}
	var ended time.Time
	err = d.lock.exclusively(ctx, "migrate", func() error {
		if d.lock.exclusive() != 0 {
			ended = time.Now()
		}
		if err := d.connectWriter(); err != nil {
			return err
		}
		if denied {
			return fmt.Errorf("opening %s: %w", d.path, sqlstore.ErrReadOnly)
		}
		if err := d.migrate(); err != nil {
			return err
		}
		return d.recover(ctx)
	})
	if err != nil {
		return err
	}
	d.readers = make(chan *conn, d.cfg.Readers)
	for range d.cfg.Readers {
		r, err := connect(d.path, append(d.commonPragmas(), "query_only(1)", cachePragma))
		if err != nil {
			return err
		}
		d.readers <- r
		d.opened++
	}
	d.nonce = rand.Text()
	if d.version, err = d.writer.number("PRAGMA data_version"); err != nil {
		return err
	}
	if d.file, err = os.Open(d.path); err != nil {
		return err
	}
	d.syncDB = d.file.Sync
	if d.inode, err = d.file.Stat(); err != nil {
		return err
	}
	if err := d.Healthy(); err != nil {
		return err
	}
	if d.relaxed != nil {
		if err := d.openLog(); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		d.loops.Go(func() { d.relaxed.Run(d.closing) })
	}
	d.loops.Add(1)
	go d.sweeps(ended)
	if d.cfg.NoCheckpoint {
		return nil
	}
	c, err := connect(d.path, append(d.commonPragmas(), d.synchronous()))
	if err != nil {
		return err
	}
	d.loops.Add(1)
	go d.checkpoints(c)
	return nil
}

// createPrivate makes the file, so that its mode does not follow the umask: it holds secrets. denied means that an existing file
// may not be written; if it may not be read either, SQLite reports that.
func createPrivate(path string) (denied bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, os.ErrPermission) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, f.Close()
}

// dsn names a file. Transactions that package sql begins, as for migrations, wait for the lock of writers at once: SQLite
// does not wait for it in a transaction that has read.
func dsn(path string) string {
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "_txlock=immediate"}).String()
}

func (d *Driver) commonPragmas() []string {
	return []string{
		fmt.Sprintf("busy_timeout(%d)", d.cfg.BusyTimeout.Milliseconds()),
		"temp_store(MEMORY)",
	}
}

func (d *Driver) synchronous() string {
	if d.cfg.Unsynced {
		return "synchronous(OFF)"
	}
	return "synchronous(FULL)"
}

// cachePragma is small for the writer as well: for a file below 1 GiB SQLite searches all of its cache at the
// end of each commit that has split index pages, because it used the number of a page there that does not
// exist. 16 MiB take 230 µs. Other pages are in the system's cache.
const cachePragma = "cache_size(-4096)" // KiB

// A transaction with one large object that is not staged is larger than the cache. It would write pages to the log before its end,
// several times, and then read the log to compute its checksums again. With keepPragma its pages stay in memory until it
// ends. spillPragma is for transactions whose size nothing
// bounds: a restore, and migrations.
const (
	keepPragma  = "cache_spill(0)"
	spillPragma = "cache_spill(1)"
)

// connectWriter opens the writer. The pragma auto_vacuum acts before the first table exists, but takes the
// writers' lock whenever it is set, and would wait for other processes: so it is set only if the file does
// not have it.
func (d *Driver) connectWriter() error {
	w, err := connect(d.path, d.commonPragmas())
	if err != nil {
		return err
	}
	d.writer = w
	pragmas := d.writerPragmas()
	if mode, err := w.number("PRAGMA auto_vacuum"); err != nil {
		return fmt.Errorf("opening %s: pragma auto_vacuum: %w", d.path, err)
	} else if mode != incremental {
		pragmas = append([]string{"auto_vacuum(INCREMENTAL)"}, pragmas...)
	}
	return w.set(d.path, pragmas)
}

const incremental = 2 // the number of auto_vacuum(INCREMENTAL)

func (d *Driver) writerPragmas() []string {
	p := append(d.commonPragmas(),
		"journal_mode(WAL)",
		d.synchronous(),
		cachePragma,
		keepPragma,
		"journal_size_limit(67108864)",
	)
	if d.cfg.NoCheckpoint {
		p = append(p, "wal_autocheckpoint(0)")
	} else {
		p = append(p, fmt.Sprintf("wal_autocheckpoint(%d)", logLimit))
	}
	if d.cfg.MaxBytes > 0 {
		p = append(p, fmt.Sprintf("max_page_count(%d)", max(1, d.cfg.MaxBytes/pageSize)))
	}
	return p
}

const pageSize = 4096 // SQLite's default, which the driver keeps

// Close waits for everything the driver started, and for calls under way. If the file's content is in doubt,
// connections stay open until the process ends: closing the last one in order would delete the log.
func (d *Driver) Close() error {
	d.once.Do(func() {
		close(d.closing)
		d.loops.Wait()
		var errs []error
		for range d.opened {
			r := <-d.readers
			if d.doubted() == nil {
				errs = append(errs, r.close())
			}
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		switch {
		case d.writer == nil:
		case d.doubted() == nil:
			errs = append(errs, d.unreserve(), d.writer.close())
		default:
			errs = append(errs, d.doubted())
		}
		d.writer = nil
		if d.logFile != nil {
			errs = append(errs, d.logFile.Close())
		}
		if d.file != nil && d.doubted() == nil { // last: closing it ends SQLite's own locks on it
			errs = append(errs, d.file.Close())
		}
		errs = append(errs, d.lock.close())
		d.closed = errors.Join(errs...)
	})
	return d.closed
}
