package objects

import (
	"context"
	"strings"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/sqlstore"
)

// Get finds an object in the cache, or nil.
func (s *Store) Get(p permits.Permit, at Place) (*cache.Item, error) {
	if err := at.check(&p, permits.Get); err != nil {
		return nil, err
	}
	return s.cache.Get(at.Resource.Storage.Key, at.Namespace, at.Name), nil
}

// ExistingObject describes an existing object to a client that tries to create it.
type ExistingObject struct {
	Exists   bool
	Deleting bool
	Revision int64
}

// Existing looks in the cache for an existing object at the place of a new one.
func (s *Store) Existing(p permits.Permit, at Place) (ExistingObject, error) {
	if err := at.check(&p, permits.Create); err != nil {
		return ExistingObject{}, err
	}
	item := s.cache.Get(at.Resource.Storage.Key, at.Namespace, at.Name)
	if item == nil {
		return ExistingObject{}, nil
	}
	return ExistingObject{Exists: true, Deleting: item.Meta().Deleting, Revision: item.Revision}, nil
}

// Collection holds the objects of a place at one revision, as far as a permit covers them.
type Collection struct {
	Revision int64

	snap      *cache.Snapshot
	namespace string
	only      string // the only visible name; "": all
}

// Collection returns the present state of a collection. With a permit for one name, which a field selector
// requests, it contains only that object.
func (s *Store) Collection(p permits.Permit, at Place) (*Collection, error) {
	at.Name = p.Only()
	if err := at.check(&p, permits.List); err != nil {
		return nil, err
	}
	return collection(s.cache.Snapshot(at.Resource.Storage.Key), &at), nil
}

// CollectionAt returns the collection at a revision, nil if the cache does not have that state any more.
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

// Select calls fn in key order with the items that a filter selects, starting at a position, until fn returns
// false.
func (c *Collection) Select(f *cache.Filter, from cache.Position, fn func(*cache.Item) bool) {
	if c.only == "" {
		c.snap.Select(f, c.namespace, from, fn)
		return
	}
	c.snap.Select(f, c.namespace, from, func(it *cache.Item) bool { return it.Name != c.only || fn(it) })
}

// Count counts the items at or after a position.
func (c *Collection) Count(from cache.Position) int { return c.snap.Count(c.namespace, from) }

// Intact reports whether no object is known to be unreadable.
func (c *Collection) Intact() bool { return c.snap.Intact() }

// plain reports whether all items are readable, and can be filtered and sent without conversion, so that
// nothing can fail.
func (c *Collection) plain(r *kinds.Resource, f *cache.Filter) bool {
	unsure := f != nil && f.Unsure != nil
	return c.only == "" && c.Intact() && r.HasGoType() && r.Clean(c.Revision, true) && !r.LoadCallsWebhook() && !unsure
}

// Pin keeps the snapshot for the next pages.
func (c *Collection) Pin() { c.snap.Pin() }

// scanPage is the number of rows that are read at once, unless they are large.
const scanPage = 500

// scan reads the rows of a collection at a revision from the table, and calls fn in key order with those
// after a position, until fn returns false.
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

// WatchNow watches from the present revision on, and returns the present state.
func (s *Store) WatchNow(p permits.Permit, at Place, scope cache.Scope) (*cache.Watcher, *Collection, error) {
	if err := watched(&p, &at, &scope); err != nil {
		return nil, nil, err
	}
	scope.Log = s.store
	w, snap := s.cache.WatchNow(at.Resource.Storage.Key, scope)
	return w, collection(snap, &at), nil
}

// watched narrows a scope to the objects that the permit covers.
func watched(p *permits.Permit, at *Place, scope *cache.Scope) error {
	if only := p.Only(); only != "" {
		at.Name = only
	}
	scope.Namespace, scope.Name = at.Namespace, at.Name
	return at.check(p, permits.Watch)
}
