package objects

import (
	"context"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/status"
)

// Clean reports whether an item's bytes are, unchanged, an object of r's version. Of a custom resource whose definition has just
// changed, an object may have been written by the other definition than that of r.
func Clean(r *kinds.Resource, item *cache.Item) bool {
	return r.Clean(item.Revision, item.Older()) && (r.HasGoType() || item.StoredIn(r.Storage.GVK.GroupVersion()))
}

// JSON returns an item in the version of r. The bytes are shared, and stay with the item.
func (s *Store) JSON(ctx context.Context, r *kinds.Resource, it *cache.Item) ([]byte, error) {
	switch {
	case it.Err() != nil:
		return nil, Corrupt(r, it)
	case Clean(r, it):
		return it.JSON(), nil
	case !r.LoadMayFail() || it.Has(servedJSON(r)):
		return it.Bytes(servedJSON(r), func(it *cache.Item) ([]byte, error) { return s.encodeServed(ctx, r, it) })
	}
	// A failure is not cached: the conversion webhook may recover.
	obj, err := s.Decode(ctx, r, it)
	if err != nil {
		return nil, err
	}
	return s.keepJSON(r, it, obj)
}

func (s *Store) encodeServed(ctx context.Context, r *kinds.Resource, it *cache.Item) ([]byte, error) {
	obj, err := s.decodeServed(ctx, r, it)
	if err != nil {
		return nil, err
	}
	return s.cache.JSON().Append(nil, obj)
}

// servedJSON returns the key of an item's JSON in a served version.
func servedJSON(r *kinds.Resource) cache.FormKey {
	return cache.FormKey{Form: cache.FormJSON, For: r}
}

// keepJSON keeps the JSON of an item, which obj is decoded from, in the version of r. One that is stored like that takes no more
// memory: after a restart, and after most changes of a definition, all are.
func (s *Store) keepJSON(r *kinds.Resource, it *cache.Item, obj kinds.Object) ([]byte, error) {
	return it.Bytes(servedJSON(r), func(*cache.Item) ([]byte, error) {
		revision := obj.GetResourceVersion()
		obj.SetResourceVersion("")
		data, err := s.cache.JSON().Append(nil, obj)
		if err != nil || Unchanged(it, data) {
			return it.JSON(), err
		}
		obj.SetResourceVersion(revision)
		return s.cache.JSON().Append(data[:0], obj)
	})
}

// DecodeForColumns decodes an item in the version from which the columns of r are computed: the stored one,
// and that of r for a custom resource.
func (s *Store) DecodeForColumns(ctx context.Context, r *kinds.Resource, it *cache.Item) (kinds.Object, error) {
	if !r.WorksAsServed() || Clean(r, it) {
		return s.Decode(ctx, r, it)
	}
	data, err := s.JSON(ctx, r, it)
	if err != nil {
		return nil, err
	}
	obj := r.New()
	_, err = s.cache.JSON().Decode(data, obj, codecs.Ignore)
	return obj, err
}

// Limits of objects, and of their bytes, that are converted together: the size of a webhook's answer is
// limited.
const (
	convertAtOnce = 500
	convertBytes  = 2 << 20
)

// Convert converts items to the served version, many at a time, and caches the JSON in them: nothing can fail
// after the answer has begun.
func (s *Store) Convert(ctx context.Context, r *kinds.Resource, items []*cache.Item) error {
	if !r.LoadMayFail() {
		return nil
	}
	key := servedJSON(r)
	var waiting []*cache.Item
	size := 0
	for _, it := range items {
		if it.Err() != nil || Clean(r, it) || it.Has(key) {
			continue
		}
		if len(waiting) == convertAtOnce || len(waiting) > 0 && size+it.Size() > convertBytes {
			if err := s.convertTogether(ctx, r, waiting); err != nil {
				return err
			}
			waiting, size = waiting[:0], 0
		}
		waiting, size = append(waiting, it), size+it.Size()
	}
	if len(waiting) == 0 {
		return nil
	}
	return s.convertTogether(ctx, r, waiting)
}

func (s *Store) convertTogether(ctx context.Context, r *kinds.Resource, items []*cache.Item) error {
	objs := make([]kinds.Object, len(items))
	for i, it := range items {
		var err error
		if objs[i], err = s.decoded(r, it); err != nil {
			return err
		}
	}
	objs, err := r.Load(ctx, objs...)
	if err != nil {
		return status.Show(err)
	}
	for i, it := range items {
		if _, err := s.keepJSON(r, it, objs[i]); err != nil {
			return err
		}
	}
	return nil
}
