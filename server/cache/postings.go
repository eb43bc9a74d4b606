package cache

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unique"

	"github.com/tidwall/btree"
)

// term is a label, or a field under "\x00" and the field's name.
type term struct{ key, value string }

// field reports whether the term is of a field, not of a label.
func (t term) field() bool { return strings.HasPrefix(t.key, fieldTerm) }

const fieldTerm = "\x00"

// clone returns a term with memory of its own. There are few keys, which terms share.
func (t term) clone() *term { return &term{unique.Make(t.key).Value(), strings.Clone(t.value)} }

// termPivots are terms that searches compare with.
var termPivots = sync.Pool{New: func() any { return new(term) }}

func termPivot(t term) *term {
	p := termPivots.Get().(*term)
	*p = t
	return p
}

func releaseTerm(p *term) {
	*p = term{}
	termPivots.Put(p)
}

// compare orders terms by key, then by value.
func (t term) compare(u term) int {
	if c := strings.Compare(t.key, u.key); c != 0 {
		return c
	}
	return strings.Compare(t.value, u.value)
}

// postings are the index of the fields, or of the labels, of all items of a resource: for each term the items that have it.
// Entries made or copied since the last Copy bear the number of the owner and are changed in place; others are copied before
// they are changed.
type postings struct {
	terms *btree.BTreeG[entries]
	owner uint64
}

// owners counts owners, so that each has its own number.
var owners atomic.Uint64

// entries are the items that have a term, in key order. The term is no view of an item's bytes. A term of a single item, such
// as a label that identifies a Pod, needs no further memory.
type entries struct {
	term *term
	only *Item    // if there is just one
	more *itemSet // if there are more
}

// itemSet holds items in a slice while they are few, and in a tree when they are many.
type itemSet struct {
	owner uint64
	few   []*Item
	many  *items
}

// maxSliceItems is the most items of a slice. A tree with half as many becomes a slice again.
const maxSliceItems = 64

// termsDegree is small because the first write after a Copy copies the nodes on its path. A full node fills its size class.
const termsDegree = 16

func newPostings() *postings {
	terms := btree.NewBTreeGOptions(byTerm, btree.Options{NoLocks: true, Degree: termsDegree})
	return &postings{terms: terms, owner: owners.Add(1)}
}

func byTerm(a, b entries) bool { return a.term != b.term && a.term.compare(*b.term) < 0 }

// Copy returns a copy in O(1). Both may be changed afterwards.
func (p *postings) Copy() *postings {
	p.owner = owners.Add(1)
	return &postings{terms: p.terms.Copy(), owner: owners.Add(1)}
}

// of returns the entries of a term.
func (p *postings) of(t term) entries {
	pivot := termPivot(t)
	defer releaseTerm(pivot)
	e, _ := p.terms.Get(entries{term: pivot})
	return e
}

// set adds an item to a term, in place of one with the same key.
func (p *postings) set(t term, it *Item) {
	var hint btree.PathHint
	pivot := termPivot(t)
	defer releaseTerm(pivot)
	e, ok := p.terms.GetHint(entries{term: pivot}, &hint)
	if !ok {
		e.term = &term{p.keyOf(pivot), strings.Clone(t.value)}
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

// keyOf returns the key of a term that is not in the index, which shares it with a term next to it. Unlike clone it does not wait for a
// garbage collection, for which readers and all writers would wait, too.
func (p *postings) keyOf(t *term) string {
	key := ""
	look := func(e entries) bool {
		if e.term.key == t.key {
			key = e.term.key
		}
		return false
	}
	if p.terms.Ascend(entries{term: t}, look); key == "" {
		p.terms.Descend(entries{term: t}, look)
	}
	if key == "" {
		key = strings.Clone(t.key)
	}
	return key
}

// remove removes the item with the key of it from a term.
func (p *postings) remove(t term, it *Item) {
	var hint btree.PathHint
	pivot := termPivot(t)
	defer releaseTerm(pivot)
	e, ok := p.terms.GetHint(entries{term: pivot}, &hint)
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
func (p *postings) own(e entries, hint *btree.PathHint) *itemSet {
	if e.more.owner != p.owner {
		e.more = e.more.copy(p.owner)
		p.terms.SetHint(e, hint)
	}
	return e.more
}

// load adds all items of a term that is greater than all loaded before. It is quick if the items are in key order.
func (p *postings) load(of *term, all []*Item) {
	p.terms.Load(p.entriesOf(of, all))
}

func (p *postings) entriesOf(of *term, all []*Item) entries {
	if len(all) == 1 {
		return entries{term: of, only: all[0]}
	}
	s := &itemSet{owner: p.owner}
	if len(all) > maxSliceItems {
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
func (p *postings) filled() { p.terms = compactTree(p.terms) }

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

func (s *itemSet) len() int {
	if s.many != nil {
		return s.many.Len()
	}
	return len(s.few)
}

// find returns where in few the item with the key of it is, or belongs.
func (s *itemSet) find(it *Item) (at int, found bool) {
	if n := len(s.few); n == 0 || byKey(s.few[n-1], it) {
		return n, false
	}
	return slices.BinarySearchFunc(s.few, it, compareKeys)
}

func (s *itemSet) copy(owner uint64) *itemSet {
	if s.many != nil {
		return &itemSet{owner: owner, many: s.many.Copy()}
	}
	return &itemSet{owner: owner, few: grown(s.few, 1)}
}

// grown returns a copy with room for by more items, and for as many as the size class holds.
func grown(few []*Item, by int) []*Item {
	return append(slices.Grow([]*Item(nil), len(few)+by), few...)
}

func (s *itemSet) set(it *Item) {
	if s.many != nil {
		s.many.Set(it)
		return
	}
	at, found := s.find(it)
	switch n := len(s.few); {
	case found:
		s.few[at] = it
	case n == maxSliceItems:
		s.few, s.many = nil, treeOf(s.few)
		s.many.Set(it)
	default:
		if n == cap(s.few) {
			s.few = grown(s.few, 1+n/8)
		}
		s.few = slices.Insert(s.few, at, it)
	}
}

func (s *itemSet) remove(it *Item) {
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
func (s *itemSet) shrink() {
	if s.many.Len() <= maxSliceItems/2 {
		s.few, s.many = s.many.Items(), nil
	}
}
