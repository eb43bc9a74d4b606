package cache

import (
	"cmp"
	"slices"

	"github.com/rowlock/rowlock/sqlstore"
)

// Watch starts a watcher of the changes after a revision, which may be in the future. Take reads changes that memory no
// longer has from log. Errors: sqlstore.CompactedError.
func (c *Cache) Watch(storage string, scope Scope, after int64, log Log) (*Watcher, error) {
	s := c.fresh(storage)
	if scope.Log == nil {
		scope.Log = log // the event log may drop events before the first Take
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

// WatchNow starts a watcher of the changes after the newest snapshot, and returns both.
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

// End ends the watchers of a storage with ErrEnded once they have taken the events up to now, because the storage is no longer
// served as it was. It does not affect new watchers.
func (c *Cache) End(storage string) {
	v, ok := c.resources.Load(storage)
	if !ok {
		return
	}
	s := v.(*resource)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	s.watchers.each(func(w *Watcher) {
		s.watchers.remove(w)
		w.drain(ErrEnded)
	})
}

// EndSlow ends watchers that are too slow: first those that catch up and whose next event is no longer in the event log, then
// the slowest ones until the old events in all other queues are within Config.SlowBytes.
func (c *Cache) EndSlow() {
	var slow []slowWatcher
	total := 0
	for s := range c.all() {
		slow = append(slow, s.slow()...)
	}
	slices.SortFunc(slow, func(a, b slowWatcher) int { return cmp.Compare(a.oldest, b.oldest) })
	counted := make(map[*Event]bool)
	for i := len(slow) - 1; i >= 0; i-- { // a large event counts for the last of those that keep it to be ended
		l := &slow[i]
		if l.alone != nil && counted[l.alone] {
			l.held = 0
		}
		counted[l.alone] = true
		total += l.held
	}
	for _, l := range slow {
		if total <= c.slowBytes {
			return
		}
		l.w.end(ErrSlow)
		total -= l.held
	}
}

// Watchers returns the number of watchers of a storage.
func (c *Cache) Watchers(storage string) int {
	s := c.resource(storage)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watchers.count()
}

// Interested returns the number of watchers of a storage that see each change of an object with this namespace and name, both of
// which may be "". It leaves out watchers that select by other fields, most of which see few changes.
func (c *Cache) Interested(storage, namespace, name string) (n int) {
	s := c.resource(storage)
	s.mu.Lock()
	defer s.mu.Unlock()
	n = s.watchers.in(bucketKey{})
	if namespace != "" {
		n += s.watchers.in(bucketKey{bucketNamespace, namespace, ""})
	}
	if name == "" {
		return n
	}
	if n += s.watchers.in(bucketKey{bucketName, "", name}); namespace != "" {
		n += s.watchers.in(bucketKey{bucketName, namespace, name})
	}
	return n
}
