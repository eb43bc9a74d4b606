// Package objects reads and writes stored objects: it puts the catalogue, the store and the cache
// behind one face. Writes, answers, watches and verbs see no object in any other way.
//
//	store.go    Store, and the revisions that it has
//	read.go     reads of memory and of the table, each with a permit
//	find.go     one live object, for certain
//	list.go     a list or a page of it, at the resource version that is asked for;
//	            options.go its parameters, continue.go the tokens of pages
//	select.go   which objects a selector means in the version that is asked for
//	decode.go   from stored bytes to objects, and between versions
//	json.go     the JSON of an object in a served version
//	corrupt.go  the refusal of stored bytes that cannot be read
//	encode.go   from objects to the bytes to store; memory.go the memory that these are in
//	commit.go   writes of an object with its claims, each with a permit
//	claims.go   values that are unique in the cluster: service addresses, node ports
//	restore.go  objects that are stored again, in the form in which they would be written now
//
// It promises: a call that its permit does not cover changes and tells nothing, and
// fails with permits.UncoveredError. Bytes that it returns are shared and must not be
// changed. It starts no goroutine; calls with a context may wait for the store or for a
// conversion webhook until that ends.
package objects

import (
	"context"
	"time"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/sqlstore"
)

// Store is all objects of a catalogue.
type Store struct {
	catalogue *kinds.Catalogue
	store     *sqlstore.Store
	cache     *cache.Cache
	sizes     budget.Sizes
}

// New puts a store and the cache that it feeds behind one face. Who only reads memory
// does without a store.
func New(catalogue *kinds.Catalogue, store *sqlstore.Store, c *cache.Cache) *Store {
	return &Store{catalogue: catalogue, store: store, cache: c}
}

// Bound sets the size of the largest object that is stored, before the Store is used.
func (s *Store) Bound(sizes budget.Sizes) { s.sizes = sizes }

// Sizes are the size of the largest object, and the bounds that follow from it.
func (s *Store) Sizes() budget.Sizes { return s.sizes }

// Codec reads and writes the objects as JSON.
func (s *Store) Codec() json.Codec { return s.cache.JSON() }

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

// The methods below tell nothing of any object, so they need no permit.

// Head is the newest revision that any server has written.
func (s *Store) Head(ctx context.Context) (int64, error) { return s.store.Head(ctx) }

// Now is the time by the store's clock.
func (s *Store) Now() time.Time { return s.store.Now() }

// Revision is the newest one in memory.
func (s *Store) Revision() int64 { return s.cache.Revision() }

// WaitFor waits until memory has a revision.
func (s *Store) WaitFor(ctx context.Context, revision int64) error {
	return s.cache.WaitFor(ctx, revision)
}

// CatchUp waits until memory has everything that any server wrote before.
func (s *Store) CatchUp(ctx context.Context) error {
	head, err := s.Head(ctx)
	if err != nil {
		return err
	}
	if s.Revision() >= head {
		return nil
	}
	return s.WaitFor(ctx, head)
}

// futureWait is how long a reader that names a revision which this server has not
// reached waits for it.
const futureWait = 3 * time.Second

// Reach waits until memory has a revision that a reader named, for a while. The error
// after that is the 504 of a revision in the future.
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

// reachNow is Reach for reads that a stock server answers from its database instead of its watch cache:
// they do not wait for a revision in the future, and the error names no time to retry after.
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
