package cache

import "errors"

// ErrEnded is what Take says once all was taken of a storage that has ended.
var ErrEnded = errors.New("what was watched is served anew, or no more")

// End lets the watchers of a storage take what was on its way to them, and then fail
// with ErrEnded: what they watch is not served as it was. New ones are not affected.
func (c *Cache) End(storage string) {
	v, ok := c.resources.Load(storage)
	if !ok {
		return
	}
	s := v.(*resource)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers.each(func(w *Watcher) {
		s.watchers.remove(w)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended = true
		w.Wake()
	})
}
