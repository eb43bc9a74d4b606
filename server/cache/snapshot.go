package cache

import (
	"sort"
	"sync"
	"time"
)

// Snapshot is one storage's live items at one revision. O(1), immutable.
type Snapshot struct {
	Revision int64

	resource *resource
	v        *state
}

// pivots lends the items that searches compare with.
var pivots = sync.Pool{New: func() any { return new(Item) }}

func pivot(namespace, name string) *Item {
	p := pivots.Get().(*Item)
	p.Namespace, p.Name = namespace, name
	return p
}

func release(p *Item) {
	p.Namespace, p.Name = "", ""
	pivots.Put(p)
}

// Len counts all items.
func (s *Snapshot) Len() int {
	if s.v == nil {
		return 0
	}
	return s.v.items.Len()
}

// Get finds an item, or nil.
func (s *Snapshot) Get(namespace, name string) *Item {
	if s.v == nil {
		return nil
	}
	return s.v.get(namespace, name)
}

func (v *state) get(namespace, name string) *Item {
	p := pivot(namespace, name)
	it, _ := v.items.Get(p)
	release(p)
	return it
}

// Position is a place in key order: before the first key that is not less. The zero
// Position is the beginning.
type Position struct {
	Namespace, Name string
}

// After is the position behind a key.
func After(namespace, name string) Position { return Position{namespace, name + "\x00"} }

// within moves a position to the beginning of a namespace, if it lies before.
func (p Position) within(namespace string) Position {
	if namespace != "" && p.Namespace < namespace {
		return Position{Namespace: namespace}
	}
	return p
}

func (p Position) reached(it *Item) bool {
	return it.Namespace > p.Namespace || it.Namespace == p.Namespace && it.Name >= p.Name
}

// Ascend calls fn in key order, for one namespace or all (""), after a key
// (exclusive; "" from the start), until fn returns false.
func (s *Snapshot) Ascend(namespace, afterNamespace, afterName string, fn func(*Item) bool) {
	from := Position{afterNamespace, afterName}
	if afterName != "" {
		from = After(afterNamespace, afterName)
	}
	s.ascend(namespace, from, fn)
}

func (s *Snapshot) ascend(namespace string, from Position, fn func(*Item) bool) {
	if s.v != nil {
		ascend(s.v.items, namespace, from, fn)
	}
}

func ascend(all *items, namespace string, from Position, fn func(*Item) bool) {
	from = from.within(namespace)
	p := pivot(from.Namespace, from.Name)
	defer release(p)
	all.Ascend(p, func(it *Item) bool {
		if namespace != "" && it.Namespace != namespace {
			return false
		}
		return fn(it)
	})
}

// Count says how many items of a namespace ("" for all) are at a position or after it.
func (s *Snapshot) Count(namespace string, from Position) int {
	if s.v == nil {
		return 0
	}
	from = from.within(namespace)
	end := s.v.items.Len()
	if namespace != "" {
		end = rank(s.v.items, func(it *Item) bool { return it.Namespace > namespace })
	}
	return max(0, end-rank(s.v.items, from.reached))
}

// rank counts the items before the first for which beyond holds.
func rank(all *items, beyond func(*Item) bool) int {
	return sort.Search(all.Len(), func(i int) bool {
		it, _ := all.GetAt(i)
		return beyond(it)
	})
}

// Sound says that all items can be read, as far as it is known.
func (s *Snapshot) Sound() bool { return s.v != nil && !s.v.corrupt }

// pins are snapshots that are kept for clients that read a list in pages.
type pins struct {
	mu   sync.Mutex
	list []pin
}

type pin struct {
	revision int64
	v        *state
	until    time.Time
}

const (
	maxPins = 32
	pinFor  = 5 * time.Minute
)

// Pin keeps the snapshot addressable by its revision for some minutes.
func (s *Snapshot) Pin() {
	if s.v == nil {
		return
	}
	ps, now := &s.resource.pins, s.resource.now()
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.expire(now)
	for i := range ps.list {
		if ps.list[i].revision == s.Revision {
			ps.list[i].until = now.Add(pinFor)
			return
		}
	}
	if len(ps.list) >= maxPins {
		ps.list = append(ps.list[:0], ps.list[1:]...)
	}
	ps.list = append(ps.list, pin{s.Revision, s.v, now.Add(pinFor)})
}

func (ps *pins) expire(now time.Time) {
	kept := ps.list[:0]
	for _, p := range ps.list {
		if now.Before(p.until) {
			kept = append(kept, p)
		}
	}
	clear(ps.list[len(kept):])
	ps.list = kept
}

func (ps *pins) find(revision int64) *state {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.list {
		if p.revision == revision {
			return p.v
		}
	}
	return nil
}

// rewind makes the state at an earlier revision by undoing recent events, or
// returns nil if they do not reach back so far.
func (s *resource) rewind(revision int64) *state {
	s.mu.Lock()
	if revision < s.recent.floor {
		s.mu.Unlock()
		return nil
	}
	s.trees.Lock()
	items := s.items.Copy()
	s.trees.Unlock()
	undo := append([]*Event(nil), s.recent.after(revision)...)
	s.mu.Unlock()
	for i := len(undo) - 1; i >= 0; i-- {
		if e := undo[i]; e.Prev != nil {
			items.Set(e.Prev)
		} else {
			items.Delete(e.Item)
		}
	}
	return &state{changed: revision, items: items, corrupt: true} // some of them may be
}
