package objects

import (
	"context"
	"strings"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/sqlstore"
)

// Get finds an object in memory, or nil.
func (s *Store) Get(p permits.Permit, at Place) (*cache.Item, error) {
	if err := at.check(&p, permits.Get); err != nil {
		return nil, err
	}
	return s.cache.Get(at.Resource.Storage.Key, at.Namespace, at.Name), nil
}

// Standing is what a client that creates an object learns about one that exists already.
type Standing struct {
	Exists   bool
	Deleting bool
	Revision int64
}

// Standing looks in memory for the object that stands in the way of a new one.
func (s *Store) Standing(p permits.Permit, at Place) (Standing, error) {
	if err := at.check(&p, permits.Create); err != nil {
		return Standing{}, err
	}
	item := s.cache.Get(at.Resource.Storage.Key, at.Namespace, at.Name)
	if item == nil {
		return Standing{}, nil
	}
	return Standing{Exists: true, Deleting: item.Meta().Deleting, Revision: item.Revision}, nil
}

// Collection is what a place holds at one revision, no wider than a permit covers.
type Collection struct {
	Revision int64

	snap      *cache.Snapshot
	namespace string
	only      string // the one name that may be seen; "": all
}

// Collection shows a collection as it is. A permit for one name, that a field selector asks
// for, shows that alone.
func (s *Store) Collection(p permits.Permit, at Place) (*Collection, error) {
	at.Name = p.Only()
	if err := at.check(&p, permits.List); err != nil {
		return nil, err
	}
	return collection(s.cache.Snapshot(at.Resource.Storage.Key), &at), nil
}

// CollectionAt shows a collection as it was, nil where memory does not reach back so far.
func (s *Store) CollectionAt(p permits.Permit, at Place, revision int64) (*Collection, error) {
	at.Name = p.Only()
	if err := at.check(&p, permits.List); err != nil {
		return nil, err
	}
	snap := s.cache.At(at.Resource.Storage.Key, revision)
	if snap == nil {
		return nil, nil
	}
	return collection(snap, &at), nil
}

func collection(snap *cache.Snapshot, at *Place) *Collection {
	return &Collection{Revision: snap.Revision, snap: snap, namespace: at.Namespace, only: at.Name}
}

// Select calls fn in key order with the items that a filter selects, from a position,
// until fn returns false.
func (c *Collection) Select(f *cache.Filter, from cache.Position, fn func(*cache.Item) bool) {
	if c.only == "" {
		c.snap.Select(f, c.namespace, from, fn)
		return
	}
	c.snap.Select(f, c.namespace, from, func(it *cache.Item) bool { return it.Name != c.only || fn(it) })
}

// Count says how many items come at a position or behind it.
func (c *Collection) Count(from cache.Position) int { return c.snap.Count(c.namespace, from) }

// Sound says that all objects can be read, as far as it is known.
func (c *Collection) Sound() bool { return c.snap.Sound() }

// plain says that all items can be read, and are what a filter selects and a version shows as they
// lie in memory, so that nothing can fail.
func (c *Collection) plain(r *kinds.Resource, f *cache.Filter) bool {
	unsure := f != nil && f.Unsure != nil
	return c.only == "" && c.Sound() && r.HasGoType() && r.Clean(c.Revision, true) && !r.LoadCallsWebhook() && !unsure
}

// Pin keeps the snapshot for the pages that follow.
func (c *Collection) Pin() { c.snap.Pin() }

// scanPage is how many rows are read at once, unless they are large.
const scanPage = 500

// scan calls fn in key order with the rows of a collection as it was, read from the
// table, behind a position, until fn returns false.
func (s *Store) scan(ctx context.Context, p permits.Permit, at Place, revision int64, from cache.Position, fn func(*sqlstore.Row) bool) error {
	at.Name = p.Only()
	if err := at.check(&p, permits.List); err != nil {
		return err
	}
	req := sqlstore.ScanRequest{Resource: at.Resource.Storage.Key, Namespace: at.Namespace, Limit: scanPage, Bytes: sqlstore.ChangesBytes, Revision: revision}
	if from != (cache.Position{}) {
		req.After = sqlstore.Key{Resource: req.Resource, Namespace: from.Namespace, Name: strings.TrimSuffix(from.Name, "\x00")}
	}
	for {
		rows, err := s.store.Scan(ctx, req)
		if err != nil {
			return err
		}
		for i := range rows {
			if (at.Name == "" || rows[i].Key.Name == at.Name) && !fn(&rows[i]) {
				return nil
			}
		}
		if req.Ends(rows) {
			return nil
		}
		req.After = rows[len(rows)-1].Key
	}
}

// Watch watches the changes after a revision; see cache.Cache.Watch.
func (s *Store) Watch(p permits.Permit, at Place, scope cache.Scope, after int64) (*cache.Watcher, error) {
	if err := watched(&p, &at, &scope); err != nil {
		return nil, err
	}
	return s.cache.Watch(at.Resource.Storage.Key, scope, after, s.store)
}

// WatchNow watches from now on, and shows what there is.
func (s *Store) WatchNow(p permits.Permit, at Place, scope cache.Scope) (*cache.Watcher, *Collection, error) {
	if err := watched(&p, &at, &scope); err != nil {
		return nil, nil, err
	}
	scope.Log = s.store
	w, snap := s.cache.WatchNow(at.Resource.Storage.Key, scope)
	return w, collection(snap, &at), nil
}

// watched narrows a scope to what may be seen.
func watched(p *permits.Permit, at *Place, scope *cache.Scope) error {
	if only := p.Only(); only != "" {
		at.Name = only
	}
	scope.Namespace, scope.Name = at.Namespace, at.Name
	return at.check(p, permits.Watch)
}
