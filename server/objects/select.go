package objects

import (
	"context"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/cache/metadata"
	"github.com/rowlock/rowlock/server/kinds"
)

// A selector selects objects as the requested version shows them: a field of a custom
// resource may be elsewhere in the stored version, or nowhere, or have a default that
// came later. The cache knows the stored version alone, so these functions convert.
// The cache never calls them itself, as a webhook may have to convert.

// metaOf is the key of what an item's form in a version says of itself.
type metaOf struct{ r *kinds.Resource }

// Selects says whether a filter selects an item as a version shows it.
func (s *Store) Selects(ctx context.Context, r *kinds.Resource, f *cache.Filter, it *cache.Item) (bool, error) {
	if !f.Match(it) {
		return false, nil
	}
	if f.Unsure == nil || it.Corrupt != nil || !f.Unsure(it) {
		return true, nil
	}
	data, err := s.JSON(ctx, r, it) // a failure is not kept
	if err != nil {
		return false, err
	}
	m, err := it.Form(cache.FormKey{Form: cache.FormOther, For: metaOf{r}}, func(*cache.Item) (any, error) {
		return metadata.Scan(data, r.Storage)
	})
	if err != nil {
		return false, err
	}
	return f.Shows(it, m.(*metadata.Meta)), nil
}

// Each calls fn with the items of a collection that a filter selects as a version shows
// them, from a position on, until fn returns false.
func (s *Store) Each(ctx context.Context, r *kinds.Resource, from *Collection, f *cache.Filter, at cache.Position, fn func(*cache.Item) bool) error {
	sel, more := s.selection(ctx, r, f, fn), true
	from.Select(f, at, func(it *cache.Item) bool {
		more = sel.add(it)
		return more
	})
	if more && sel.err == nil {
		sel.settle()
	}
	return sel.err
}

// selection hands on what a filter selects of items that it passed. Those that have to
// be converted to tell are gathered, and converted together.
type selection struct {
	ctx     context.Context // of the one request that it is made for
	s       *Store
	r       *kinds.Resource
	filter  *cache.Filter
	fn      func(*cache.Item) bool // false: no more
	gathers bool
	waiting []*cache.Item // gathered, and not handed on yet
	err     error
}

func (s *Store) selection(ctx context.Context, r *kinds.Resource, f *cache.Filter, fn func(*cache.Item) bool) *selection {
	return &selection{ctx: ctx, s: s, r: r, filter: f, fn: fn, gathers: f.Unsure != nil || r.LoadCallsWebhook()}
}

// add takes an item; false means that no more are wanted.
func (s *selection) add(it *cache.Item) bool {
	if !s.gathers {
		return s.fn(it)
	}
	s.waiting = append(s.waiting, it)
	return len(s.waiting) < convertAtOnce || s.settle()
}

// settle converts the waiting items and hands them on. If the caller wants no more, the others still wait.
func (s *selection) settle() bool {
	if s.err = s.s.Convert(s.ctx, s.r, s.waiting); s.err != nil {
		return false
	}
	for i, it := range s.waiting {
		var ok bool
		ok, s.err = s.s.Selects(s.ctx, s.r, s.filter, it)
		if s.err != nil || ok && !s.fn(it) {
			s.waiting = s.waiting[i+1:]
			return false
		}
	}
	s.waiting = s.waiting[:0]
	return true
}
