package cache

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Run drops old events and pinned states, packs, and ends slow watchers, until ctx ends.
func (c *Cache) Run(ctx context.Context) error {
	var packs sync.WaitGroup
	defer packs.Wait()
	packs.Go(func() { c.keepPacked(ctx) })
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	shed := time.NewTicker(3 * time.Second)
	defer shed.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			c.Forget()
		case <-shed.C:
			c.EndSlow()
		}
	}
}

// Forget drops events and pinned states that are too old, the schemas of removed kinds, and, with the next Apply, resources of
// these that nothing needs.
func (c *Cache) Forget() {
	now := c.clock()
	var leaving []*resource
	for s := range c.all() {
		if s.storage.Load() != nil && c.storageOf(s.key) == nil {
			s.refresh(nil) // a Storage holds the compiled schemas of its definition
		}
		s.mu.Lock()
		s.recent.trim(now.Unix())
		s.mu.Unlock()
		s.pins.mu.Lock()
		s.pins.expire(now)
		s.pins.mu.Unlock()
		if c.unneeded(s) {
			leaving = append(leaving, s)
		}
	}
	if len(leaving) > 0 {
		c.leaving.Store(&leaving)
	}
}

// EndSlow ends watchers that are too slow: first those that catch up and whose next event is no longer in the event log, then
// the slowest ones until the old events in all other queues are within Config.SlowBytes.
func (c *Cache) EndSlow() {
	var slow []*slowWatcher
	total := 0
	for s := range c.all() {
		slow = append(slow, s.slow()...)
	}
	slices.SortFunc(slow, func(a, b *slowWatcher) int { return cmp.Compare(a.oldest, b.oldest) })
	counted := make(map[*Event]bool)
	for i := len(slow) - 1; i >= 0; i-- { // a large event counts for the last of those that keep it to be ended
		l := slow[i]
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

// Close waits for the goroutines that notify watchers or index labels, and starts no others. Watchers with hooks are not
// notified of later changes.
func (c *Cache) Close() { c.streamShared.close() }
