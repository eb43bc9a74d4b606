package objects

import (
	"context"
	"fmt"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/status"
)

// Home returns the resource that serves a storage in its stored version; nil: none does.
func (s *Store) Home(st *kinds.Storage) *kinds.Resource { return s.catalogue.ByStorage(st.Key) }

// Decode decodes an item in its stored version, one of a custom resource in r's version.
func (s *Store) Decode(ctx context.Context, r *kinds.Resource, item *cache.Item) (kinds.Object, error) {
	obj, err := s.decoded(r, item)
	if err != nil || Clean(r, item) {
		return obj, err
	}
	out, err := r.Load(ctx, obj)
	if err != nil {
		return nil, status.Show(err)
	}
	return out[0], nil
}

// decoded returns an item as it is stored.
func (s *Store) decoded(r *kinds.Resource, item *cache.Item) (kinds.Object, error) {
	if item.Err() != nil {
		return nil, Corrupt(r, item)
	}
	text := item.JSON()
	obj := r.NewStored()
	if s.cache.JSON().DecodeClean(text, obj) {
		return obj, nil
	}
	obj = r.NewStored()
	if _, err := s.cache.JSON().Decode(text, obj, codecs.Ignore); err != nil {
		return nil, fmt.Errorf("decoding %s %s/%s: %w", r.Storage.Key, item.Namespace, item.Name, err)
	}
	return obj, nil
}

// decodeServed decodes an item in the version of r.
func (s *Store) decodeServed(ctx context.Context, r *kinds.Resource, item *cache.Item) (kinds.Object, error) {
	obj, err := s.Decode(ctx, r, item)
	if err != nil {
		return nil, err
	}
	return r.ToServed(obj)
}

// Copy returns a deep copy.
func Copy(obj kinds.Object) kinds.Object { return obj.DeepCopyObject().(kinds.Object) }
