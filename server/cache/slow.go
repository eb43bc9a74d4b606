package cache

import (
	"cmp"
	"slices"
)

// lagBytes is how much of what memory has forgotten may still wait for watchers, for
// all of them together.
const lagBytes = 64 << 20

// laggard is a watcher that keeps events which nobody else does.
type laggard struct {
	w    *Watcher
	at   int64 // its oldest event
	held int
}

// EndSlow ends watchers that have fallen too far behind, so that what they hold is free:
// those for whom the recent events do not reach back any more, and then, as long as
// others keep too much alive that is not recent, the slowest.
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

// laggards lists the watchers of a resource that keep what the event log does not, and ends those
// that cannot catch up.
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
