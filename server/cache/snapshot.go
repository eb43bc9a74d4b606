package cache

import (
	"sort"
	"sync"
	"time"
	"unique"

	"github.com/tidwall/btree"
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
	if s.v == nil {
		return
	}
	from = from.within(namespace)
	p := pivot(from.Namespace, from.Name)
	defer release(p)
	s.v.items.Ascend(p, func(it *Item) bool {
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

// rank counts the entries before the first for which beyond holds.
func rank[T any](t *btree.BTreeG[T], beyond func(T) bool) int {
	return sort.Search(t.Len(), func(i int) bool {
		e, _ := t.GetAt(i)
		return beyond(e)
	})
}

// Select calls fn in key order with the items that a filter selects, for one
// namespace or all (""), from a position, until fn returns false. It goes the
// shortest way: by key, by index, or by looking at all.
func (s *Snapshot) Select(f *Filter, namespace string, from Position, fn func(*Item) bool) {
	if s.v == nil {
		return
	}
	if f.Everything() {
		s.ascend(namespace, from, fn)
		return
	}
	if ns, ok := f.pinned(FieldNamespace); ok && namespace == "" {
		namespace = ns
	}
	if name, ok := f.pinned(FieldName); ok && namespace != "" {
		if it := s.v.get(namespace, name); it != nil && from.reached(it) && f.Match(it) {
			fn(it)
		}
		return
	}
	if name, ok := f.pinned(FieldName); ok {
		// Only objects of cluster scope have no namespace.
		if it := s.v.get("", name); it != nil {
			if from.reached(it) && f.Match(it) {
				fn(it)
			}
			return
		}
	}
	if f.labeled && s.v.labels == nil {
		s.resource.indexLabels()
	}
	if p, ok := s.best(f, namespace); ok {
		s.ascendIndex(p, f, namespace, from, fn)
		return
	}
	m := &matcher{Filter: f}
	s.ascend(namespace, from, func(it *Item) bool {
		return !m.match(it) || fn(it)
	})
}

// Sound says that all items can be read, as far as it is known.
func (s *Snapshot) Sound() bool { return s.v != nil && !s.v.corrupt }

// postings is the index that a term is of.
func (v *state) postings(of term) *postings {
	if of.field() {
		return v.index
	}
	return v.labels
}

// best picks the index key with the fewest entries, if that beats the plain way.
func (s *Snapshot) best(f *Filter, namespace string) (best term, ok bool) {
	if s.v.corrupt { // indexes do not have what cannot be read
		return best, false
	}
	keys := f.postings(s.resource, s.v.index != nil, s.v.labels != nil)
	if len(keys) == 1 && namespace == "" {
		return keys[0], true
	}
	for _, k := range keys {
		if s.few(k) {
			return k, true
		}
	}
	fewest := s.v.items.Len()
	if namespace != "" {
		fewest = s.Count(namespace, Position{})
	}
	for _, k := range keys {
		index := s.v.postings(k)
		from := rank(index, func(p posting) bool {
			return p.term.Value().compare(k) >= 0
		})
		to := rank(index, func(p posting) bool {
			return p.term.Value().compare(k) > 0
		})
		if to-from <= fewest {
			best, fewest, ok = k, to-from, true
		}
	}
	return best, ok
}

// fewEntries is how many entries of an index key are looked at sooner than counted.
const fewEntries = 32

// few says that an index key has so few entries that no other way can be much shorter.
func (s *Snapshot) few(k term) bool {
	first := posting{unique.Make(k), pivot("", "")}
	defer release(first.item)
	n := 0
	s.v.postings(k).Ascend(first, func(e posting) bool {
		if e.term != first.term {
			return false
		}
		n++
		return n <= fewEntries
	})
	return n <= fewEntries
}

func (s *Snapshot) ascendIndex(k term, f *Filter, namespace string, from Position, fn func(*Item) bool) {
	from = from.within(namespace)
	first := posting{unique.Make(k), pivot(from.Namespace, from.Name)}
	defer release(first.item)
	all := len(f.Fields)+len(f.terms) == 1 && f.Unsure == nil // the entries are what the filter asks for
	s.v.postings(k).Ascend(first, func(e posting) bool {
		if e.term != first.term || namespace != "" && e.item.Namespace != namespace {
			return false
		}
		return !all && !f.Match(e.item) || fn(e.item)
	})
}

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
	items := s.items.Copy()
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
