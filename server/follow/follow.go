// Package follow keeps derived state, such as the rules of an authorizer or the list of webhooks, in step
// with the objects in the cache that it is derived from.
//
// A reader that comes after a write was acknowledged finds that write in the state, and sees all kinds from
// which the state is derived at one revision.
//
// An object that cannot be read for a while (cache.Unreadable) panics in the reader of the state, because the
// state without it would be wrong. The next reader tries again.
//
// A Follower has no goroutine. Changes wait in the queues of its watches, which the cache bounds, until the
// next read.
package follow

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rowlock/rowlock/server/cache"
)

// Kind is one kind of objects to follow. Set and Delete are called by one goroutine at a time, in the order
// of revisions. Neither is called for an unreadable object, except Delete for one that was readable before.
type Kind struct {
	Storage string // the key of the kind's storage
	Set     func(item *cache.Item)
	Delete  func(namespace, name string)
}

// Follower hands changes of objects on to the Kinds that follow them, whenever
// somebody reads.
type Follower struct {
	cache    *cache.Cache
	kinds    []Kind
	reset    func()
	watchers atomic.Pointer[[]*cache.Watcher] // one for each kind; nil: there are none yet

	// state is held for writing while changes are handed on.
	state sync.RWMutex

	update   sync.Mutex         // held while changes are applied; guards buf and waiting
	updating atomic.Bool        // somebody does
	behind   atomic.Bool        // waiting holds some
	buf      []cache.Delivery   // reused
	waiting  [][]cache.Delivery // for each kind, events that the cache has not published yet
}

// New makes a follower of objects in a cache, which begins when somebody first reads.
// reset forgets all objects; it is called before they are listed, and listed again.
func New(c *cache.Cache, reset func(), kinds ...Kind) *Follower {
	return &Follower{cache: c, kinds: kinds, reset: reset}
}

// RLock hands on all changes that the cache knows of, and keeps further ones away
// until RUnlock.
func (f *Follower) RLock() {
	f.CatchUp()
	f.state.RLock()
}

// RUnlock ends RLock.
func (f *Follower) RUnlock() { f.state.RUnlock() }

// CatchUp applies all changes that the cache has. When it returns they have been applied, by this or another
// goroutine: its caller needs no lock to see the result.
func (f *Follower) CatchUp() {
	if f.current() {
		return
	}
	f.update.Lock()
	defer f.update.Unlock()
	f.updating.Store(true)
	defer f.updating.Store(false)
	f.state.Lock()
	defer f.state.Unlock()
	done := false
	defer func() {
		if !done && f.watchers.Load() != nil { // an object cannot be read, and the caller panics: the next one lists all again
			f.stop()
		}
	}()
	for {
		if f.watchers.Load() == nil {
			f.list()
		}
		if f.takeEvents() == nil {
			done = true
			return
		}
		f.stop() // the cache cut a watch off, as it fell behind: all objects are listed again
	}
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
			f.kinds[i].hand(f.waiting[i][n])
		}
		f.waiting[i] = slices.Delete(f.waiting[i], 0, n)
		behind = behind || len(f.waiting[i]) > 0
	}
	f.behind.Store(behind)
	return nil
}

// hand tells the follower of a kind of one event.
func (k *Kind) hand(d cache.Delivery) {
	if item := d.Item(); d.Type == cache.Deleted || item.Err() != nil {
		k.Delete(item.Namespace, item.Name)
	} else {
		k.Set(item)
	}
}

// list drops everything, applies all existing objects, and begins to watch. It returns once the cache has
// published the revision of the last list, so that the events that takeEvents then applies bring all kinds to
// one revision. f.state is held for writing.
func (f *Follower) list() {
	f.reset()
	watchers, newest := make([]*cache.Watcher, len(f.kinds)), int64(0)
	defer func() {
		if f.watchers.Load() == nil { // an object cannot be read
			stop(watchers)
		}
	}()
	for i, k := range f.kinds {
		w, snapshot := f.cache.WatchNow(k.Storage, cache.Scope{})
		watchers[i], newest = w, max(newest, snapshot.Revision)
		snapshot.Ascend("", "", "", func(item *cache.Item) bool {
			if item.Err() == nil {
				k.Set(item)
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
