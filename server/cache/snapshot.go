package cache

import (
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/btree"
)

// Snapshot is the live items of one storage at one revision. It costs O(1) and never changes.
type Snapshot struct {
	Revision int64

	v *state
}

// readers is shared by the snapshots of one storage.
type readers struct {
	pins       pins
	clock      func() time.Time
	keys       atomic.Pointer[[]string] // posting keys of the selectable fields, "" where there is no index
	wantLabels func()                   // starts to index labels, unless they are indexed
}

// state is an immutable state of a resource.
type state struct {
	changed int64 // the state is valid from this revision to the next change
	removed int64 // no item was deleted since
	items   *btree.BTreeG[*Item]
	index   *postings // of fields; nil if none is indexed
	labels  *postings // nil if not indexed, or not yet
	corrupt bool      // some items may be corrupt, or not be in index
	keys    *[]string // posting keys of the fields in index
	of      *readers
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

// Position is a place in key order, before the first key that is not less. The zero Position is the beginning.
type Position struct {
	Namespace, Name string
}

// After returns the position right after a key.
func After(namespace, name string) Position { return Position{namespace, name + "\x00"} }

// within moves a position that is before a namespace to its beginning.
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

// Count counts the items of a namespace ("" for all) from a position on.
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

// Intact reports whether no item is known to be corrupt.
func (s *Snapshot) Intact() bool { return s.v != nil && !s.v.corrupt }

// pins are states that the cache retains for clients that read a list in pages.
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
	ps, now := &s.v.of.pins, s.v.of.clock()
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

// Selection is the items of a snapshot that a filter selects, in one namespace or all. Snapshot.Selection decides how to find
// them: by key, by an index, or by a scan. A Selection may be read in parts, by one reader at a time. It keeps only the part
// of the snapshot alive that it reads: the tree of all items, or the items of one term.
type Selection struct {
	matcher   matcher
	namespace string
	only      *Item   // the only candidate, if the filter fixes its key
	entries   entries // else the candidates, of one term
	all       bool    // all entries are selected
	items     *items  // else all items; nil: nothing is selected
}

// Select calls fn in key order with the items that a filter selects, for one
// namespace or all (""), from a position, until fn returns false.
func (s *Snapshot) Select(f *Filter, namespace string, from Position, fn func(*Item) bool) {
	s.Selection(f, namespace).Ascend(from, fn)
}

// Selection returns the items that a filter selects, for one namespace or all ("").
func (s *Snapshot) Selection(f *Filter, namespace string) *Selection {
	out := &Selection{matcher: matcher{Filter: f}, namespace: namespace}
	if s.v == nil {
		return out
	}
	if f.Everything() {
		out.items = s.v.items
		return out
	}
	if ns, ok := f.pinned(FieldNamespace); ok && namespace == "" {
		out.namespace = ns
	}
	if name, ok := f.pinned(FieldName); ok {
		// Without a namespace the key is that of an object of cluster scope, if there is one.
		it := s.v.get(out.namespace, name)
		if it != nil || out.namespace != "" {
			out.only = it
			return out
		}
	}
	if f.labeled && s.v.labels == nil {
		s.v.of.wantLabels()
	}
	if e, ok := s.best(f, out.namespace); ok {
		out.entries = e
		out.all = len(f.Fields)+len(f.terms) == 1 && !f.many.labels && f.Unsure == nil && f.Shard == nil
		return out
	}
	out.items = s.v.items
	return out
}

// Ascend calls fn in key order with the selected items from a position on, until fn returns false.
func (s *Selection) Ascend(from Position, fn func(*Item) bool) {
	switch {
	case s.only != nil:
		if from.reached(s.only) && s.matcher.Match(s.only) {
			fn(s.only)
		}
	case s.entries.len() > 0:
		s.ascendEntries(from, fn)
	case s.items == nil:
	case s.matcher.Everything():
		ascend(s.items, s.namespace, from, fn)
	default:
		ascend(s.items, s.namespace, from, func(it *Item) bool { return !s.matcher.match(it) || fn(it) })
	}
}

func (s *Selection) ascendEntries(from Position, fn func(*Item) bool) {
	from = from.within(s.namespace)
	p := pivot(from.Namespace, from.Name)
	defer release(p)
	s.entries.ascend(p, func(it *Item) bool {
		if s.namespace != "" && it.Namespace != s.namespace {
			return false
		}
		return !s.all && !s.matcher.Match(it) || fn(it)
	})
}

// entries returns the entries of a term in the index of fields or of labels.
func (v *state) entries(of term) entries {
	if of.field() {
		return v.index.of(of)
	}
	return v.labels.of(of)
}

// fewEntries is up to how many entries are read without counting the items of the namespace.
const fewEntries = 32

// best returns the shortest entries of the filter's index keys, if reading them is cheaper than a scan.
func (s *Snapshot) best(f *Filter, namespace string) (best entries, ok bool) {
	if s.v.corrupt { // such items are in no index
		return best, false
	}
	var keys []string
	if s.v.index != nil && s.v.keys == s.v.of.keys.Load() { // else the index is of other fields than the filter
		keys = *s.v.keys
	}
	for _, k := range f.postings(keys, s.v.labels != nil) {
		if e := s.v.entries(k); !ok || e.len() < best.len() {
			best, ok = e, true
		}
	}
	if ok && namespace != "" && best.len() > fewEntries {
		ok = best.len() <= s.Count(namespace, Position{})
	}
	return best, ok
}
