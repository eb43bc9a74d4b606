package cache

import (
	"errors"
	"sync"
	"sync/atomic"
)

// ErrSlow ends a watch whose reader has fallen too far behind.
var ErrSlow = errors.New("watcher is too slow")

// What may be queued for one watcher, as deliveries and as bytes of their objects. Nothing
// more is queued for a watcher whose queue is full: it lags. Once it has taken what is
// queued, it reads the events that it missed from the event log, which all watchers share.
const (
	maxQueue      = 512
	maxQueueBytes = 512 << 10
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

	ready chan struct{}
	state atomic.Uint32
	hooks atomic.Pointer[Hooks] // of SetHooks

	mu    sync.Mutex
	queue []Delivery
	held  int // bytes of the objects in queue
	err   error
	ended bool // no more events are queued
	begun bool // has been up to date since it was made
	woken bool // is in the resource's list of hits; guarded by the resource's mu

	lagging     atomic.Bool // nothing is queued for it, and it reads the events after lagRevision from the event log; changed with the resource's mu held
	lagRevision int64       // guarded by the resource's mu

	given   int64    // the revision that Take returned last
	history *history // set while older changes are read from the log
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

// States of a watcher with a group.
const (
	busy   uint32 = iota
	idle          // waits for Ready
	called        // the group has been told
)

// Written must be called when what Take gave is about to be sent, or if there was nothing.
func (w *Watcher) Written() {
	if w.scope.Group != nil && w.state.Swap(busy) == called {
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
	hit     []*Watcher            // told at the end of a batch
	full    []*Watcher            // that fall behind, at the end of a batch
	lagging map[*Watcher]struct{} // that have fallen behind, and so are in no bucket
}

func (ws *watchers) init() {
	ws.buckets, ws.lagging = make(map[bucketKey][]*Watcher), make(map[*Watcher]struct{})
}

// setLagging gives a watcher nothing more that has been given everything up to a revision.
func (ws *watchers) setLagging(w *Watcher, upTo int64) {
	w.lagRevision = upTo
	w.lagging.Store(true)
	ws.lagging[w] = struct{}{}
}

func (ws *watchers) add(w *Watcher) {
	b := ws.buckets[w.place]
	w.index = len(b)
	ws.buckets[w.place] = append(b, w)
	ws.kinds[w.place.kind]++
}

func (ws *watchers) remove(w *Watcher) {
	delete(ws.lagging, w)
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
	n = len(ws.lagging)
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
	for w := range ws.lagging {
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
		ws.lagging[w] = struct{}{}
		ws.full[i] = nil
	}
	ws.full = ws.full[:0]
	for _, w := range ws.hit {
		if w.scope.Group != nil && w.state.CompareAndSwap(idle, called) {
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
		if w.lagging.Load() {
			continue // since an earlier event of the batch
		}
		if d, ok := w.sees(e); ok {
			if !w.push(d) {
				w.lagRevision = d.Revision() - 1
				w.lagging.Store(true)
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

// push lets a delivery wait for its watcher, unless too much does.
func (w *Watcher) push(d Delivery) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return true
	}
	size := d.Event.Item.Size()
	if n := len(w.queue); n >= maxQueue || n > 0 && w.held+size > maxQueueBytes {
		return false
	}
	w.queue = append(w.queue, d)
	w.held += size
	return true
}

// Ready is signalled when Take may have something new. It is called to wait for that.
func (w *Watcher) Ready() <-chan struct{} {
	if w.scope.Group != nil {
		w.state.CompareAndSwap(busy, idle)
	}
	return w.ready
}
