package cache

import (
	"cmp"
	"slices"
)

// lagBytes is how many bytes of events that the event logs no longer hold may be queued,
// for all watchers together.
const lagBytes = 64 << 20

// laggard is a watcher whose queue holds events that the event log no longer does.
type laggard struct {
	w    *Watcher
	at   int64 // its oldest event
	held int
}

// EndSlow ends watchers that have fallen too far behind, and frees what they hold: first
// those that lag and whose next event is no longer in the event log, then the slowest ones
// until the old events in the queues of all others are within lagBytes.
func (c *Cache) EndSlow() {
	var slow []laggard
	total := 0
	c.resources.Range(func(_, v any) bool {
		for _, l := range v.(*resource).laggards() {
			slow = append(slow, l)
			total += l.held
		}
		return true
	})
	slices.SortFunc(slow, func(a, b laggard) int { return cmp.Compare(a.at, b.at) })
	for _, l := range slow {
		if total <= lagBytes {
			return
		}
		l.w.end(ErrSlow)
		total -= l.held
	}
}

// laggards lists the watchers of a resource whose queues hold events that the event log
// does not, and ends those that cannot catch up.
func (s *resource) laggards() (slow []laggard) {
	s.mu.Lock()
	floor := s.recent.floor
	var all []*Watcher
	s.watchers.each(func(w *Watcher) { all = append(all, w) })
	lost := make(map[*Watcher]struct{})
	for w := range s.watchers.lagging {
		if w.lagRevision < floor {
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
			slow = append(slow, laggard{w, w.queue[0].Revision(), w.held})
		}
		w.mu.Unlock()
	}
	return slow
}
