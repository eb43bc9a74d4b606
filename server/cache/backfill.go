package cache

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowlock/rowlock/sqlstore"
)

// BackfillLog is the store's log as Backfill reads it; sqlstore.Store implements it.
type BackfillLog interface {
	Log
	// LastChanges returns the newest revision above after, up to upTo, that changed each resource.
	LastChanges(ctx context.Context, after, upTo int64) (map[string]int64, error)
}

// Bounds of Backfill.
const (
	backfillReach = 100_000 // how many revisions back it looks for resources that did not change
	backfillPage  = 64      // how many changes it reads at once; it ends where their values have more than sqlstore.ChangesBytes
)

// backfill holds the results of Backfill so far.
type backfill struct {
	cache *Cache
	log   BackfillLog
	base  int64 // revision of the load
	low   int64 // the events after it are in the event logs
	count int
	bytes int
	items map[sqlstore.Key]*Item // the state before the events in the event logs, where one is known
}

// Backfill fills the event logs with the newest changes of before the load, so that watches from before a restart need not read
// the table, each for itself: it reads changes back to the bounds of one event log, for all resources together; and for
// resources that did not change before that, it finds out how long. Watchers that would read the table wait meanwhile. Changes
// that it does not find are read from the table as before.
func (c *Cache) Backfill(ctx context.Context, log BackfillLog) error {
	done := make(chan struct{})
	c.backfilling.Store(&done)
	defer close(done)
	c.making.Lock()
	r := &backfill{cache: c, log: log, base: c.base, low: c.base, items: map[sqlstore.Key]*Item{}}
	c.making.Unlock()
	floor := log.Floor()
	for r.low > floor && r.count < c.recent.count && r.bytes < c.recent.bytes {
		more, err := r.page(ctx, max(floor, r.low-backfillPage))
		if err != nil {
			return backfillError(err)
		}
		if !more {
			return nil
		}
	}
	after := max(floor, r.base-backfillReach)
	if r.low <= after {
		return nil
	}
	last, err := log.LastChanges(ctx, after, r.low)
	if err != nil {
		return backfillError(err)
	}
	r.cache.lower(r.low, func(key string) int64 { return max(last[key], after) })
	return nil
}

// backfillError converts an error of Backfill. Compaction in the meantime is no error.
func backfillError(err error) error {
	var gone *sqlstore.CompactedError
	if errors.As(err, &gone) {
		return nil
	}
	return fmt.Errorf("reading recent changes: %w", err)
}

// page adds the events between a revision and those that are there. It reports whether older ones are of use.
func (r *backfill) page(ctx context.Context, after int64) (more bool, err error) {
	changes, err := r.log.Changes(ctx, after, int(r.low-after), true)
	if err != nil || int64(len(changes)) < r.low-after {
		return false, err
	}
	now := r.cache.clock().Unix()
	events := map[string][]*Event{} // newest first
	for i := len(changes) - 1; i >= 0; i-- {
		ch := &changes[i]
		if Internal(ch.Key.Resource) {
			continue
		}
		e := r.event(ch)
		e.at = min(now, ch.WrittenAt.Unix())
		events[ch.Key.Resource] = append(events[ch.Key.Resource], e)
		r.count, r.bytes = r.count+1, r.bytes+e.size()
	}
	r.cache.making.Lock()
	defer r.cache.making.Unlock()
	if r.cache.base != r.base { // everything was loaded anew
		return false, nil
	}
	for key := range events {
		r.cache.find(key)
	}
	for s := range r.cache.all() {
		s.prepend(events[s.key], r.low, after)
	}
	r.low, r.cache.known = after, after
	return now-changes[0].WrittenAt.Unix() < r.cache.recent.age, nil
}

// event makes an event, of items that are in memory where possible.
func (r *backfill) event(ch *sqlstore.Change) *Event {
	s := r.cache.resource(ch.Key.Resource)
	e := s.event(ch)
	it := r.items[ch.Key]
	if it == nil && !ch.Deleted {
		it = s.get(ch.Key.Namespace, ch.Key.Name)
	}
	if it != nil && it.Revision == e.Item.Revision && e.Type != Deleted {
		e.Item = it
	}
	if e.Prev != nil {
		r.items[ch.Key] = e.Prev
	} else {
		delete(r.items, ch.Key)
	}
	return e
}

// lower lowers the floors of event logs that begin at a revision, to one after which nothing changed.
func (c *Cache) lower(from int64, to func(key string) int64) {
	c.making.Lock()
	defer c.making.Unlock()
	if c.known != from {
		return
	}
	for s := range c.all() {
		s.prepend(nil, from, to(s.key))
	}
	c.quiet = to
}

// prepend adds events, newest first, to the event log, if it begins at a revision; then it begins at another one.
func (s *stream) prepend(events []*Event, from, to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.recent
	if l.floor != from {
		return
	}
	for _, e := range events {
		if len(l.events)-l.start >= l.bounds.count || l.bytes+e.size() > l.bounds.bytes {
			l.floor = e.Item.Revision
			return
		}
		l.unshift(e)
	}
	l.floor = to
}

// unshift adds an event that is older than all others.
func (l *eventLog) unshift(e *Event) {
	if l.start == 0 {
		room := max(historyPage, len(l.events))
		l.events = append(make([]*Event, room, room+len(l.events)), l.events...)
		l.start = room
	}
	l.start--
	l.events[l.start] = e
	l.bytes += e.size()
}
