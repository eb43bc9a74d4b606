package cache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/sqlstore"
)

// ErrSlow ends a watch whose reader has fallen too far behind.
var ErrSlow = errors.New("watcher is too slow")

// Bounds of a watcher's queue: deliveries, and bytes of their objects. A watcher whose queue is full has to catch up.
const (
	maxQueue      = 512
	maxQueueBytes = 512 << 10
)

// A watcher is in one of three states.
//
//	synced      it is in a bucket of its resource, and events are queued for it as they come
//	catchingUp  nothing is queued for it. Take reads what it missed: from the event log, which all watchers share, or, where
//	            that no longer reaches back far enough, from the store's log (history)
//	ended       the cache queues no more events. Take returns those still queued, and then the reason
//
// A watcher begins synced (WatchNow) or catching up (Watch). From synced it goes to catchingUp when its queue is full
// (push), and back when it has read all of the event log (catchUp). EndSlow, a reload and End end it; a watcher that End
// ends may catch up first.
const (
	synced uint32 = iota
	catchingUp
	ended
)

// Scope is the part of a storage that a watcher sees.
type Scope struct {
	Namespace string // "": all
	Name      string // "": all
	Filter    *Filter
	Group     Group  // of watchers on the same connection; may be nil
	User      string // whose watchers take turns with those of others to read the store's log
	// Log reads changes that memory no longer has, if the watcher took that long to send the initial objects. Nil: the
	// watcher ends with ErrSlow instead, and gets objects that can be decrypted again as added, out of order.
	Log Log
}

// Log reads changes that are no longer in memory; sqlstore.Store is one.
type Log interface {
	Changes(ctx context.Context, after int64, limit int, previous bool) ([]sqlstore.Change, error)
	Floor() int64
}

// history is the place of a watcher in the store's log, before it has reached the event log.
type history struct {
	log  Log
	next int64 // last revision that was read
}

// bucketKey is the most selective condition of a watcher's scope.
type bucketKey struct {
	kind uint8
	a, b string
}

const (
	bucketAll       uint8 = iota
	bucketNamespace       // a: namespace
	bucketName            // a: namespace or "", b: name
	bucketField           // a: index key, b: value
)

// Watcher receives the changes of a scope in revision order. It is for one goroutine, which must Stop it.
type Watcher struct {
	stream *stream
	scope  Scope
	after  int64
	place  bucketKey
	index  int // in its bucket

	ready  chan struct{}
	signal atomic.Uint32
	hooks  atomic.Pointer[Hooks] // of SetHooks

	state atomic.Uint32 // synced, catchingUp or ended; changed with mu held

	mu     sync.Mutex
	queue  []Delivery
	held   int    // bytes of the objects in queue
	reason error  // why it has ended, or will end once it has caught up; nil if neither
	begun  bool   // has been synced
	taken  *Event // one larger than maxQueueBytes that Take returned last; nil: none
	woken  bool   // is in watchers.hit or waits for a round; guarded by the stream's mu

	seenUpTo int64 // while catching up: the revision up to which it has read all events; guarded by the stream's mu

	given    int64       // the revision that Take returned last
	large    *fair.Place // in largeReplays, of a watcher whose last Take returned large objects of the store's log; nil: it did not
	promised *fair.Place // the same for its next page, which it has awaited
	history  *history    // set while it catches up from the store's log; then watchers does not have it

	generation int64 // of the stream when it began
}

func (w *Watcher) is(state uint32) bool { return w.state.Load() == state }

// EndedSlow reports whether the cache has ended the watcher, which kept too much in memory.
func (w *Watcher) EndedSlow() bool {
	if !w.is(ended) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Is(w.reason, ErrSlow)
}

// fallBehind makes a synced watcher catch up. The caller holds mu.
func (w *Watcher) fallBehind() {
	if w.is(synced) {
		w.state.Store(catchingUp)
	}
}

// caughtUp makes a watcher synced that has read all of the event log, or ends it if it has to end there. It returns whether
// the watcher is synced.
func (w *Watcher) caughtUp() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.is(ended):
	case w.reason != nil:
		w.state.Store(ended)
	default:
		w.state.Store(synced)
	}
	return w.is(synced)
}

// ends reports whether the watcher ends once it has caught up.
func (w *Watcher) ends() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reason != nil
}

// end ends the watcher at once: Take fails from here on.
func (w *Watcher) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.is(ended) || len(w.queue) > 0 {
		w.reason, w.queue, w.held = err, nil, 0
		w.state.Store(ended)
	}
	w.Wake()
}

// drain ends the watcher with err after it has received all events up to now.
func (w *Watcher) drain(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reason == nil {
		w.reason = err
	}
	if w.is(synced) {
		w.state.Store(ended)
	}
	w.Wake()
}

// Group tracks which watchers of one connection are about to send, so that one write sends their frames.
type Group interface {
	AddWriter()    // a watcher was woken and will send
	RemoveWriter() // that watcher has sent, or had nothing to send
	ID() uint64    // identifies the group; never 0
}

func (s *Scope) order() uint64 {
	if s.Group == nil {
		return 0
	}
	return s.Group.ID()
}

// States of a watcher with a group, in signal.
const (
	busy   uint32 = iota // takes and sends
	idle                 // waits for Ready
	called               // AddWriter was called for it
)

// Written must be called when the deliveries of Take are about to be sent, or if Take returned none.
func (w *Watcher) Written() {
	if w.scope.Group != nil && w.signal.Swap(busy) == called {
		w.scope.Group.RemoveWriter()
	}
}

// selects returns an event as the watcher sees it, if it does.
func (w *Watcher) selects(e *Event) (Delivery, bool) {
	it := e.Item
	if it.Revision <= w.after ||
		w.scope.Namespace != "" && w.scope.Namespace != it.Namespace ||
		w.scope.Name != "" && w.scope.Name != it.Name {
		return Delivery{}, false
	}
	f := w.scope.Filter
	t, ok := f.translate(e)
	return Delivery{Event: e, Type: t, Unsure: ok && (f.unsure(it) || e.Prev != nil && f.unsure(e.Prev))}, ok
}

// push queues a delivery. It returns false if the queue is full and the watcher has to catch up.
func (w *Watcher) push(d Delivery) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.is(ended) {
		return true
	}
	size := d.Event.largest()
	if n := len(w.queue); n >= maxQueue || n > 0 && w.held+size > maxQueueBytes {
		w.fallBehind()
		return false
	}
	w.queue = append(w.queue, d)
	w.held += size
	return true
}

// Ready is signalled when Take may return something new. Call it only to wait.
func (w *Watcher) Ready() <-chan struct{} {
	if w.scope.Group != nil {
		w.signal.CompareAndSwap(busy, idle)
	}
	return w.ready
}

// Wake signals Ready.
func (w *Watcher) Wake() {
	if h := w.hooks.Load(); h != nil {
		(*h).Wake()
		return
	}
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// isBegun reports whether a watcher has been synced since it was made.
func (w *Watcher) isBegun() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.begun
}

// ErrEnded is the error of Take after Cache.End, once the watcher has taken everything.
var ErrEnded = errors.New("the watched resource is served anew, or no longer")

// Hooks are called instead of a signal on Ready: Notify by a goroutine that may take and send, Wake by others, with locks
// held. Neither may wait for anything. Both may be called after Stop; Notify is not called after Cache.Close.
type Hooks interface {
	Notify()
	Wake()
}

type hookFuncs struct{ notify, wake func() }

func (h hookFuncs) Notify() { h.notify() }

func (h hookFuncs) Wake() { h.wake() }

// HookFuncs makes Hooks of two functions.
func HookFuncs(notify, wake func()) Hooks { return hookFuncs{notify, wake} }

// SetHooks sets the callbacks that run when Take may have new events.
func (w *Watcher) SetHooks(h Hooks) { w.hooks.Store(&h) }

// InMemory reports whether Take only returns queued events, and reads neither the event log nor the store's log. It is for the
// goroutine that calls Take.
func (w *Watcher) InMemory() bool { return !w.is(catchingUp) }
