package objects

import (
	"iter"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
)

// Page is what a list found: everything, or a page of it.
type Page struct {
	Revision  int64
	Items     []*cache.Item // in key order: all, or those that come first
	Rest      *Rest         // what comes behind Items, if it was not looked at yet; else nil
	Continue  string        // the token of the next page; "" for none
	Remaining int64         // how many items come after the page; -1 where it is not told
	Sound     bool          // it is known that none of the items is corrupt
}

// Meta is the list's metadata.
func (p *Page) Meta() *metav1.ListMeta {
	m := &metav1.ListMeta{ResourceVersion: strconv.FormatInt(p.Revision, 10), Continue: p.Continue}
	if p.Remaining >= 0 {
		m.RemainingItemCount = &p.Remaining
	}
	return m
}

const (
	// firstItems is how many items of a long list are looked for before it is answered. One more than
	// a form weighs, so that a list of those alone is whole.
	firstItems = 4096 + 1
	// nextItems is how many are looked for at once behind them.
	nextItems = 1024
)

// Rest is the end of a long list in which nothing can fail any more: all of it can be read, and is
// shown as it is stored. It holds one tree of the state that the list is of, and what that is made of.
type Rest struct {
	of    *cache.Selection
	from  cache.Position
	about int // how many items there are, as far as the first ones tell
}

// some appends the next items from a position on, and says where those behind them begin. Fewer
// than most are the last.
func (r *Rest) some(to []*cache.Item, from cache.Position, most int) ([]*cache.Item, cache.Position) {
	end := len(to) + most
	r.of.Ascend(from, func(it *cache.Item) bool {
		to = append(to, it)
		return len(to) < end
	})
	if len(to) > 0 {
		last := to[len(to)-1]
		from = cache.After(last.Namespace, last.Name)
	}
	return to, from
}

// About is how many items there are; of a rest an estimate.
func (p *Page) About() int {
	if p.Rest == nil {
		return len(p.Items)
	}
	return len(p.Items) + p.Rest.about
}

// Gather has the rest among the items.
func (p *Page) Gather() {
	r := p.Rest
	if r == nil {
		return
	}
	p.Items, p.Rest = slices.Grow(p.Items, r.about), nil
	r.of.Ascend(r.from, func(it *cache.Item) bool {
		p.Items = append(p.Items, it)
		return true
	})
}

// Parts are all items, in parts. Each is good until the next one is asked for.
func (p *Page) Parts() iter.Seq[[]*cache.Item] {
	return func(yield func([]*cache.Item) bool) {
		if !yield(p.Items) || p.Rest == nil {
			return
		}
		part, at := make([]*cache.Item, 0, nextItems), p.Rest.from
		for {
			part, at = p.Rest.some(part[:0], at, nextItems)
			if len(part) > 0 && !yield(part) || len(part) < nextItems {
				return
			}
		}
	}
}
