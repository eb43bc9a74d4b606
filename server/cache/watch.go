package cache

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

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
//	ended       nothing more is queued. Take returns what is queued, and then the reason
//
// A watcher begins synced (WatchNow) or catching up (Watch). From synced it goes to catchingUp when its queue is full
// (push), and back when it has read all of the event log (catchUp). EndSlow, a reload and End end it; a watcher that End
// ends may catch up first.
const (
	synced uint32 = iota
	catchingUp
	ended
)

// hub is what the streams of all storages share.
type hub struct {
	revision atomic.Int64  // the newest one applied
	replays  chan struct{} // held while a page of the store's log is read for a watcher

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup // goroutines of fanOut, and those that index labels; added to under mu, unless closed
}

// start starts a goroutine that close waits for, unless the cache is closed.
func (h *hub) start(run func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.running.Go(run)
	}
}

func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.running.Wait()
}

// isClosed says that a goroutine that takes long should stop.
func (h *hub) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// stream is the events of one storage: the log of the recent ones, and the watchers of those to come.
type stream struct {
	readers
	hub   *hub
	key   string
	parse func(row *sqlstore.Row) *Item // makes an item of a row of the table

	mu         sync.Mutex // held while the resource changes, and to watch from a known point
	recent     eventLog
	watchers   watchers
	generation int64 // counts the calls of end
}

// Scope is the part of a storage that a watcher sees.
type Scope struct {
	Namespace string // "": all
	Name      string // "": all
	Filter    *Filter
	Group     Group // of watchers on the same connection; may be nil
	// Log is where a watcher reads changes that memory no longer has, if it took that long to send the initial objects. Nil:
	// the watcher ends with ErrSlow instead, and gets objects that can be decrypted again as added, out of order.
	Log Log
}

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
	held   int   // bytes of the objects in queue
	reason error // why it has ended, or will end once it has caught up; nil if neither
	begun  bool  // has been synced
	woken  bool  // is in watchers.hit; guarded by the stream's mu

	seenUpTo int64 // while catching up: the revision up to which it has read all events; guarded by the stream's mu

	given   int64    // the revision that Take returned last
	history *history // set while it catches up from the store's log; then watchers does not have it

	generation int64 // of the stream when it began
}

func (w *Watcher) is(state uint32) bool { return w.state.Load() == state }

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

// ends says that the watcher ends once it has caught up.
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

// Group knows which watchers of one connection are about to send, so that their frames go out together.
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

// watchers finds the watchers that may see an event. It is guarded by the stream's mu.
type watchers struct {
	buckets map[bucketKey][]*Watcher
	kinds   [bucketField + 1]int
	hit     []*Watcher            // to be signalled at the end of the batch
	full    []*Watcher            // fell behind in this batch, and leave their buckets at its end
	behind  map[*Watcher]struct{} // catch up from the event log, and are in no bucket
}

func (ws *watchers) init() {
	ws.buckets, ws.behind = make(map[bucketKey][]*Watcher), make(map[*Watcher]struct{})
}

// catchUp makes a watcher that has received everything up to a revision read the event log.
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

// in is the number of watchers in a bucket.
func (ws *watchers) in(k bucketKey) int { return len(ws.buckets[k]) }

// each calls fn with each watcher; fn may remove it.
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

// sees returns an event as the watcher sees it, if it does.
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

// push queues a delivery. It returns false if the queue is full and the watcher has to catch up.
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

// Ready is signalled when Take may return something new. Call it only to wait.
func (w *Watcher) Ready() <-chan struct{} {
	if w.scope.Group != nil {
		w.signal.CompareAndSwap(busy, idle)
	}
	return w.ready
}

// Log reads changes that are no longer in memory; sqlstore.Store is one.
type Log interface {
	Changes(ctx context.Context, after int64, limit int, previous bool) ([]sqlstore.Change, error)
	Floor() int64
}

// historyPage is how many changes of the store's log are read at once.
const historyPage = 500

// replaysMost is how many watchers read a page at once: a client with many watches from far back waits for its own pages,
// and does not delay writers.
const replaysMost = 4

// history is the place of a watcher in the store's log, before it has reached the event log.
type history struct {
	log  Log
	next int64 // last revision that was read
}

func (s *stream) newWatcher(scope Scope, after int64) *Watcher {
	return &Watcher{stream: s, scope: scope, after: after, ready: make(chan struct{}, 1)}
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

// Take returns the queued deliveries, oldest first, and a revision up to which the watcher has then received everything in
// its scope. The revision never falls. Take does not wait for new deliveries, and reuses the memory of buf. Errors: ErrSlow,
// ErrEnded, sqlstore.CompactedError, those of the log.
func (w *Watcher) Take(ctx context.Context, buf []Delivery) ([]Delivery, int64, error) {
	if w.history != nil {
		return w.replay(ctx, buf[:0])
	}
	revision := w.stream.hub.revision.Load()
	clear(buf)
	w.mu.Lock()
	// Other goroutines make a synced watcher catch up, or end it, and never the reverse. So a watcher that is synced now was
	// synced when the revision was read, and all events up to it are, or were, in its queue. Of another watcher only the queue
	// is known.
	isSynced, behind := w.is(synced), w.is(catchingUp)
	out := w.queue
	if len(out) == 0 && behind {
		w.mu.Unlock()
		return w.catchUp(buf[:0])
	}
	defer w.mu.Unlock()
	if w.is(ended) && len(out) == 0 {
		return nil, 0, w.reason
	}
	w.queue, w.held = buf[:0], 0
	if cap(w.queue) > 64 {
		w.queue = nil
	}
	if isSynced {
		w.begun = true
		w.given = max(w.given, revision, w.after)
	} else {
		w.Wake() // Take has more to return
	}
	if n := len(out); n > 0 {
		w.given = max(w.given, out[n-1].Revision())
	}
	return out, w.given, nil
}

// isBegun says that a watcher has been synced since it was made.
func (w *Watcher) isBegun() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.begun
}

// catchUp reads a page of the event log. After the last page the watcher is synced.
func (w *Watcher) catchUp(out []Delivery) ([]Delivery, int64, error) {
	s := w.stream
	s.mu.Lock()
	if w.seenUpTo < s.recent.floor {
		defer s.mu.Unlock()
		if w.scope.Log == nil || w.ends() || w.isBegun() {
			return nil, 0, ErrSlow
		}
		s.watchers.remove(w)
		w.history = &history{log: w.scope.Log, next: w.seenUpTo}
		w.Wake()
		return out, max(w.given, w.seenUpTo), nil
	}
	all := s.recent.after(w.seenUpTo)
	events := slices.Clone(page(all))
	last := len(events) == len(all)
	if n := len(events); n > 0 {
		w.seenUpTo = events[n-1].Item.Revision
	}
	upTo, again := w.seenUpTo, true
	if last {
		s.watchers.remove(w)
		if w.caughtUp() {
			w.place = s.bucketFor(&w.scope)
			s.watchers.add(w)
			again = false
		}
	}
	s.mu.Unlock()
	for _, e := range events {
		if d, ok := w.sees(e); ok {
			out = append(out, d)
		}
	}
	if again || len(out) == 0 {
		w.Wake()
	}
	w.given = max(w.given, upTo)
	return out, w.given, nil
}

// page returns as many of the events as a queue may hold.
func page(events []*Event) []*Event {
	bytes := 0
	for n, e := range events {
		if bytes += e.Item.Size(); n == maxQueue || n > 0 && bytes > maxQueueBytes {
			return events[:n]
		}
	}
	return events
}

// replay reads one page of the store's log, and changes to the event log once that reaches back far enough.
func (w *Watcher) replay(ctx context.Context, out []Delivery) ([]Delivery, int64, error) {
	h := w.history
	select {
	case w.stream.hub.replays <- struct{}{}:
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	page, err := h.log.Changes(ctx, h.next, historyPage, true)
	<-w.stream.hub.replays
	if err != nil {
		return nil, 0, err
	}
	for i := range page {
		ch := &page[i]
		h.next = ch.Revision
		if ch.Key.Resource != w.stream.key {
			continue
		}
		if d, ok := w.sees(w.stream.event(ch)); ok {
			out = append(out, d)
		}
	}
	s := w.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.next >= s.recent.floor {
		w.history, w.after = nil, max(w.after, h.next)
		s.watchers.catchUp(w, h.next)
		if w.generation != s.generation {
			w.drain(ErrEnded) // End did not find it
		}
	}
	w.Wake()
	w.given = max(w.given, h.next)
	return out, w.given, nil
}

// event makes an event of a change of the store's log.
func (s *stream) event(ch *sqlstore.Change) *Event {
	e := &Event{Type: Modified, Item: s.parse(&ch.Row)}
	if ch.PrevRevision > 0 {
		prev := ch.Row
		prev.Revision, prev.Value, prev.Deleted, prev.Unopened, prev.Damaged = ch.PrevRevision, ch.PrevValue, false, ch.PrevUnopened, ch.PrevDamaged
		e.Prev = s.parse(&prev)
	}
	switch {
	case ch.Deleted:
		e.Type = Deleted
	case ch.PrevRevision == 0:
		e.Type = Added
	}
	return e
}

// Stop ends the watcher. It may be called twice.
func (w *Watcher) Stop() {
	defer w.Written()
	s := w.stream
	s.mu.Lock()
	if w.history == nil {
		s.watchers.remove(w)
	}
	s.mu.Unlock()
	w.mu.Lock()
	w.queue, w.held = nil, 0
	w.mu.Unlock()
}

// ErrEnded is the error of Take after Cache.End, once the watcher has taken everything.
var ErrEnded = errors.New("what was watched is served anew, or no more")

// slowBytes bounds the events that are queued, for all watchers together, but no longer in an event log.
const slowBytes = 64 << 20

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

// SetHooks sets what is called when Take may return something new.
func (w *Watcher) SetHooks(h Hooks) { w.hooks.Store(&h) }

// InMemory says that Take only returns what is queued, and reads neither the event log nor the store's log. It is for the
// goroutine that calls Take.
func (w *Watcher) InMemory() bool { return !w.is(catchingUp) }

// reread queues an object that can be read now for a watcher without a Scope.Log. The caller holds the stream's mu.
func (w *Watcher) reread(it *Item) {
	sc := &w.scope
	if sc.Log != nil || sc.Namespace != "" && sc.Namespace != it.Namespace || sc.Name != "" && sc.Name != it.Name || !sc.Filter.Match(it) {
		return
	}
	if w.is(catchingUp) || !w.push(Delivery{Event: &Event{Type: Added, Item: it}, Type: Added}) {
		w.stream.watchers.remove(w)
		w.end(ErrSlow)
		return
	}
	w.Wake()
}
