// Package vault keeps what is stored from verbs: nothing of an object is read and
// nothing is written without a permit that covers it.
//
// It promises: a call that its permit does not cover changes and tells nothing, and
// fails with permits.UncoveredError.
package vault

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/sqlstore"
)

// Store is what verbs see of what is stored.
type Store struct {
	store *sqlstore.Store
	cache *cache.Cache
}

// New locks up a store and the cache that it feeds. Handlers that only read memory do
// without a store.
func New(store *sqlstore.Store, c *cache.Cache) *Store { return &Store{store: store, cache: c} }

// Place is where an object is, or with an empty Name a collection, and the
// subresource that it is seen or written through.
type Place struct {
	Resource  *kinds.Resource
	Sub       string
	Namespace string // "" for cluster scope, and for collections over all namespaces
	Name      string
}

// Key is the object's key in the store.
func (p *Place) Key() sqlstore.Key {
	return sqlstore.Key{Resource: p.Resource.Storage.Key, Namespace: p.Namespace, Name: p.Name}
}

func (p *Place) check(permit *permits.Permit, e permits.Effect) error {
	return permit.Check(e, &permits.Target{
		Group: p.Resource.Group, Resource: p.Resource.Plural, Subresource: p.Sub, Namespace: p.Namespace, Name: p.Name,
	})
}

// What follows tells nothing of any object.

// Head is the newest revision that any server has written.
func (s *Store) Head(ctx context.Context) (int64, error) { return s.store.Head(ctx) }

// Now is the time by the store's clock.
func (s *Store) Now() time.Time { return s.store.Now() }

// Floor is the oldest revision that can be read.
func (s *Store) Floor() int64 { return s.store.Floor() }

// Revision is the newest one in memory.
func (s *Store) Revision() int64 { return s.cache.Revision() }

// WaitFor waits until memory has a revision.
func (s *Store) WaitFor(ctx context.Context, revision int64) error {
	return s.cache.WaitFor(ctx, revision)
}

// Write changes an object, and with it what belongs to it: claims, and the object
// that goes with a deleted one.
func (s *Store) Write(ctx context.Context, p permits.Permit, at Place, op sqlstore.Op, more ...sqlstore.Op) (sqlstore.Outcome, error) {
	if err := at.check(&p, effectOf(op.Verb)); err != nil {
		return sqlstore.Outcome{}, err
	}
	if op.Key != at.Key() {
		return sqlstore.Outcome{}, fmt.Errorf("a write of %v says that it is one of %v", op.Key, at.Key())
	}
	for i := range more {
		if !belongs(&more[i], &op, at.Resource.Storage) {
			return sqlstore.Outcome{}, fmt.Errorf("a write of %v does not belong to one of %v", more[i].Key, op.Key)
		}
	}
	if len(more) == 0 {
		return s.store.Write(ctx, op)
	}
	return s.store.Write(ctx, append([]sqlstore.Op{op}, more...)...)
}

// Discard deletes an object that cannot be read. It takes two permits: to delete it,
// and to do so unread.
func (s *Store) Discard(ctx context.Context, p, unread permits.Permit, at Place, item *cache.Item) error {
	if err := at.check(&p, permits.Delete); err != nil {
		return err
	}
	if err := at.check(&unread, permits.Discard); err != nil {
		return err
	}
	ops := []sqlstore.Op{{Verb: sqlstore.Delete, Key: at.Key(), Expect: item.Revision, Value: item.JSON}}
	if at.Resource.Storage.Allocate != nil {
		ops = append(ops, s.claimed(item.Namespace+"/"+item.Name)...)
	}
	_, err := s.store.Write(ctx, ops...)
	return err
}

func effectOf(v sqlstore.Verb) permits.Effect {
	switch v {
	case sqlstore.Create:
		return permits.Create
	case sqlstore.Update:
		return permits.Update
	case sqlstore.Delete:
		return permits.Delete
	}
	return 0
}

// belongs says whether a write is part of that of an object.
func belongs(more, op *sqlstore.Op, st *kinds.Storage) bool {
	if isPool(more.Key.Resource) {
		return st.Allocate != nil
	}
	return op.Verb == sqlstore.Delete && more.Verb == sqlstore.Delete && more.Key.Resource != "" &&
		more.Key == sqlstore.Key{Resource: st.DeleteAlso, Namespace: op.Key.Namespace, Name: op.Key.Name}
}
