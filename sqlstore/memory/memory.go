// Package memory is the driver of databases in this process's memory. It writes nothing to disk.
//
// Several servers may open one Database. Its content is an immutable tree: a commit makes a new tree that shares
// all unchanged parts with the old one. A read therefore sees one state and never waits, and the cost of
// Clone and Snapshot does not depend on the size.
//
// Goroutines: none. The writer of a commit notifies the other servers.
package memory

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/rowlock/rowlock/sqlstore"
)

// Config sets a database up. Zero values take the defaults named.
type Config struct {
	// MaxBytes bounds the size of the database, history included, as Stats counts it. Beyond it
	// writes fail with ErrFull, but for deletes. 0: no limit.
	MaxBytes int64
}

// Database is a database that several servers of one process may share.
type Database struct {
	cfg     Config
	content atomic.Pointer[content]
	// alone is Exclusive of the one driver that is open, or 0.
	alone atomic.Uint64

	mu    sync.Mutex // held while the next content is made, and for the fields below
	open  map[*Driver]struct{}
	turns uint64             // how often a driver was opened or closed
	leads map[string]*Driver // holders, by name
}

// New makes an empty database.
func New(cfg Config) *Database {
	return newDatabase(cfg, newContent(uuid.NewString()))
}

func newDatabase(cfg Config, c *content) *Database {
	b := &Database{cfg: cfg, open: map[*Driver]struct{}{}, leads: map[string]*Driver{}}
	b.content.Store(c)
	return b
}

// Clone copies the database. The two go on separately. The clone is of
// the same cluster: it has its id, and its revisions so far.
func (b *Database) Clone() *Database { return b.Snapshot().Clone() }

// Driver is one server's view of a Database.
type Driver struct {
	sqlstore.Simple
	db      *Database
	closing chan struct{}
	hints   map[chan struct{}]struct{} // guarded by db.mu
}

// Open makes a driver. It must be closed.
func (b *Database) Open() *Driver {
	d := &Driver{db: b, closing: make(chan struct{}), hints: map[chan struct{}]struct{}{}}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open[d] = struct{}{}
	b.turn()
	return d
}

// turn notes that a driver came or went.
func (b *Database) turn() {
	b.turns++
	if len(b.open) == 1 {
		b.alone.Store(b.turns)
	} else {
		b.alone.Store(0)
	}
}

// Close implements sqlstore.Driver.
func (d *Driver) Close() error {
	d.db.mu.Lock()
	defer d.db.mu.Unlock()
	if d.closed() {
		return nil
	}
	close(d.closing)
	for hints := range d.hints {
		d.forget(hints)
	}
	for name, holder := range d.db.leads {
		if holder == d {
			delete(d.db.leads, name)
		}
	}
	delete(d.db.open, d)
	d.db.turn()
	return nil
}

func (d *Driver) closed() bool {
	select {
	case <-d.closing:
		return true
	default:
		return false
	}
}

// look returns the present content, for a reader.
func (d *Driver) look(ctx context.Context) (*content, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if d.closed() {
		return nil, sqlstore.ErrClosed
	}
	return d.db.content.Load(), nil
}

// change has fn make the next content of a copy of the present one, and notifies other servers.
// An error of fn leaves the content as it is.
func (d *Driver) change(ctx context.Context, fn func(next *content) error) error {
	d.db.mu.Lock()
	defer d.db.mu.Unlock()
	now, err := d.look(ctx)
	if err != nil {
		return err
	}
	next := now.copy()
	if err := fn(next); err != nil {
		return err
	}
	d.db.content.Store(next)
	d.notify()
	return nil
}

// Exclusive implements sqlstore.Driver.
func (d *Driver) Exclusive() uint64 {
	if d.closed() {
		return 0
	}
	return d.db.alone.Load()
}

// Now implements sqlstore.Driver: all servers are in one process, whose clock is theirs.
func (d *Driver) Now() time.Time { return time.Now() }

// ConcurrentTrim implements sqlstore.Driver: Trim is a commit, and there is one at a time.
func (d *Driver) ConcurrentTrim() bool { return false }

// Hints implements sqlstore.Driver. Writes of this driver need none: its store knows them. The
// other drivers of the Database send a hint with each commit.
func (d *Driver) Hints(ctx context.Context) <-chan struct{} {
	hints := make(chan struct{}, 1)
	d.db.mu.Lock()
	defer d.db.mu.Unlock()
	if d.closed() {
		close(hints)
		return hints
	}
	d.hints[hints] = struct{}{}
	context.AfterFunc(ctx, func() {
		d.db.mu.Lock()
		defer d.db.mu.Unlock()
		d.forget(hints)
	})
	return hints
}

// forget closes a channel of hints once. The caller holds db.mu.
func (d *Driver) forget(hints chan struct{}) {
	if _, ok := d.hints[hints]; ok {
		delete(d.hints, hints)
		close(hints)
	}
}

// notify hints to all other servers that they should look. The caller holds db.mu.
func (d *Driver) notify() {
	for other := range d.db.open {
		if other == d {
			continue
		}
		for hints := range other.hints {
			select {
			case hints <- struct{}{}:
			default:
			}
		}
	}
}

// Lead implements sqlstore.Driver. A lead is not lost while its driver is open.
func (d *Driver) Lead(ctx context.Context, name string) (<-chan struct{}, func(), bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, false, fmt.Errorf("leading %q: %w", name, err)
	}
	d.db.mu.Lock()
	defer d.db.mu.Unlock()
	if d.closed() {
		return nil, nil, false, sqlstore.ErrClosed
	}
	if d.db.leads[name] != nil {
		return nil, nil, false, nil
	}
	d.db.leads[name] = d
	var once sync.Once
	release := func() {
		once.Do(func() {
			d.db.mu.Lock()
			defer d.db.mu.Unlock()
			if d.db.leads[name] == d && !d.closed() { // else it may be another's of the same name
				delete(d.db.leads, name)
			}
		})
	}
	return d.closing, release, true, nil
}
