package cache

import (
	"sort"
	"sync"
	"time"

	"github.com/tidwall/btree"
)

// Snapshot is one storage's live items at one revision. O(1), immutable.
type Snapshot struct {
	Revision int64

	shelf *shelf
	v     *version
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

func (v *version) get(namespace, name string) *Item {
	p := pivot(namespace, name)
	it, _ := v.items.Get(p)
	release(p)
	return it
}

// Ascend calls fn in key order, for one namespace or all (""), after a key
// (exclusive; "" from the start), until fn returns false.
func (s *Snapshot) Ascend(namespace, afterNamespace, afterName string, fn func(*Item) bool) {
	if s.v == nil {
		return
	}
	if namespace != "" && afterNamespace < namespace {
		afterNamespace, afterName = namespace, ""
	}
	p := pivot(afterNamespace, afterName)
	defer release(p)
	s.v.items.Ascend(p, func(it *Item) bool {
		if namespace != "" && it.Namespace != namespace {
			return false
		}
		if it.Name == afterName && it.Namespace == afterNamespace {
			return true
		}
		return fn(it)
	})
}

// Count says how many items of a namespace ("" for all) come after a key.
func (s *Snapshot) Count(namespace, afterNamespace, afterName string) int {
	if s.v == nil {
		return 0
	}
	if namespace != "" && afterNamespace < namespace {
		afterNamespace, afterName = namespace, ""
	}
	end := s.v.items.Len()
	if namespace != "" {
		end = rank(s.v.items, func(it *Item) bool { return it.Namespace > namespace })
	}
	start := rank(s.v.items, func(it *Item) bool {
		return it.Namespace > afterNamespace || it.Namespace == afterNamespace && it.Name > afterName
	})
	return max(0, end-start)
}

// rank counts the entries before the first for which beyond holds.
func rank[T any](t *btree.BTreeG[T], beyond func(T) bool) int {
	return sort.Search(t.Len(), func(i int) bool {
		e, _ := t.GetAt(i)
		return beyond(e)
	})
}

// Select calls fn in key order with the items that a filter selects, for one
// namespace or all (""), after a key (exclusive), until fn returns false. It goes the
// shortest way: by key, by index, or by looking at all.
func (s *Snapshot) Select(f *Filter, namespace, afterNamespace, afterName string, fn func(*Item) bool) {
	if s.v == nil {
		return
	}
	if f.Everything() {
		s.Ascend(namespace, afterNamespace, afterName, fn)
		return
	}
	if ns, ok := f.pinned(FieldNamespace); ok && namespace == "" {
		namespace = ns
	}
	if name, ok := f.pinned(FieldName); ok && namespace != "" {
		if namespace < afterNamespace || namespace == afterNamespace && name <= afterName {
			return
		}
		if it := s.v.get(namespace, name); it != nil && f.Match(it) {
			fn(it)
		}
		return
	}
	if f.Labels != nil && !s.v.labeled {
		s.shelf.indexLabels()
		if v := s.shelf.published.Load(); v.changed == s.v.changed {
			s.v = v
		}
	}
	if p, ok := s.best(f, namespace); ok {
		s.ascendIndex(p, f, namespace, afterNamespace, afterName, fn)
		return
	}
	s.Ascend(namespace, afterNamespace, afterName, func(it *Item) bool {
		return !f.Match(it) || fn(it)
	})
}

// best picks the index key with the fewest entries, if that beats the plain way.
func (s *Snapshot) best(f *Filter, namespace string) (best posting, ok bool) {
	if s.v.index == nil {
		return best, false
	}
	keys := f.postings(s.shelf, s.v.labeled)
	if len(keys) == 1 && namespace == "" {
		return keys[0], true
	}
	fewest := s.v.items.Len()
	if namespace != "" {
		fewest = s.Count(namespace, "", "")
	}
	for _, k := range keys {
		from := rank(s.v.index, func(p posting) bool {
			return p.key > k.key || p.key == k.key && p.value >= k.value
		})
		to := rank(s.v.index, func(p posting) bool {
			return p.key > k.key || p.key == k.key && p.value > k.value
		})
		if to-from <= fewest {
			best, fewest, ok = k, to-from, true
		}
	}
	return best, ok
}

func (s *Snapshot) ascendIndex(k posting, f *Filter, namespace, afterNamespace, afterName string, fn func(*Item) bool) {
	if namespace != "" && afterNamespace < namespace {
		afterNamespace, afterName = namespace, ""
	}
	p := pivot(afterNamespace, afterName)
	defer release(p)
	k.item = p
	s.v.index.Ascend(k, func(e posting) bool {
		if e.key != k.key || e.value != k.value || namespace != "" && e.item.Namespace != namespace {
			return false
		}
		it := e.item
		if it.Name == afterName && it.Namespace == afterNamespace || !f.Match(it) {
			return true
		}
		return fn(it)
	})
}

// pins are snapshots that are kept for readers that come back for more.
type pins struct {
	mu   sync.Mutex
	list []pin
}

type pin struct {
	revision int64
	v        *version
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
	ps, now := &s.shelf.pins, s.shelf.now()
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

func (ps *pins) find(revision int64) *version {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.list {
		if p.revision == revision {
			return p.v
		}
	}
	return nil
}
