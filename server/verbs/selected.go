package verbs

import (
	"context"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/vault"
)

// What a selector means is for the version that is asked for to say: a field of a
// custom resource may be elsewhere in the stored one, or nowhere, or have a default
// that came later. Memory knows what is stored; here is who looks closer. Nothing of
// this runs where events are handed out, as a webhook may be asked.

// metaOf is the key of what an item's form in a version says of itself.
type metaOf struct{ r *kinds.Resource }

// selects says whether a filter selects an item as the view shows it.
func (v *view) selects(f *cache.Filter, it *cache.Item) (bool, error) {
	if !f.Match(it) {
		return false, nil
	}
	if f.Unsure == nil || it.Corrupt != nil || !f.Unsure(it) {
		return true, nil
	}
	data, err := v.json(it) // a failure is not kept
	if err != nil {
		return false, err
	}
	m, err := it.Form(cache.FormKey{Form: cache.FormOther, For: metaOf{v.r}}, func(*cache.Item) (any, error) {
		return cache.ScanMeta(data, v.r.Storage)
	})
	if err != nil {
		return false, err
	}
	return f.Shows(it, m.(*cache.Meta)), nil
}

// sieve hands on what a filter selects of items that it passed. Those that have to be
// converted to tell are converted together.
type sieve struct {
	view    *view
	filter  *cache.Filter
	fn      func(*cache.Item) bool // false: no more
	waits   bool                   // items are gathered first
	waiting []*cache.Item          // not handed on yet
	err     error
}

func (v *view) sieve(f *cache.Filter, fn func(*cache.Item) bool) *sieve {
	return &sieve{view: v, filter: f, fn: fn, waits: f.Unsure != nil || v.r.Custom && v.r.Schema.Asks()}
}

// add takes an item; false means that no more are wanted.
func (s *sieve) add(ctx context.Context, it *cache.Item) bool {
	if !s.waits {
		return s.fn(it)
	}
	s.waiting = append(s.waiting, it)
	return len(s.waiting) < convertAtOnce || s.settle(ctx)
}

// settle hands on what waits. What is not wanted any more still waits.
func (s *sieve) settle(ctx context.Context) bool {
	if s.err = s.view.convertMany(ctx, s.waiting); s.err != nil {
		return false
	}
	for i, it := range s.waiting {
		var ok bool
		ok, s.err = s.view.selects(s.filter, it)
		if s.err != nil || ok && !s.fn(it) {
			s.waiting = s.waiting[i+1:]
			return false
		}
	}
	s.waiting = s.waiting[:0]
	return true
}

// each calls fn with the items that a filter selects, from a position, until it returns
// false.
func (v *view) each(ctx context.Context, from *vault.View, f *cache.Filter, at cache.Position, fn func(*cache.Item) bool) error {
	s, more := v.sieve(f, fn), true
	from.Select(f, at, func(it *cache.Item) bool {
		more = s.add(ctx, it)
		return more
	})
	if more && s.err == nil {
		s.settle(ctx)
	}
	return s.err
}

// settle decides what the watcher sees of an event that needs a closer look.
func (s *stream) settle(d cache.Delivery) (cache.Delivery, bool, error) {
	return d.Settle(func(it *cache.Item) (bool, error) { return s.v.selects(s.o.filter, it) })
}
