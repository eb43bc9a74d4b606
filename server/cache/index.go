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

// field says that the term is of a field and not of a label.
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

// fieldTerms are those of the fields that have posting keys ("" where there is none).
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

// reenter puts the entries of an item in place of those of an older one. Either may be nil.
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

// lookedThrough is how many terms are looked through for each; of more, which an object may have by the
// hundred thousand, a map is made, as writers wait.
const lookedThrough = 16

// contains tells which terms are among some.
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

// sameLabels says that two items have the same labels, where that costs little to find out.
func sameLabels(a, b *Item) bool {
	of, and := a.body.Load(), b.body.Load()
	return of.packed() && and.packed() && of.common.Text() == and.common.Text()
}

// index makes the entries of all items at once: as items come in key order, those of each term
// need no sorting, and trees are filled from their left to their right. Items that follow each other
// and have the same terms, as same says if it is not nil, are looked at once. It ends early, with
// nil, when stop says so.
func index(all *items, of termsOf, same func(a, b *Item) bool, stop func() bool) *postings {
	runs := map[term]*run{}
	var before *Item
	var had []*run // those of before
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

// never lets index go on to its end.
func never() bool { return false }

// postings are the entries of the fields, or of the labels, of all items of a resource: for each
// term the items that have it. What was made or copied since the last Copy bears the number of the
// owner and is changed where it lies; all else is copied before it is changed.
type postings struct {
	terms *btree.BTreeG[entries]
	owner uint64
}

// owners counts owners, so that no two have the same number.
var owners atomic.Uint64

// entries are the items that have a term, in key order. Equal terms are one in memory, and no
// views of an item's bytes. A label that no two objects share, or a Pod that is alone on its
// node, has no memory of its own.
type entries struct {
	term unique.Handle[term]
	only *Item    // if there is one
	more *several // if there are more
}

// several are in a slice while they are few, and in a tree when they are many.
type several struct {
	owner uint64
	few   []*Item
	many  *items
}

// mostFew is how many items are in a slice. A tree becomes a slice again when it has half as many.
const mostFew = 64

// termsDegree is small because every first write after a Copy copies the nodes on its way. A node
// that is full fills its memory.
const termsDegree = 16

func newPostings() *postings {
	terms := btree.NewBTreeGOptions(byTerm, btree.Options{NoLocks: true, Degree: termsDegree})
	return &postings{terms: terms, owner: owners.Add(1)}
}

func byTerm(a, b entries) bool { return a.term != b.term && compareTerms(a.term, b.term) < 0 }

// Copy has what there is now. It takes O(1), and either may be changed afterwards.
func (p *postings) Copy() *postings {
	p.owner = owners.Add(1)
	return &postings{terms: p.terms.Copy(), owner: owners.Add(1)}
}

// of are the entries of a term.
func (p *postings) of(t term) entries {
	e, _ := p.terms.Get(entries{term: unique.Make(t)})
	return e
}

// set enters an item under a term, in place of one with the same key.
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

// remove takes away the item with the key of one.
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

// own gives entries that may be changed where they lie.
func (p *postings) own(e entries, hint *btree.PathHint) *several {
	if e.more.owner != p.owner {
		e.more = e.more.copy(p.owner)
		p.terms.SetHint(e, hint)
	}
	return e.more
}

// load enters all items of a term that comes after those that are there. It is quick with those
// that come in key order.
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

// filled is for when all terms are loaded.
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

// ascend calls fn in key order with the items whose key is not less than that of one, until fn
// returns false.
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

// find is where in few the item with the key of one is, or belongs.
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

// grown is a copy with room for some more and for what its piece of memory has beside.
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

// shrink makes a slice of a tree that is small.
func (s *several) shrink() {
	if s.many.Len() <= mostFew/2 {
		s.few, s.many = s.many.Items(), nil
	}
}

// treeOf is quick with items that come in key order.
func treeOf(all []*Item) *items {
	t := newItems()
	for _, it := range all {
		t.Load(it)
	}
	return tight(t)
}

// tight is a tree that was filled from its left to its right, in as little memory as it needs.
// Each node that was split had kept an array for twice as many elements, and in it those that its
// neighbour has now, which would not have let go of them when the neighbour did.
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

// compareKeys is byKey for sorting.
func compareKeys(a, b *Item) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

func compareTerms(a, b unique.Handle[term]) int { return a.Value().compare(b.Value()) }

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

// indexKey is the posting key of a selectable field, "" if it has no index.
func indexKey(keys []string, field int) string {
	if field >= 0 && field < len(keys) {
		return keys[field]
	}
	return ""
}
