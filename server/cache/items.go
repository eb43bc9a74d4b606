package cache

import (
	"strings"
	"sync"

	"github.com/tidwall/btree"
)

// treeOf makes a tree of items. It is quick if they are in key order.
func treeOf(all []*Item) *items {
	t := newItems()
	for _, it := range all {
		t.Load(it)
	}
	return compactTree(t)
}

// compactTree returns a tree that was filled from left to right, in as little memory as it needs. A node that was split keeps an
// array for twice as many elements, and in it those of its neighbour, which would keep them alive after the neighbour has
// dropped them.
func compactTree[T any](t *btree.BTreeG[T]) *btree.BTreeG[T] {
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

// neighbor returns the item of a key, or else one next to its place, if that is in the same namespace; nil: there is none.
func neighbor(all *items, namespace, name string) (near *Item) {
	p := pivot(namespace, name)
	defer release(p)
	look := func(it *Item) bool {
		if it.Namespace == namespace {
			near = it
		}
		return false
	}
	if all.Ascend(p, look); near == nil {
		all.Descend(p, look)
	}
	return near
}
