package cache

import (
	"context"

	"github.com/rowlock/rowlock/sqlstore"
)

// Log reads changes that are no longer in memory; sqlstore.Store is one.
type Log interface {
	Changes(ctx context.Context, after int64, limit int, previous bool) ([]sqlstore.Change, error)
	Floor() int64
}

// historyPage is how many changes of the log are read at once.
const historyPage = 500

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
	w := s.newWatcher(scope, after)
	s.mu.Lock()
	defer s.mu.Unlock()
	if after >= s.ring.floor {
		s.attach(w, after)
		return w, nil
	}
	if floor := log.Floor(); after < floor {
		return nil, &sqlstore.CompactedError{Revision: after, Floor: floor}
	}
	w.history = &history{log: log, next: after}
	w.Wake()
	return w, nil
}

// WatchNow starts a watcher of the changes after the newest snapshot, which it returns too.
func (c *Cache) WatchNow(storage string, scope Scope) (*Watcher, *Snapshot) {
	s := c.fresh(storage)
	w := s.newWatcher(scope, 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := c.snapshot(s)
	w.after = snap.Revision
	w.place = s.bucketFor(&w.scope)
	s.watchers.add(w)
	return w, snap
}

func (s *shelf) newWatcher(scope Scope, after int64) *Watcher {
	return &Watcher{shelf: s, scope: scope, after: after, ready: make(chan struct{}, 1)}
}

// attach gives w what the ring holds after a revision, and all that comes. The
// revision may be ahead of memory: the log can be. s.mu is held.
func (s *shelf) attach(w *Watcher, after int64) {
	w.after = after
	for _, e := range s.ring.after(after) {
		if d, ok := w.sees(e); ok {
			w.queue = append(w.queue, d)
		}
	}
	if len(w.queue) > 0 {
		w.Wake()
	}
	w.place = s.bucketFor(&w.scope)
	s.watchers.add(w)
}

// Wake signals Ready.
func (w *Watcher) Wake() {
	if h := w.hooks.Load(); h != nil {
		h.wake()
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
	revision := w.shelf.cacheRevision()
	clear(buf)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return nil, 0, w.err
	}
	if w.ended && len(w.queue) == 0 {
		return nil, 0, ErrEnded
	}
	w.begun = true
	out := w.queue
	w.queue = buf[:0]
	if cap(w.queue) > 64 {
		w.queue = nil
	}
	// The cache's revision comes behind the events that it stands for.
	w.given = max(w.given, revision, w.after)
	if n := len(out); n > 0 {
		w.given = max(w.given, out[n-1].Revision())
	}
	return out, w.given, nil
}

// replay reads one page of the log, and goes over to memory when that reaches back
// far enough.
func (w *Watcher) replay(ctx context.Context, out []Delivery) ([]Delivery, int64, error) {
	h := w.history
	page, err := h.log.Changes(ctx, h.next, historyPage, true)
	if err != nil {
		return nil, 0, err
	}
	for i := range page {
		ch := &page[i]
		h.next = ch.Revision
		if ch.Key.Resource != w.shelf.key {
			continue
		}
		if d, ok := w.sees(w.shelf.event(ch)); ok {
			out = append(out, d)
		}
	}
	s := w.shelf
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.next >= s.ring.floor {
		w.history = nil
		s.attach(w, h.next)
	} else {
		w.Wake()
	}
	return out, h.next, nil
}

// event makes an event of a change that was read from the log.
func (s *shelf) event(ch *sqlstore.Change) *Event {
	e := &Event{Type: Modified, Item: s.read(&ch.Row)}
	if ch.PrevRevision > 0 {
		prev := ch.Row
		prev.Revision, prev.Value, prev.Deleted = ch.PrevRevision, ch.PrevValue, false
		e.Prev = s.read(&prev)
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
	defer w.Come()
	s := w.shelf
	s.mu.Lock()
	if w.history == nil {
		s.watchers.remove(w)
	}
	s.mu.Unlock()
	w.mu.Lock()
	w.queue = nil
	w.mu.Unlock()
}
