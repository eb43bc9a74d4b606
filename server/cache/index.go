package cache

import (
	"maps"
	"slices"

	"github.com/rowlock/rowlock/server/cache/packing"
)

// termsOf calls add with each term of an item.
type termsOf func(it *Item, add func(term))

// fieldTerms returns the terms of the fields that have a posting key; keys has "" for the others.
func fieldTerms(keys []string) termsOf {
	return func(it *Item, add func(term)) {
		if it.Err() != nil {
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

// reindex replaces the entries of an older item by those of it. Either may be nil.
func reindex(into *postings, of termsOf, it, old *Item) {
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

// linearSearchMax is up to how many terms a slice is searched. An object may have a hundred thousand labels, and writers wait:
// for more terms a map is made.
const linearSearchMax = 16

// contains returns whether a term is among some.
func contains(some []term) func(term) bool {
	if len(some) <= linearSearchMax {
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
	term  *term
	items []*Item
}

// sameLabels reports whether two items have the same labels. It may return false for equal labels that are expensive to compare.
func sameLabels(a, b *Item) bool {
	of, and := a.body.Load(), b.body.Load()
	return of.packed() && and.packed() && packing.SameLabels(of.common, and.common)
}

// index makes the entries of all items at once: items come in key order, so those of each term need no sorting, and trees
// are filled from left to right. It computes the terms of neighbours once if same is not nil and reports that they are equal. It
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
				r = &run{term: t.clone()} // t may be a view of the item's bytes
				runs[*r.term] = r
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
	slices.SortFunc(sorted, func(a, b *run) int { return a.term.compare(*b.term) })
	into := newPostings()
	for _, r := range sorted {
		into.load(r.term, r.items)
	}
	into.filled()
	return into
}

// never is a stop for index that lets it finish.
func never() bool { return false }

// indexKey returns the posting key of a selectable field, "" if it has no index.
func indexKey(keys []string, field int) string {
	if field >= 0 && field < len(keys) {
		return keys[field]
	}
	return ""
}
