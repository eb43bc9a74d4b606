package cache

import "github.com/rowlock/rowlock/sqlstore"

// Watch starts a watcher of the changes after a revision, which may be in the future. Take reads changes that memory no
// longer has from log. Errors: sqlstore.CompactedError.
func (c *Cache) Watch(storage string, scope Scope, after int64, log Log) (*Watcher, error) {
	if scope.Log == nil {
		scope.Log = log // the event log may drop events before the first Take
	}
	s := c.locked(storage)
	defer s.mu.Unlock()
	w := s.newWatcher(scope, after)
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
	s := c.locked(storage)
	defer s.mu.Unlock()
	w := s.newWatcher(scope, 0)
	w.generation = s.generation
	revision := c.revision.Load() // before the state is read
	v := s.state()
	snap := &Snapshot{Revision: max(revision, v.changed), v: v}
	w.after = snap.Revision
	w.place = s.bucketFor(&w.scope)
	s.watchers.add(w)
	return w, snap
}

// locked returns the resource of a storage with its mu locked, so that it is not dropped.
func (c *Cache) locked(storage string) *resource {
	for {
		s := c.fresh(storage)
		if s.mu.Lock(); !s.dropped.Load() {
			return s
		}
		s.mu.Unlock()
	}
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

// Watchers returns the number of watchers of a storage.
func (c *Cache) Watchers(storage string) int {
	s := c.resource(storage)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watchers.count()
}

// MatchingWatchers returns the number of watchers of a storage that see each change of an object with this namespace and name, both of
// which may be "". It leaves out watchers that select by other fields, most of which see few changes.
func (c *Cache) MatchingWatchers(storage, namespace, name string) (n int) {
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
