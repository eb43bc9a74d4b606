package cache

import (
	"maps"
	"slices"
	"strings"
	"unique"
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
