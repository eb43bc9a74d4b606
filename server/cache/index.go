package cache

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unique"

	"github.com/tidwall/btree"
)

// term is a label, or a field under "\x00" and the field's name.
type term struct{ key, value string }

// field says that the term is of a field, not of a label.
func (t term) field() bool { return strings.HasPrefix(t.key, fieldTerm) }

const fieldTerm = "\x00"

// compare orders terms by key, then by value.
func (t term) compare(u term) int {
	if c := strings.Compare(t.key, u.key); c != 0 {
		return c
	}
	return strings.Compare(t.value, u.value)
}

// termsOf calls add with each term of an item.
type termsOf func(it *Item, add func(term))

// fieldTerms are the terms of the fields that have a posting key; keys has "" for the others.
func fieldTerms(keys []string) termsOf {
	return func(it *Item, add func(term)) {
		if it.Corrupt != nil {
			return
		}
		fields := it.fieldMeta().Fields
		for i, key := range keys {
			if key != "" && i < len(fields) {
				add(term{key, fields[i]})
			}
		}
	}
}

func labelTerms(it *Item, add func(term)) {
	if b := it.body.Load(); b.packed() {
		b.common.Each(func(k, v string) bool { add(term{k, v}); return true })
		return
	}
	for k, v := range it.Meta().Labels {
		add(term{k, v})
	}
}

// reenter replaces the entries of an older item by those of it. Either may be nil.
func reenter(into *postings, of termsOf, it, old *Item) {
	var has []term
	if it != nil {
		of(it, func(t term) { has = append(has, t) })
	}
	if old != nil {
		keeps := contains(has)
		of(old, func(t term) {
			if !keeps(t) {
				into.remove(t, old)
			}
		})
	}
	for _, t := range has {
		into.set(t, it)
	}
}

// lookedThrough is up to how many terms a slice is searched. An object may have a hundred thousand labels, and writers wait:
// for more terms a map is made.
const lookedThrough = 16

// contains returns whether a term is among some.
func contains(some []term) func(term) bool {
	if len(some) <= lookedThrough {
		return func(t term) bool { return slices.Contains(some, t) }
	}
	all := make(map[term]struct{}, len(some))
	for _, t := range some {
		all[t] = struct{}{}
	}
	return func(t term) bool { _, ok := all[t]; return ok }
}

// run is the items of one term, in key order.
type run struct {
	term  unique.Handle[term]
	items []*Item
}

// sameLabels says that two items have the same labels, as far as that is cheap to know.
func sameLabels(a, b *Item) bool {
	of, and := a.body.Load(), b.body.Load()
	return of.packed() && and.packed() && of.common.Text() == and.common.Text()
}

// index makes the entries of all items at once: items come in key order, so those of each term need no sorting, and trees
// are filled from left to right. It computes the terms of neighbours once if same, unless nil, says that they are equal. It
// returns nil when stop returns true.
func index(all *items, of termsOf, same func(a, b *Item) bool, stop func() bool) *postings {
	runs := map[term]*run{}
	var before *Item
	var had []*run // of the terms of before
	looked, stopped := 0, false
	all.Scan(func(it *Item) bool {
		if looked++; looked%1024 == 0 && stop() {
			stopped = true
			return false
		}
		if before != nil && same != nil && same(before, it) {
			for _, r := range had {
				r.items = append(r.items, it)
			}
			return true
		}
		before, had = it, had[:0]
		of(it, func(t term) {
			r := runs[t]
			if r == nil {
				r = &run{term: unique.Make(t)}
				runs[r.term.Value()] = r // t may be a view of the item's bytes
			}
			r.items = append(r.items, it)
			had = append(had, r)
		})
		return true
	})
	if stopped {
		return nil
	}
	sorted := slices.Collect(maps.Values(runs))
	slices.SortFunc(sorted, func(a, b *run) int { return compareTerms(a.term, b.term) })
	into := newPostings()
	for _, r := range sorted {
		into.load(r.term, r.items)
	}
	into.filled()
	return into
}

// never is a stop for index that lets it finish.
func never() bool { return false }

// postings are the index of the fields, or of the labels, of all items of a resource: for each term the items that have it.
// Entries made or copied since the last Copy bear the number of the owner and are changed in place; others are copied before
// they are changed.
type postings struct {
	terms *btree.BTreeG[entries]
	owner uint64
}

// owners counts owners, so that each has its own number.
var owners atomic.Uint64

// entries are the items that have a term, in key order. Equal terms share memory, and are no views of an item's bytes. A term
// of a single item, such as a label that identifies a Pod, needs no further memory.
type entries struct {
	term unique.Handle[term]
	only *Item    // if there is just one
	more *several // if there are more
}

// several are items in a slice while they are few, and in a tree when they are many.
type several struct {
	owner uint64
	few   []*Item
	many  *items
}

// mostFew is the most items of a slice. A tree with half as many becomes a slice again.
const mostFew = 64

// termsDegree is small because the first write after a Copy copies the nodes on its path. A full node fills its size class.
const termsDegree = 16

func newPostings() *postings {
	terms := btree.NewBTreeGOptions(byTerm, btree.Options{NoLocks: true, Degree: termsDegree})
	return &postings{terms: terms, owner: owners.Add(1)}
}

func byTerm(a, b entries) bool { return a.term != b.term && compareTerms(a.term, b.term) < 0 }

// Copy returns a copy in O(1). Both may be changed afterwards.
func (p *postings) Copy() *postings {
	p.owner = owners.Add(1)
	return &postings{terms: p.terms.Copy(), owner: owners.Add(1)}
}

// of are the entries of a term.
func (p *postings) of(t term) entries {
	e, _ := p.terms.Get(entries{term: unique.Make(t)})
	return e
}

// set adds an item to a term, in place of one with the same key.
func (p *postings) set(t term, it *Item) {
	var hint btree.PathHint
	e := entries{term: unique.Make(t)}
	if had, ok := p.terms.GetHint(e, &hint); ok {
		e = had
	}
	switch {
	case e.more != nil:
		p.own(e, &hint).set(it)
		return
	case e.only == nil || compareKeys(e.only, it) == 0:
		e.only = it
	default:
		e = p.entriesOf(e.term, []*Item{e.only, it})
	}
	p.terms.SetHint(e, &hint)
}

// remove removes the item with the key of it from a term.
func (p *postings) remove(t term, it *Item) {
	var hint btree.PathHint
	e, ok := p.terms.GetHint(entries{term: unique.Make(t)}, &hint)
	switch {
	case !ok:
	case e.more == nil:
		if compareKeys(e.only, it) == 0 {
			p.terms.DeleteHint(e, &hint)
		}
	default:
		s := p.own(e, &hint)
		if s.remove(it); s.len() == 1 {
			p.terms.SetHint(entries{term: e.term, only: s.few[0]}, &hint)
		}
	}
}

// own returns entries that may be changed in place.
func (p *postings) own(e entries, hint *btree.PathHint) *several {
	if e.more.owner != p.owner {
		e.more = e.more.copy(p.owner)
		p.terms.SetHint(e, hint)
	}
	return e.more
}

// load adds all items of a term that is greater than all loaded before. It is quick if the items are in key order.
func (p *postings) load(of unique.Handle[term], all []*Item) {
	p.terms.Load(p.entriesOf(of, all))
}

func (p *postings) entriesOf(of unique.Handle[term], all []*Item) entries {
	if len(all) == 1 {
		return entries{term: of, only: all[0]}
	}
	s := &several{owner: p.owner}
	if len(all) > mostFew {
		s.many = treeOf(all)
		s.shrink()
	} else {
		s.few = make([]*Item, 0, len(all))
		for _, it := range all {
			s.set(it)
		}
	}
	if s.len() == 1 { // a key came more than once
		return entries{term: of, only: s.few[0]}
	}
	return entries{term: of, more: s}
}

// filled must be called when all terms are loaded.
func (p *postings) filled() { p.terms = tight(p.terms) }

func (e entries) len() int {
	switch {
	case e.more != nil:
		return e.more.len()
	case e.only != nil:
		return 1
	}
	return 0
}

// ascend calls fn in key order with the items from the key of from on, until fn returns false.
func (e entries) ascend(from *Item, fn func(*Item) bool) {
	switch s := e.more; {
	case s == nil:
		if e.only != nil && !byKey(e.only, from) {
			fn(e.only)
		}
	case s.many != nil:
		s.many.Ascend(from, fn)
	default:
		at, _ := s.find(from)
		for _, it := range s.few[at:] {
			if !fn(it) {
				return
			}
		}
	}
}

func (s *several) len() int {
	if s.many != nil {
		return s.many.Len()
	}
	return len(s.few)
}

// find returns where in few the item with the key of it is, or belongs.
func (s *several) find(it *Item) (at int, found bool) {
	if n := len(s.few); n == 0 || byKey(s.few[n-1], it) {
		return n, false
	}
	return slices.BinarySearchFunc(s.few, it, compareKeys)
}

func (s *several) copy(owner uint64) *several {
	if s.many != nil {
		return &several{owner: owner, many: s.many.Copy()}
	}
	return &several{owner: owner, few: grown(s.few, 1)}
}

// grown returns a copy with room for by more items, and for as many as the size class holds.
func grown(few []*Item, by int) []*Item {
	return append(slices.Grow([]*Item(nil), len(few)+by), few...)
}

func (s *several) set(it *Item) {
	if s.many != nil {
		s.many.Set(it)
		return
	}
	at, found := s.find(it)
	switch n := len(s.few); {
	case found:
		s.few[at] = it
	case n == mostFew:
		s.few, s.many = nil, treeOf(s.few)
		s.many.Set(it)
	default:
		if n == cap(s.few) {
			s.few = grown(s.few, 1+n/8)
		}
		s.few = slices.Insert(s.few, at, it)
	}
}

func (s *several) remove(it *Item) {
	if s.many != nil {
		s.many.Delete(it)
		s.shrink()
		return
	}
	if at, found := s.find(it); found {
		s.few = slices.Delete(s.few, at, at+1)
	}
	if 2*len(s.few) < cap(s.few) {
		s.few = grown(s.few, 0)
	}
}

// shrink turns a small tree into a slice.
func (s *several) shrink() {
	if s.many.Len() <= mostFew/2 {
		s.few, s.many = s.many.Items(), nil
	}
}

// treeOf makes a tree of items. It is quick if they are in key order.
func treeOf(all []*Item) *items {
	t := newItems()
	for _, it := range all {
		t.Load(it)
	}
	return tight(t)
}

// tight returns a tree that was filled from left to right, in as little memory as it needs. A node that was split keeps an
// array for twice as many elements, and in it those of its neighbour, which would keep them alive after the neighbour has
// dropped them.
func tight[T any](t *btree.BTreeG[T]) *btree.BTreeG[T] {
	t = t.Copy()
	t.WalkMut(func([]T) bool { return true })
	return t
}

// items are the items of a storage, or those of a term, in key order.
type items = btree.BTreeG[*Item]

func newItems() *items { return btree.NewBTreeGOptions(byKey, btree.Options{NoLocks: true}) }

func byKey(a, b *Item) bool {
	if a.Namespace != b.Namespace {
		return a.Namespace < b.Namespace
	}
	return a.Name < b.Name
}

// compareKeys compares as byKey does, for sorting.
func compareKeys(a, b *Item) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

func compareTerms(a, b unique.Handle[term]) int { return a.Value().compare(b.Value()) }

// pivots are items that searches compare with.
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

// indexKey is the posting key of a selectable field, "" if it has no index.
func indexKey(keys []string, field int) string {
	if field >= 0 && field < len(keys) {
		return keys[field]
	}
	return ""
}
