package objects

import (
	"context"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/cache/metadata"
	"github.com/rowlock/rowlock/server/kinds"
)

// A selector applies to objects in the requested version: in the stored version, a field of a custom resource
// may have another place, or none, or a default that was added later. The cache has only the stored version,
// so these functions convert. The cache never calls them itself, because the conversion may need a webhook.

// metaOf is the key of the fields of an item in a served version that selectors read.
type metaOf struct{ r *kinds.Resource }

// Selects reports whether a filter selects an item in the version of r.
func (s *Store) Selects(ctx context.Context, r *kinds.Resource, f *cache.Filter, it *cache.Item) (bool, error) {
	if !f.Match(it) {
		return false, nil
	}
	if f.Unsure == nil || it.Err() != nil || !f.Unsure(it) {
		return true, nil
	}
	data, err := s.JSON(ctx, r, it) // a failure is not cached
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

// Each calls fn with the items of a collection that a filter selects in the version of r, from a position on,
// until fn returns false.
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

// selection passes the selected ones of its items to fn. It collects items that need conversion, and converts
// them together.
type selection struct {
	ctx     context.Context // of the one request
	s       *Store
	r       *kinds.Resource
	filter  *cache.Filter
	fn      func(*cache.Item) bool // false: stop
	gathers bool
	waiting []*cache.Item // collected, and not yet passed on
	err     error
}

func (s *Store) selection(ctx context.Context, r *kinds.Resource, f *cache.Filter, fn func(*cache.Item) bool) *selection {
	return &selection{ctx: ctx, s: s, r: r, filter: f, fn: fn, gathers: f.Unsure != nil || r.LoadCallsWebhook()}
}

// add adds an item; false: no more are wanted.
func (s *selection) add(it *cache.Item) bool {
	if !s.gathers {
		return s.fn(it)
	}
	s.waiting = append(s.waiting, it)
	return len(s.waiting) < convertAtOnce || s.settle()
}

// settle converts the collected items and passes them on. If fn wants no more, the others stay.
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
