// Package objects reads and writes stored objects: it combines the catalogue, the store and the cache.
// Package writes, answers, watches and verbs access objects only through it.
//
//	store.go    Store, and the revisions that it has
//	read.go     reads of the cache and of the table, each with a permit
//	find.go     one live object, with certainty
//	list.go     a list or a page of it, at the requested resource version; options.go
//	            its parameters and its filter, continue.go the tokens of pages
//	select.go   which objects a selector selects in the requested version
//	decode.go   from stored bytes to objects, and between versions
//	json.go     the JSON of an object in a served version
//	corrupt.go  errors for stored bytes that cannot be read
//	encode.go   from objects to the bytes to store
//	commit.go   writes of an object with its claims, each with a permit
//	claims.go   values that are unique in the cluster: service addresses, node ports
//	past.go     earlier states of an object
//	restore.go  rewrites stored objects in today's form
//
// A call that its permit does not cover changes and reveals nothing, and fails with permits.UncoveredError.
// Returned bytes are shared and must not be changed. The package starts no goroutine; a call with a context
// may wait for the store or for a conversion webhook until that context ends.
package objects

import (
	"context"
	"time"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/sqlstore"
)

// Store gives access to all objects of a catalogue.
type Store struct {
	catalogue *kinds.Catalogue
	store     *sqlstore.Store
	cache     *cache.Cache
	sizes     budget.Sizes
	pastLists *fair.Gate // bounds the lists of earlier states that hold more than pastFree bytes
	follow    func()     // brings the catalogue up to date with the cache; nil: it never changes
}

// New combines a store with the cache that it feeds. The store may be nil for readers of the cache only.
func New(catalogue *kinds.Catalogue, store *sqlstore.Store, c *cache.Cache) *Store {
	long := fair.NewGate(fair.Limits{Places: pastLists, Weight: pastLists, KeyWeight: 1})
	return &Store{catalogue: catalogue, store: store, cache: c, pastLists: long}
}

// Bound sets the maximum size of a stored object, before the Store is used.
func (s *Store) Bound(sizes budget.Sizes) { s.sizes = sizes }

// FollowWith sets the function that brings the catalogue up to date with the cache, before the Store is used.
func (s *Store) FollowWith(follow func()) { s.follow = follow }

// Sizes returns the maximum size of an object, and the bounds that depend on it.
func (s *Store) Sizes() budget.Sizes { return s.sizes }

// Codec encodes and decodes objects as JSON.
func (s *Store) Codec() json.Codec { return s.cache.JSON() }

// Place is the place of an object or, with an empty Name, of a collection, and the subresource that is read
// or written.
type Place struct {
	Resource  *kinds.Resource
	Sub       string
	Namespace string // "" for cluster scope, and for collections over all namespaces
	Name      string
}

// Key returns the object's key in the store.
func (p *Place) Key() sqlstore.Key {
	return sqlstore.Key{Resource: p.Resource.Storage.Key, Namespace: p.Namespace, Name: p.Name}
}

func (p *Place) check(permit *permits.Permit, e permits.Effect) error {
	return permit.Check(e, &permits.Target{
		Group: p.Resource.Group, Resource: p.Resource.Plural, Subresource: p.Sub, Namespace: p.Namespace, Name: p.Name,
	})
}

// The methods below reveal nothing about objects, so they need no permit.

// Head returns the newest revision of all servers.
func (s *Store) Head(ctx context.Context) (int64, error) { return s.store.Head(ctx) }

// Now returns the time by the store's clock.
func (s *Store) Now() time.Time { return s.store.Now() }

// Revision returns the newest revision in the cache.
func (s *Store) Revision() int64 { return s.cache.Revision() }

// hintTime is the time for which a wait for a revision relies on hints, which take a few milliseconds.
const hintTime = 100 * time.Millisecond

// WaitFor waits until the cache has a revision.
func (s *Store) WaitFor(ctx context.Context, revision int64) error {
	if s.Revision() >= revision {
		return nil
	}
	began := time.Now()
	soon, cancel := context.WithTimeout(ctx, hintTime)
	err := s.cache.WaitFor(soon, revision)
	cancel()
	if err == nil || ctx.Err() != nil {
		return err
	}
	if s.store != nil {
		s.store.Poll(began)
	}
	return s.cache.WaitFor(ctx, revision)
}

// CatchUp waits until the cache has every write that any server has made so far.
func (s *Store) CatchUp(ctx context.Context) error {
	head, err := s.Head(ctx)
	if err != nil {
		return err
	}
	return s.WaitFor(ctx, head)
}

// futureWait bounds how long a read waits for a revision that this server has not reached.
const futureWait = 3 * time.Second

// Reach waits for some time until the cache has a revision that a reader named. Then its error is the 504 for
// a revision in the future.
func (s *Store) Reach(ctx context.Context, revision int64) error {
	if s.Revision() >= revision {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, futureWait)
	defer cancel()
	err := s.WaitFor(short, revision)
	if err != nil && ctx.Err() == nil && short.Err() != nil {
		return status.Future(revision, s.Revision())
	}
	return err
}

// reachNow is Reach for reads that a stock server serves from etcd instead of its watch cache: they do not
// wait for a revision in the future, and the error has no retry time.
func (s *Store) reachNow(ctx context.Context, revision int64) error {
	if s.Revision() >= revision {
		return nil
	}
	if err := s.CatchUp(ctx); err != nil {
		return err
	}
	if head := s.Revision(); head < revision {
		e := status.Future(revision, head)
		e.ErrStatus.Details.RetryAfterSeconds = 0
		return e
	}
	return nil
}
