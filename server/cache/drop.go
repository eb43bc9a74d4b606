package cache

// A client that may write definitions can create and delete kinds without end. Each leaves a resource, which Forget finds
// once nothing needs it. Only Apply drops it: no change is applied to a resource that readers no longer find.

// unneeded reports whether a resource of a removed kind has no objects, watchers, events and pinned states.
func (c *Cache) unneeded(s *resource) bool {
	if s.internal || c.storageOf(s.key) != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.idle()
}

// idle is unneeded, but for the kind. The caller holds mu.
func (s *resource) idle() bool {
	s.pins.mu.Lock()
	pinned := len(s.pins.list)
	s.pins.mu.Unlock()
	items, _, _ := s.extent()
	return items == 0 && pinned == 0 && s.build == nil && len(s.recent.events) == 0 && s.watchers.count() == 0
}

// drop drops the resources that Forget has found, if they are still unneeded.
func (c *Cache) drop() {
	list := c.leaving.Swap(nil)
	if list == nil {
		return
	}
	c.making.Lock()
	defer c.making.Unlock()
	c.left = c.revision.Load()
	for _, s := range *list {
		s.mu.Lock()
		if s.idle() && c.storageOf(s.key) == nil {
			s.dropped.Store(true)
			s.generation++ // watchers that read the table end once they have read it
			c.resources.CompareAndDelete(s.key, s)
		}
		s.mu.Unlock()
	}
}
