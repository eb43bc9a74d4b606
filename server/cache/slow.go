package cache

import (
	"cmp"
	"slices"
)

// slowBytes is how many bytes of events that the event logs no longer hold may be queued,
// for all watchers together.
const slowBytes = 64 << 20

// slowWatcher is a synced watcher whose queue holds events that the event log no longer does.
type slowWatcher struct {
	w      *Watcher
	oldest int64 // revision of its first event
	held   int
}

// EndSlow ends watchers that are too slow, and frees what they hold: first those that catch up and whose next
// event is no longer in the event log, then the slowest ones until the old events in the queues of all others
// are within slowBytes.
func (c *Cache) EndSlow() {
	var slow []slowWatcher
	total := 0
	c.resources.Range(func(_, v any) bool {
		for _, l := range v.(*resource).slow() {
			slow = append(slow, l)
			total += l.held
		}
		return true
	})
	slices.SortFunc(slow, func(a, b slowWatcher) int { return cmp.Compare(a.oldest, b.oldest) })
	for _, l := range slow {
		if total <= slowBytes {
			return
		}
		l.w.end(ErrSlow)
		total -= l.held
	}
}

// slow lists the watchers of a resource whose queues hold events that the event log does not, and ends those that
// cannot catch up any more.
func (s *resource) slow() (slow []slowWatcher) {
	s.mu.Lock()
	floor := s.recent.floor
	var all []*Watcher
	s.watchers.each(func(w *Watcher) { all = append(all, w) })
	lost := make(map[*Watcher]struct{})
	for w := range s.watchers.behind {
		if w.seenUpTo < floor {
			lost[w] = struct{}{}
		}
	}
	s.mu.Unlock()
	for _, w := range all {
		if _, ok := lost[w]; ok && (w.scope.Log == nil || w.isBegun()) {
			w.end(ErrSlow)
			continue
		}
		w.mu.Lock()
		if n := len(w.queue); n > 0 && w.queue[0].Revision() <= floor {
			slow = append(slow, slowWatcher{w, w.queue[0].Revision(), w.held})
		}
		w.mu.Unlock()
	}
	return slow
}
