package cache

import (
	"context"
	"slices"

	"github.com/rowlock/rowlock/sqlstore"
)

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

// Watch starts a watcher of the changes after a revision; one in the future sees
// nothing until then. Changes older than memory are read from log as Take is called.
// Errors: sqlstore.CompactedError.
func (c *Cache) Watch(storage string, scope Scope, after int64, log Log) (*Watcher, error) {
	s := c.fresh(storage)
	if scope.Log == nil {
		scope.Log = log // memory may move on before the first Take
	}
	w := s.newWatcher(scope, after)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.generation = s.generation
	if after >= s.recent.floor {
		s.watchers.catchUp(w, after)
		w.Wake()
		return w, nil
	}
	if floor := log.Floor(); after < floor {
		return nil, &sqlstore.CompactedError{Revision: after, Floor: floor}
	}
	w.history = &history{log: log, next: after}
	w.state.Store(catchingUp)
	w.Wake()
	return w, nil
}

// WatchNow starts a watcher of the changes after the newest snapshot, which it returns too.
func (c *Cache) WatchNow(storage string, scope Scope) (*Watcher, *Snapshot) {
	s := c.fresh(storage)
	w := s.newWatcher(scope, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.generation = s.generation
	snap := c.snapshot(s)
	w.after = snap.Revision
	w.place = s.bucketFor(&w.scope)
	s.watchers.add(w)
	return w, snap
}

func (s *resource) newWatcher(scope Scope, after int64) *Watcher {
	return &Watcher{resource: s, scope: scope, after: after, ready: make(chan struct{}, 1)}
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
	revision := w.resource.cacheRevision()
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
	s := w.resource
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
	case w.resource.cache.replays <- struct{}{}:
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	page, err := h.log.Changes(ctx, h.next, historyPage, true)
	<-w.resource.cache.replays
	if err != nil {
		return nil, 0, err
	}
	for i := range page {
		ch := &page[i]
		h.next = ch.Revision
		if ch.Key.Resource != w.resource.key {
			continue
		}
		if d, ok := w.sees(w.resource.event(ch)); ok {
			out = append(out, d)
		}
	}
	s := w.resource
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
func (s *resource) event(ch *sqlstore.Change) *Event {
	e := &Event{Type: Modified, Item: s.read(&ch.Row, nil)}
	if ch.PrevRevision > 0 {
		prev := ch.Row
		prev.Revision, prev.Value, prev.Deleted, prev.Unopened, prev.Damaged = ch.PrevRevision, ch.PrevValue, false, ch.PrevUnopened, ch.PrevDamaged
		e.Prev = s.read(&prev, nil)
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
	s := w.resource
	s.mu.Lock()
	if w.history == nil {
		s.watchers.remove(w)
	}
	s.mu.Unlock()
	w.mu.Lock()
	w.queue, w.held = nil, 0
	w.mu.Unlock()
}
