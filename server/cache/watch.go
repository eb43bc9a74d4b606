package cache

import (
	"context"
	"slices"
	"sync"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/sqlstore"
)

// stream holds the log of recent events of one storage, and its watchers.
type stream struct {
	readers
	hub   *streamShared
	key   string
	parse func(row *sqlstore.Row) *Item // makes an item of a row of the table

	mu         sync.Mutex // held while the resource changes, and to watch from a known point
	recent     eventLog
	watchers   watchers
	generation int64 // counts the calls of end
}

// historyPage is the page size for reads of the store's log.
const historyPage = 500

// replaysMost bounds how many watchers read a page at once, and how many send a large one, users in turn: a client with many
// watches from far back waits for its own pages, and delays neither writers nor the watches of others.
const replaysMost = 4

func (s *stream) newWatcher(scope Scope, after int64) *Watcher {
	return &Watcher{stream: s, scope: scope, after: after, ready: make(chan struct{}, 1)}
}

// bucketFor returns the bucket of a scope.
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

// Take returns the queued deliveries, oldest first, and a revision up to which the watcher has then received everything in
// its scope. The revision never falls. Take does not wait for new deliveries, and reuses the memory of buf. Errors: ErrSlow,
// ErrEnded, sqlstore.CompactedError, those of the log.
func (w *Watcher) Take(ctx context.Context, buf []Delivery) ([]Delivery, int64, error) {
	w.freeLarge()
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
	w.taken = nil
	if w.held > maxQueueBytes { // then it is alone
		w.taken = out[0].Event
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
	w.took(events)
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
		if d, ok := w.selects(e); ok {
			out = append(out, d)
		}
	}
	if again || len(out) == 0 {
		w.Wake()
	}
	w.given = max(w.given, upTo)
	return out, w.given, nil
}

// took notes an event of the event log that is larger than a queue may hold, and so alone.
func (w *Watcher) took(events []*Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.taken = nil; len(events) == 1 && events[0].largest() > maxQueueBytes {
		w.taken = events[0]
	}
}

// page returns as many of the events as a queue may hold.
func page(events []*Event) []*Event {
	bytes := 0
	for n, e := range events {
		if bytes += e.largest(); n == maxQueue || n > 0 && bytes > maxQueueBytes {
			return events[:n]
		}
	}
	return events
}

// replay reads one page of the store's log, and changes to the event log once that reaches back far enough.
func (w *Watcher) replay(ctx context.Context, out []Delivery) ([]Delivery, int64, error) {
	h, promised := w.history, w.promised
	w.promised = nil
	defer func() { promised.Leave() }() // if the page does not need it
	if recalling := w.stream.hub.backfilling.Load(); recalling != nil {
		select {
		case <-*recalling:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
	if w.reached(h.next) {
		w.given = max(w.given, h.next)
		w.Wake()
		return out, w.given, nil
	}
	place, err := w.stream.hub.replays.Enter(ctx, w.scope.User, 0)
	if err != nil {
		return nil, 0, err
	}
	page, err := h.log.Changes(ctx, h.next, historyPage, true)
	place.Leave()
	if err != nil {
		return nil, 0, err
	}
	if slices.ContainsFunc(page, func(ch sqlstore.Change) bool { return budget.Large(ch.Bytes()) }) {
		w.large, promised = promised, nil
		if w.large == nil {
			var ok bool
			if w.large, ok = w.stream.hub.largeReplays.TryEnter(w.scope.User, 0); !ok {
				page = nil // release it while the watcher waits
				return w.awaitLarge(ctx, out)
			}
		}
	}
	for i := range page {
		ch := &page[i]
		h.next = ch.Revision
		if ch.Key.Resource != w.stream.key {
			continue
		}
		if d, ok := w.selects(w.stream.event(ch)); ok {
			out = append(out, d)
		}
	}
	w.reached(h.next)
	w.Wake()
	w.given = max(w.given, h.next)
	return out, w.given, nil
}

// awaitLarge waits until the watcher may send a large page, and has the page read again.
func (w *Watcher) awaitLarge(ctx context.Context, out []Delivery) (_ []Delivery, _ int64, err error) {
	if w.promised, err = w.stream.hub.largeReplays.Enter(ctx, w.scope.User, 0); err != nil {
		return nil, 0, err
	}
	w.Wake()
	return out, w.given, nil
}

// HoldsLarge reports whether the last Take returned large objects of the store's log, which replaysMost watchers may hold. It is
// for the goroutine that calls Take.
func (w *Watcher) HoldsLarge() bool { return w.large != nil }

// freeLarge records that the watcher no longer holds a large page.
func (w *Watcher) freeLarge() {
	w.large.Leave()
	w.large = nil
}

// reached changes to the event log, if it has all events after a revision.
func (w *Watcher) reached(revision int64) bool {
	s := w.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision < s.recent.floor {
		return false
	}
	w.history, w.after = nil, max(w.after, revision)
	s.watchers.catchUp(w, revision)
	if w.generation != s.generation {
		w.drain(ErrEnded) // End did not find it
	}
	return true
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
	w.queue, w.held, w.taken = nil, 0, nil
	w.mu.Unlock()
	w.freeLarge()
	w.promised.Leave()
}

// slowBytes is the default of Config.SlowBytes.
const slowBytes = 64 << 20

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
