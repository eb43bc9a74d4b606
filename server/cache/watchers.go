package cache

import (
	"errors"
	"sync"
	"sync/atomic"
)

// ErrSlow ends a watch whose reader has fallen too far behind.
var ErrSlow = errors.New("watcher is too slow")

// What may be queued for one watcher, as deliveries and as bytes of their objects. Nothing
// more is queued for a watcher whose queue is full: it has to catch up.
const (
	maxQueue      = 512
	maxQueueBytes = 512 << 10
)

// A watcher is in one of three states.
//
//	synced      it is in a bucket of its resource, and events are queued for it as they come
//	catchingUp  nothing is queued for it. Take reads what it missed: from the event log, which all watchers share, or, where
//	            that no longer reaches back far enough, from the store's log (history)
//	ended       nothing comes any more. Take returns what is queued, and then why it ended
//
// A watcher begins synced (WatchNow) or catching up (Watch). From synced it goes to catchingUp when its queue is full
// (push), and back when it has read all of the event log (catchUp). EndSlow, a reload and End end it; whatever End
// ends may catch up before.
const (
	synced uint32 = iota
	catchingUp
	ended
)

// Scope is what a watcher wants to see of a storage.
type Scope struct {
	Namespace string // "": all
	Name      string // "": all
	Filter    *Filter
	Group     Group // of watchers on the same connection; may be nil
	// Log is where a watcher reads changes that memory no longer has, if sending the
	// initial objects took it so long. Nil: the watcher is ended with ErrSlow instead, and
	// is told of objects that can be decrypted again, out of order.
	Log Log
}

// Watcher receives the changes of a scope in revision order. It belongs to one
// goroutine, which must Stop it.
type Watcher struct {
	resource *resource
	scope    Scope
	after    int64
	place    bucketKey
	index    int // in its bucket

	ready  chan struct{}
	signal atomic.Uint32
	hooks  atomic.Pointer[Hooks] // of SetHooks

	state atomic.Uint32 // synced, catchingUp or ended; changed with mu held

	mu     sync.Mutex
	queue  []Delivery
	held   int   // bytes of the objects in queue
	reason error // why it has ended, or will end once it has caught up; nil: it goes on
	begun  bool  // has been synced since it was made
	woken  bool  // is in the resource's list of hits; guarded by the resource's mu

	seenUpTo int64 // while catching up: it has been given all events up to this revision; guarded by the resource's mu

	given   int64    // the revision that Take returned last
	history *history // set while it catches up from the store's log, when the resource does not know the watcher

	generation int64 // of the resource when it began
}

func (w *Watcher) is(state uint32) bool { return w.state.Load() == state }

// fallBehind has the watcher catch up, unless it has ended. mu is held.
func (w *Watcher) fallBehind() {
	if w.is(synced) {
		w.state.Store(catchingUp)
	}
}

// caughtUp makes a watcher synced that has read all of the event log, or ends it where that is all it is to be given. It says
// whether the watcher goes on.
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

// ends says that the watcher goes on no further than what it has to catch up with.
func (w *Watcher) ends() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reason != nil
}

// end ends the watcher at once: Take fails from now on.
func (w *Watcher) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.is(ended) || len(w.queue) > 0 {
		w.reason, w.queue, w.held = err, nil, 0
		w.state.Store(ended)
	}
	w.Wake()
}

// drain ends the watcher with err once it has been given what there is for it.
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

// Group is told of watchers that send by one connection, so that what they send can
// go out together.
type Group interface {
	AddWriter()    // a watcher is woken now, and will have something to send
	RemoveWriter() // that watcher has it, or has nothing after all
	ID() uint64    // tells groups apart; never 0
}

func (s *Scope) order() uint64 {
	if s.Group == nil {
		return 0
	}
	return s.Group.ID()
}

// What a watcher with a group does, as its signal says.
const (
	busy   uint32 = iota // it takes and sends
	idle                 // it waits for Ready
	called               // its group has been told that it will have something to send
)

// Written must be called when what Take gave is about to be sent, or if there was nothing.
func (w *Watcher) Written() {
	if w.scope.Group != nil && w.signal.Swap(busy) == called {
		w.scope.Group.RemoveWriter()
	}
}

// bucketKey is the most selective thing known of a watcher's scope.
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

// watchers finds those that may want an event. Guarded by the resource's mu.
type watchers struct {
	buckets map[bucketKey][]*Watcher
	kinds   [bucketField + 1]int
	hit     []*Watcher            // are signalled at the end of a batch
	full    []*Watcher            // fell behind in this batch: they leave their buckets at its end
	behind  map[*Watcher]struct{} // catch up from the event log, and so are in no bucket
}

func (ws *watchers) init() {
	ws.buckets, ws.behind = make(map[bucketKey][]*Watcher), make(map[*Watcher]struct{})
}

// catchUp has a watcher read the event log, which has been given everything up to a revision.
func (ws *watchers) catchUp(w *Watcher, upTo int64) {
	w.seenUpTo = upTo
	ws.behind[w] = struct{}{}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fallBehind()
}

func (ws *watchers) add(w *Watcher) {
	b := ws.buckets[w.place]
	w.index = len(b)
	ws.buckets[w.place] = append(b, w)
	ws.kinds[w.place.kind]++
}

func (ws *watchers) remove(w *Watcher) {
	delete(ws.behind, w)
	b := ws.buckets[w.place]
	if w.index >= len(b) || b[w.index] != w {
		return
	}
	last := len(b) - 1
	b[w.index] = b[last]
	b[w.index].index = w.index
	b[last] = nil
	ws.kinds[w.place.kind]--
	if last == 0 {
		delete(ws.buckets, w.place)
		return
	}
	ws.buckets[w.place] = b[:last]
}

func (ws *watchers) count() (n int) {
	n = len(ws.behind)
	for _, k := range ws.kinds {
		n += k
	}
	return n
}

// in is how many watchers are in a bucket.
func (ws *watchers) in(k bucketKey) int { return len(ws.buckets[k]) }

// each calls fn with every watcher there was at the call.
func (ws *watchers) each(fn func(*Watcher)) {
	var all []*Watcher
	for _, b := range ws.buckets {
		all = append(all, b...)
	}
	for w := range ws.behind {
		all = append(all, w)
	}
	for _, w := range all {
		fn(w)
	}
}

// wake signals the watchers for which events were queued. Those with hooks are called by
// the fanOut that it returns, which is nil if there are none.
func (ws *watchers) wake() *fanOut {
	for i, w := range ws.full {
		ws.remove(w)
		ws.behind[w] = struct{}{}
		ws.full[i] = nil
	}
	ws.full = ws.full[:0]
	for _, w := range ws.hit {
		if w.scope.Group != nil && w.signal.CompareAndSwap(idle, called) {
			w.scope.Group.AddWriter()
		}
	}
	var f *fanOut
	for i, w := range ws.hit {
		w.woken = false
		ws.hit[i] = nil
		if w.hooks.Load() == nil {
			w.Wake()
			continue
		}
		if f == nil {
			f = &fanOut{watchers: make([]*Watcher, 0, len(ws.hit)-i), step: fanOutStep}
		}
		if w.scope.Group != nil {
			f.step = groupStep
		}
		f.watchers = append(f.watchers, w)
	}
	ws.hit = ws.hit[:0]
	return f
}

// bucketFor places a watcher.
func (s *resource) bucketFor(sc *Scope) bucketKey {
	name, namespace := sc.Name, sc.Namespace
	if n, ok := sc.Filter.pinned(FieldName); ok && name == "" {
		name = n
	}
	if n, ok := sc.Filter.pinned(FieldNamespace); ok && namespace == "" {
		namespace = n
	}
	if name != "" {
		return bucketKey{bucketName, namespace, name}
	}
	if sc.Filter != nil {
		for _, t := range sc.Filter.Fields {
			if key := s.indexKey(t.Index); key != "" && !t.Not {
				return bucketKey{bucketField, key, t.Value}
			}
		}
	}
	if namespace != "" {
		return bucketKey{bucketNamespace, namespace, ""}
	}
	return bucketKey{}
}

// dispatch gives an event to the watchers that want it.
func (s *resource) dispatch(e *Event) {
	ws := &s.watchers
	if len(ws.buckets) == 0 {
		return
	}
	it := e.Item
	s.offer(bucketKey{}, e)
	if ws.kinds[bucketNamespace] > 0 {
		s.offer(bucketKey{bucketNamespace, it.Namespace, ""}, e)
	}
	if ws.kinds[bucketName] > 0 {
		s.offer(bucketKey{bucketName, it.Namespace, it.Name}, e)
		if it.Namespace != "" {
			s.offer(bucketKey{bucketName, "", it.Name}, e)
		}
	}
	if ws.kinds[bucketField] > 0 {
		s.offerFields(e)
	}
}

// offerFields reaches the watchers of the field's value now and of that before.
func (s *resource) offerFields(e *Event) {
	now := e.Item.fieldMeta().Fields
	var was []string
	if e.Prev != nil {
		was = e.Prev.fieldMeta().Fields
	}
	for i, key := range *s.keys.Load() {
		if key == "" || i >= len(now) {
			continue
		}
		s.offer(bucketKey{bucketField, key, now[i]}, e)
		if i < len(was) && was[i] != now[i] {
			s.offer(bucketKey{bucketField, key, was[i]}, e)
		}
	}
}

func (s *resource) offer(k bucketKey, e *Event) {
	for _, w := range s.watchers.buckets[k] {
		if !w.is(synced) {
			continue // since an earlier event of the batch
		}
		if d, ok := w.sees(e); ok {
			if !w.push(d) {
				w.seenUpTo = d.Revision() - 1
				s.watchers.full = append(s.watchers.full, w)
				continue
			}
			if !w.woken {
				w.woken = true
				s.watchers.hit = append(s.watchers.hit, w)
			}
		}
	}
}

// sees translates an event for the watcher.
func (w *Watcher) sees(e *Event) (Delivery, bool) {
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

// push queues a delivery for its watcher; false: its queue is full, and it has to catch up.
func (w *Watcher) push(d Delivery) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.is(ended) {
		return true
	}
	size := d.Event.Item.Size()
	if n := len(w.queue); n >= maxQueue || n > 0 && w.held+size > maxQueueBytes {
		w.fallBehind()
		return false
	}
	w.queue = append(w.queue, d)
	w.held += size
	return true
}

// Ready is signalled when Take may have something new. It is called to wait for that.
func (w *Watcher) Ready() <-chan struct{} {
	if w.scope.Group != nil {
		w.signal.CompareAndSwap(busy, idle)
	}
	return w.ready
}
