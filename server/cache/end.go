package cache

import "errors"

// ErrEnded is what Take says once all was taken of a storage that has ended.
var ErrEnded = errors.New("what was watched is served anew, or no more")

// End ends the watchers of a storage with ErrEnded once they have taken the events up to now: what they watch is no longer
// served as it was. New watchers are not affected.
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
