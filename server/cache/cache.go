package cache

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache/values"
	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// Config bounds the memory of the cache in addition to the live objects. Zero values mean the defaults.
type Config struct {
	RingEvents int           // most recent events of a storage; default 8192
	RingBytes  int           // their size; default 24 MiB
	RingAge    time.Duration // default 5m
	// SlowBytes bounds the events that are queued, for all watchers together, but no longer in an event log; default 64 MiB.
	SlowBytes int
	// PlainBytes bounds the objects and forms that are not packed. Default 64 MiB; negative: no bound.
	PlainBytes int64
	Clock      func() time.Time
	// JSON checks and reads stored values, for the cache and for callers that decode its items.
	JSON json.Codec
	// Corrupt is called for each object among the changes that cannot be read. It must return at once, and may be nil. It is
	// not called for those that Load cannot read, which Cache.Corrupt lists.
	Corrupt func(key sqlstore.Key, item *Item)
}

// pageBytes bounds the blocks of a cache file that are kept in memory after they were read.
const pageBytes = 8 << 20

// Source is the database as Load and CheckRows need it; sqlstore.Store implements it.
type Source interface {
	Head(ctx context.Context) (int64, error)
	ReadAll(ctx context.Context, revision int64, take func(rows []sqlstore.Row) error) error
	CheckRows(ctx context.Context, values bool, page func(differ []sqlstore.Row) error) error
}

// CorruptItem is an object that cannot be read.
type CorruptItem struct {
	Key      sqlstore.Key
	Revision int64
	Reason   error
}

// Cache is the live objects of one server in memory. It implements sqlstore.Sink.
type Cache struct {
	core

	making sync.Mutex
	base   int64 // revision of the last Load; guarded by making
	known  int64 // the event logs have everything after it, unless it did not fit; guarded by making
	// quiet returns the revision since which a resource that is not in resources is unchanged, if Backfill knows; guarded by making.
	quiet func(key string) int64
	// left is the revision at which Apply last dropped resources; guarded by making. leaving are those to drop next; nil: none.
	left    int64
	leaving atomic.Pointer[[]*resource]

	loads   atomic.Int64                  // how often all items were replaced
	damaged atomic.Pointer[[]CorruptItem] // found by CheckRows

	touched   []*resource // by the last Apply; for the goroutine that calls Apply and Deliver
	slowBytes int         // of Config

	waiting atomic.Int64 // count of waiters
	waitMu  sync.Mutex
	waiters []waiter
}

type waiter struct {
	revision int64
	done     chan struct{}
}

// New makes an empty cache; selectable fields and indexes come from the catalogue. nil is a catalogue without resources.
func New(catalogue *kinds.Catalogue) *Cache {
	if catalogue == nil {
		catalogue = kinds.NewCatalogue(nil)
	}
	return NewWith(catalogue, Config{JSON: json.New(json.Settings{View: catalogue.Release().View()})})
}

// NewWith makes an empty cache with a Config.
func NewWith(catalogue *kinds.Catalogue, cfg Config) *Cache {
	cfg.RingEvents = cmp.Or(cfg.RingEvents, 8192)
	cfg.RingBytes = cmp.Or(cfg.RingBytes, 24<<20)
	cfg.SlowBytes = cmp.Or(cfg.SlowBytes, slowBytes)
	cfg.RingAge = cmp.Or(cfg.RingAge, 5*time.Minute)
	cfg.PlainBytes = cmp.Or(cfg.PlainBytes, 64<<20)
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	c := &Cache{}
	c.catalogue, c.clock, c.json, c.corrupt = catalogue, cfg.Clock, cfg.JSON, cfg.Corrupt
	c.recent = eventLogBounds{count: cfg.RingEvents, bytes: cfg.RingBytes, age: int64(cfg.RingAge / time.Second)}
	c.replays, c.largeReplays = fair.NewGate(fair.Limits{Places: replaysMost}), fair.NewGate(fair.Limits{Places: replaysMost})
	c.closing = make(chan struct{})
	c.plain.Limit.Store(cfg.PlainBytes)
	c.slowBytes = cfg.SlowBytes
	c.pages = values.NewPages(pageBytes)
	return c
}

// BoundEvents sets Config.RingBytes and Config.SlowBytes. Call it before the cache is loaded.
func (c *Cache) BoundEvents(recent, slow int) {
	c.making.Lock()
	defer c.making.Unlock()
	c.recent.bytes, c.slowBytes = recent, slow
	for s := range c.all() {
		s.mu.Lock()
		s.recent.bounds.bytes = recent
		s.mu.Unlock()
	}
}

// Loads counts the loads of everything, after each of which values are in memory that were in the cache file.
func (c *Cache) Loads() int64 { return c.loads.Load() }

// FailedReads counts the reads of values from a cache file that failed, after each of which the row is read.
func (c *Cache) FailedReads() int64 { return c.pages.Failed() }

// JSON returns the codec of the cache's items.
func (c *Cache) JSON() json.Codec { return c.json }

// resource finds the resource of a storage, or makes it.
func (c *Cache) resource(key string) *resource {
	if s, ok := c.resources.Load(key); ok {
		return s.(*resource)
	}
	c.making.Lock()
	defer c.making.Unlock()
	return c.find(key)
}

// find is resource for a holder of making.
func (c *Cache) find(key string) *resource {
	if s, ok := c.resources.Load(key); ok {
		return s.(*resource)
	}
	s := c.newResource(key, c.storageOf(key), max(c.base, c.left))
	if s.recent.floor = c.known; c.quiet != nil {
		s.recent.floor = c.quiet(key)
	}
	s.recent.floor = max(s.recent.floor, c.left)
	c.resources.Store(key, s)
	return s
}

// fresh is resource, with the fields that the catalogue has now.
func (c *Cache) fresh(key string) *resource {
	s := c.resource(key)
	s.refresh(c.storageOf(key))
	return s
}

func (c *Cache) storageOf(key string) *kinds.Storage {
	if c.catalogue == nil || Internal(key) {
		return nil
	}
	if r := c.catalogue.ByStorage(key); r != nil {
		return r.Storage
	}
	return nil
}

// Apply takes the next changes of the log; see sqlstore.Sink.
func (c *Cache) Apply(batch []sqlstore.Change) {
	c.touched = c.touched[:0]
	c.drop()
	seen := c.revision.Load()
	for len(batch) > 0 && batch[0].Revision <= seen {
		batch = batch[1:]
	}
	if len(batch) == 0 {
		return
	}
	now := c.clock().Unix()
	if len(batch) == 1 {
		one := [1]*sqlstore.Change{&batch[0]}
		c.apply(one[:], now)
	} else {
		c.applyMany(batch, now)
	}
	c.publish(batch[len(batch)-1].Revision)
}

func (c *Cache) applyMany(batch []sqlstore.Change, now int64) {
	parts := make([]*sqlstore.Change, len(batch))
	for i := range batch {
		parts[i] = &batch[i]
	}
	slices.SortStableFunc(parts, func(a, b *sqlstore.Change) int { return strings.Compare(a.Key.Resource, b.Key.Resource) })
	for len(parts) > 0 {
		n := 1
		for n < len(parts) && parts[n].Key.Resource == parts[0].Key.Resource {
			n++
		}
		c.apply(parts[:n], now)
		parts = parts[n:]
	}
}

// apply takes changes of one resource.
func (c *Cache) apply(changes []*sqlstore.Change, now int64) {
	s := c.resource(changes[0].Key.Resource)
	s.apply(changes, now)
	c.touched = append(c.touched, s)
}

// Deliver implements sqlstore.Deliverer.
func (c *Cache) Deliver(most time.Duration) {
	var late <-chan time.Time
	for _, s := range c.touched {
		notified := s.notifySoon()
		if notified == nil {
			continue
		}
		if late == nil {
			timer := time.NewTimer(most)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-notified:
		case <-late:
			return
		case <-c.closing:
			return
		}
	}
}

// publish announces a revision, once all changes up to it are applied.
func (c *Cache) publish(revision int64) {
	c.revision.Store(revision)
	if c.waiting.Load() == 0 {
		return
	}
	c.waitMu.Lock()
	defer c.waitMu.Unlock()
	kept := c.waiters[:0]
	for _, w := range c.waiters {
		if w.revision <= revision {
			close(w.done)
		} else {
			kept = append(kept, w)
		}
	}
	clear(c.waiters[len(kept):])
	c.waiters = kept
}

// Revision returns the newest revision applied.
func (c *Cache) Revision() int64 { return c.revision.Load() }

// WaitFor returns once a revision is applied, or with the error of ctx.
func (c *Cache) WaitFor(ctx context.Context, revision int64) error {
	if c.revision.Load() >= revision {
		return nil
	}
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	done := make(chan struct{})
	c.waitMu.Lock()
	if c.revision.Load() >= revision {
		c.waitMu.Unlock()
		return nil
	}
	c.waiters = append(c.waiters, waiter{revision, done})
	c.waitMu.Unlock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	c.waitMu.Lock()
	defer c.waitMu.Unlock()
	c.waiters = slices.DeleteFunc(c.waiters, func(w waiter) bool { return w.done == done })
	return ctx.Err()
}

// Get finds a live item, or nil. It does not wait for a revision.
func (c *Cache) Get(storage, namespace, name string) *Item {
	return c.resource(storage).get(namespace, name)
}

// Snapshot returns the newest snapshot of a storage.
func (c *Cache) Snapshot(storage string) *Snapshot {
	_, revision, v := c.current(storage)
	return &Snapshot{Revision: max(revision, v.changed), v: v}
}

// current returns the resource of a storage, and a state of it that has all changes up to a revision.
func (c *Cache) current(storage string) (s *resource, revision int64, v *state) {
	for {
		s = c.fresh(storage)
		revision = c.revision.Load() // before the state is read
		if v = s.state(); !s.dropped.Load() {
			return s, revision, v
		}
	}
}

// At returns the snapshot of a storage at a revision, or nil if memory does not have it.
func (c *Cache) At(storage string, revision int64) *Snapshot {
	s, applied, v := c.current(storage)
	if v.changed <= revision && revision <= applied {
		return &Snapshot{Revision: revision, v: v}
	}
	old := s.pins.find(revision)
	if old == nil && revision <= applied {
		old = s.rewind(revision)
	}
	if old == nil {
		return nil
	}
	return &Snapshot{Revision: revision, v: old}
}

// Count returns the number of live items of a storage.
func (c *Cache) Count(storage string) int {
	items, _, _ := c.resource(storage).extent()
	return items
}

// LastChange returns the revision of a storage's last change and that of its last delete. A result that was computed from its
// objects is valid as long as these two do not change.
func (c *Cache) LastChange(storage string) (changed, removed int64) {
	_, changed, removed = c.resource(storage).extent()
	return changed, removed
}

// Storages lists the keys of all storages, in order.
func (c *Cache) Storages() []string {
	var keys []string
	for s := range c.all() {
		keys = append(keys, s.key)
	}
	slices.Sort(keys)
	return keys
}
