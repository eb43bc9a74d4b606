// Package follow keeps derived state, such as the rules of an authorizer or the list of webhooks, in step
// with the objects in the cache that it is derived from.
//
// A reader that comes after a write was acknowledged finds that write in the state, and sees all kinds from
// which the state is derived at one revision.
//
// An object that cannot be read for a while (cache.Unreadable) panics in the reader of the state, because the
// state without it would be wrong. Until it can be read, each reader tries that object alone, and readers that
// wait for such a try share its result. The others are not listed again.
//
// A Follower has no goroutine. Changes wait in the queues of its watches, which the cache bounds, until the
// next read; while an object cannot be read, at most one change of each object waits.
package follow

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rowlock/rowlock/server/cache"
)

// Kind is one kind of objects to follow. Set and Delete are called by one goroutine at a time, for one object in
// the order of revisions. Neither is called for a corrupt object, except Delete for one that was readable before.
// Set changes nothing before it has read the object.
type Kind struct {
	Storage string // the key of the kind's storage
	Set     func(item *cache.Item)
	Delete  func(namespace, name string)
}

// Follower passes changes of objects on to the Kinds that follow them, when they are read.
type Follower struct {
	cache    *cache.Cache
	kinds    []Kind
	reset    func()
	watchers atomic.Pointer[[]*cache.Watcher] // one for each kind; nil: there are none yet

	// state is held for writing while changes are handed on.
	state sync.RWMutex
	part  bool // the state lacks changes, because handing them on has failed; guarded by state

	update   sync.Mutex             // held while changes are applied; guards buf, waiting, unread, bad and failed
	updating atomic.Bool            // at a read
	behind   atomic.Bool            // waiting or unread hold some
	tries    atomic.Int64           // how often update was locked to apply changes
	buf      []cache.Delivery       // reused
	waiting  [][]cache.Delivery     // for each kind, events that the cache has not published yet
	unread   map[object]*cache.Item // to be handed on once bad can be read
	bad      object                 // of unread, could not be read last
	failed   error                  // the Unreadable of the last try; nil: it succeeded
}

// object is an object of a kind.
type object struct {
	kind            int // index
	namespace, name string
}

// New makes a follower of objects in a cache, which begins at the first read. reset forgets all
// objects; it is called before they are listed, and listed again.
func New(c *cache.Cache, reset func(), kinds ...Kind) *Follower {
	return &Follower{cache: c, kinds: kinds, reset: reset}
}

// RLock hands on all changes that the cache knows of, and keeps further ones away
// until RUnlock.
func (f *Follower) RLock() {
	for {
		f.CatchUp()
		f.state.RLock()
		if !f.part {
			return
		}
		f.state.RUnlock() // another goroutine has failed to hand on later changes
	}
}

// RUnlock ends RLock.
func (f *Follower) RUnlock() { f.state.RUnlock() }

// CatchUp applies all changes that the cache has. When it returns they have been applied, by this or another
// goroutine: its caller needs no lock to see the result.
func (f *Follower) CatchUp() {
	if f.current() {
		return
	}
	tries := f.tries.Load()
	f.update.Lock()
	defer f.update.Unlock()
	if f.failed != nil && f.tries.Load() > tries {
		panic(f.failed) // of a try that began after the call
	}
	f.tries.Add(1)
	f.failed = nil
	f.updating.Store(true)
	defer f.updating.Store(false)
	f.state.Lock()
	defer f.state.Unlock()
	f.part = true
	defer func() {
		if f.part && f.failed == nil && f.watchers.Load() != nil { // Set has panicked: the next caller lists all again
			f.stop()
		}
	}()
	for {
		if f.watchers.Load() == nil {
			f.list()
		}
		if f.takeEvents() == nil {
			break
		}
		f.stop() // the cache cut a watch off, as it fell behind: all objects are listed again
	}
	if f.failed = f.handUnread(); f.failed != nil {
		f.behind.Store(true)
		panic(f.failed)
	}
	f.part = false
}

// set hands an object on, unless it or an earlier one cannot be read.
func (f *Follower) set(kind int, item *cache.Item) {
	key := object{kind, item.Namespace, item.Name}
	if len(f.unread) == 0 {
		if cache.Try(func() { f.kinds[kind].Set(item) }) == nil {
			return
		}
		f.bad = key
	}
	f.unread[key] = item
}

// handUnread hands on the objects that were left, the one first that could not be read last, until one cannot
// be read. Its error is a *cache.Unreadable.
func (f *Follower) handUnread() error {
	if _, left := f.unread[f.bad]; left {
		if err := f.retry(f.bad); err != nil {
			return err
		}
	}
	for key := range f.unread {
		if err := f.retry(key); err != nil {
			return err
		}
	}
	return nil
}

func (f *Follower) retry(key object) error {
	item := f.unread[key]
	if err := cache.Try(func() { f.kinds[key.kind].Set(item) }); err != nil {
		f.bad = key
		return err
	}
	delete(f.unread, key)
	return nil
}

// current reports whether all changes that the cache had before have been applied. The applying goroutine
// sets updating before it takes events from the watches, and clears it when it has applied them, or has
// recorded those that it keeps. This checks in that order, so it sees an event in its watch, in the hands of
// a goroutine, among the kept ones, or applied.
func (f *Follower) current() bool {
	watchers := f.watchers.Load()
	if watchers == nil {
		return false
	}
	for _, w := range *watchers {
		if len(w.Ready()) > 0 {
			return false
		}
	}
	return !f.updating.Load() && !f.behind.Load()
}

// takeEvents applies the events that the cache has published, and keeps the others: a batch of writes reaches
// the watches of one kind after those of another, and no binding may be seen without an earlier change of its
// role.
func (f *Follower) takeEvents() error {
	published, behind := f.cache.Revision(), false
	for i, w := range *f.watchers.Load() {
		for more := true; more; { // a watch that fell behind gives a page at a time
			select {
			case <-w.Ready():
				batch, _, err := w.Take(context.Background(), f.buf)
				if err != nil {
					return err
				}
				f.waiting[i] = append(f.waiting[i], batch...)
				f.buf = batch
			default:
				more = false
			}
		}
		n := 0
		for ; n < len(f.waiting[i]) && f.waiting[i][n].Revision() <= published; n++ {
			f.hand(i, f.waiting[i][n])
		}
		f.waiting[i] = slices.Delete(f.waiting[i], 0, n)
		behind = behind || len(f.waiting[i]) > 0
	}
	f.behind.Store(behind)
	return nil
}

// hand hands on one event of a kind.
func (f *Follower) hand(kind int, d cache.Delivery) {
	item := d.Item()
	if d.Type != cache.Deleted && item.Err() == nil {
		f.set(kind, item)
		return
	}
	delete(f.unread, object{kind, item.Namespace, item.Name})
	f.kinds[kind].Delete(item.Namespace, item.Name)
}

// list drops everything, applies all existing objects, and begins to watch. It returns once the cache has
// published the revision of the last list, so that the events that takeEvents then applies bring all kinds to
// one revision. f.state is held for writing.
func (f *Follower) list() {
	f.reset()
	f.unread = map[object]*cache.Item{}
	watchers, newest := make([]*cache.Watcher, len(f.kinds)), int64(0)
	defer func() {
		if f.watchers.Load() == nil { // Set has panicked
			stop(watchers)
		}
	}()
	for i, k := range f.kinds {
		w, snapshot := f.cache.WatchNow(k.Storage, cache.Scope{})
		watchers[i], newest = w, max(newest, snapshot.Revision)
		snapshot.Ascend("", "", "", func(item *cache.Item) bool {
			if item.Err() == nil {
				f.set(i, item)
			}
			return true
		})
	}
	f.buf, f.waiting = nil, make([][]cache.Delivery, len(watchers))
	f.behind.Store(false)
	f.watchers.Store(&watchers)
	_ = f.cache.WaitFor(context.Background(), newest) // fails only with its context
}

func (f *Follower) stop() {
	stop(*f.watchers.Load())
	f.watchers.Store(nil)
}

func stop(watchers []*cache.Watcher) {
	for _, w := range watchers {
		if w != nil {
			w.Stop()
		}
	}
}
