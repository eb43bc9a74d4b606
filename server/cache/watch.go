package cache

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rowlock/rowlock/sqlstore"
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

// hub is what the watchers of all storages share.
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

// isClosed says that a goroutine that takes long should give up.
func (h *hub) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// stream is what happens to the objects of one storage: the recent events, and the watchers of those to come.
type stream struct {
	readers
	hub   *hub
	key   string
	parse func(row *sqlstore.Row) *Item // makes an item of a row as it lies in the table

	mu         sync.Mutex // held while the resource changes, and to watch from a known point
	recent     eventLog
	watchers   watchers
	generation int64 // counts the calls of end
}

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
func (s *stream) bucketFor(sc *Scope) bucketKey {
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
			if key := indexKey(*s.keys.Load(), t.Index); key != "" && !t.Not {
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
func (s *stream) dispatch(e *Event) {
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
func (s *stream) offerFields(e *Event) {
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

func (s *stream) offer(k bucketKey, e *Event) {
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

// Log reads changes that are no longer in memory; sqlstore.Store is one.
type Log interface {
	Changes(ctx context.Context, after int64, limit int, previous bool) ([]sqlstore.Change, error)
	Floor() int64
}

// historyPage is how many changes of the log are read at once.
const historyPage = 500

// replaysMost is how many watchers have a page read at once: whoever asks for many
// watches from far back waits for them, and not those who write.
const replaysMost = 4

// history is where a watcher is in the log, before it has reached memory.
type history struct {
	log  Log
	next int64 // the last revision read
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

// Take returns the deliveries that wait, oldest first, and a revision up to which
// the watcher has then been given everything in its scope, which never falls.
// It does not wait for new ones; buf's memory is used again. Errors: ErrSlow,
// ErrEnded, sqlstore.CompactedError, those of the log.
func (w *Watcher) Take(ctx context.Context, buf []Delivery) ([]Delivery, int64, error) {
	if w.history != nil {
		return w.replay(ctx, buf[:0])
	}
	revision := w.stream.hub.revision.Load()
	clear(buf)
	w.mu.Lock()
	// Others make a synced watcher catch up, or end it, and never the reverse. So one that is synced now was so when the
	// revision was read, and all events up to that are, or were, in its queue. Of another one the queue alone is known.
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
		w.Wake() // there is more to be said
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

// catchUp reads a page of the event log. A watcher that has read all of it is synced.
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

// page is as much of some events as may wait for a watcher.
func page(events []*Event) []*Event {
	bytes := 0
	for n, e := range events {
		if bytes += e.Item.Size(); n == maxQueue || n > 0 && bytes > maxQueueBytes {
			return events[:n]
		}
	}
	return events
}

// replay reads one page of the log, and goes over to memory when that reaches back
// far enough.
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
			w.drain(ErrEnded) // End found it nowhere
		}
	}
	w.Wake()
	w.given = max(w.given, h.next)
	return out, w.given, nil
}

// event makes an event of a change that was read from the log.
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

// ErrEnded is what Take says once all was taken of a storage that has ended.
var ErrEnded = errors.New("what was watched is served anew, or no more")

// slowBytes is how many bytes of events that the event logs no longer hold may be queued,
// for all watchers together.
const slowBytes = 64 << 20

// slowWatcher is a synced watcher whose queue holds events that the event log no longer does.
type slowWatcher struct {
	w      *Watcher
	oldest int64 // revision of its first event
	held   int
}

// slow lists the watchers of a resource whose queues hold events that the event log does not, and ends those that
// cannot catch up any more.
func (s *stream) slow() (slow []slowWatcher) {
	s.mu.Lock()
	floor := s.recent.floor
	var all []*Watcher
	s.watchers.each(func(w *Watcher) { all = append(all, w) })
	lost := make(map[*Watcher]struct{})
	for w := range s.watchers.behind {
		if w.seenUpTo < floor {
			lost[w] = struct{}{}
		}
	}
	s.mu.Unlock()
	for _, w := range all {
		if _, ok := lost[w]; ok && (w.scope.Log == nil || w.isBegun()) {
			w.end(ErrSlow)
			continue
		}
		w.mu.Lock()
		if n := len(w.queue); n > 0 && w.queue[0].Revision() <= floor {
			slow = append(slow, slowWatcher{w, w.queue[0].Revision(), w.held})
		}
		w.mu.Unlock()
	}
	return slow
}

// How many watchers are notified before other goroutines have their turn: few, or those
// of a group, as what they send goes out together.
const (
	fanOutStep = 16
	groupStep  = 128
)

// fanOut notifies watchers with hooks that they were given something. That may take a
// while, and a writer waits for its answer meanwhile: so it is not done by whoever applies
// changes, but by goroutines that end with it. They take half of the processors, so that
// requests, and clients on the same machine, have the rest.
type fanOut struct {
	watchers []*Watcher // those of a group are neighbours
	step     int
	next     atomic.Int64
}

func (f *fanOut) start(owner *hub) {
	owner.start(func() {
		if f.step == groupStep {
			slices.SortFunc(f.watchers, func(a, b *Watcher) int { return cmp.Compare(a.scope.order(), b.scope.order()) })
		}
		for range min(max(1, runtime.GOMAXPROCS(0)/2), (len(f.watchers)+f.step-1)/f.step) - 1 {
			owner.start(f.run)
		}
		f.run()
	})
}

func (f *fanOut) run() {
	for {
		end := int(f.next.Add(int64(f.step)))
		some := f.watchers[min(end-f.step, len(f.watchers)):min(end, len(f.watchers))]
		for len(some) > 0 {
			some = some[notifyTogether(some):]
		}
		if end >= len(f.watchers) {
			return
		}
		runtime.Gosched()
	}
}

// notifyTogether notifies the first watcher, and those that follow of its group. It
// returns how many they were.
func notifyTogether(watchers []*Watcher) (n int) {
	g := watchers[0].scope.Group
	if g != nil {
		g.AddWriter()
		defer g.RemoveWriter()
	}
	for n < len(watchers) && (n == 0 || g != nil && watchers[n].scope.Group == g) {
		(*watchers[n].hooks.Load()).Notify()
		n++
	}
	return n
}

// Hooks are called instead of a signal on Ready: Notify by a goroutine that can do what there
// is to be done, Wake by others, with locks held. Neither may wait for anything. Both may be
// called after Stop; Notify is not called after Close of the cache.
type Hooks interface {
	Notify()
	Wake()
}

type hookFuncs struct{ notify, wake func() }

func (h hookFuncs) Notify() { h.notify() }
func (h hookFuncs) Wake()   { h.wake() }

// HookFuncs are hooks of two functions.
func HookFuncs(notify, wake func()) Hooks { return hookFuncs{notify, wake} }

// SetHooks sets what is called when Take may have something new.
func (w *Watcher) SetHooks(h Hooks) { w.hooks.Store(&h) }

// InMemory says that Take returns what is queued, and reads neither the event log nor the store's. It is for the goroutine
// that calls Take.
func (w *Watcher) InMemory() bool { return !w.is(catchingUp) }

// reread gives an object that can be read now to a watcher that does not go by the log. The
// resource's mu is held.
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
