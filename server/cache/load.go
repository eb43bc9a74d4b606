package cache

import (
	"context"
	"errors"

	"github.com/tidwall/btree"

	"github.com/rowlock/rowlock/sqlstore"
)

const loadPage = 1000

// Scanner is what Load reads from; sqlstore.Store is one.
type Scanner interface {
	Head(ctx context.Context) (int64, error)
	Scan(ctx context.Context, req sqlstore.ScanRequest) ([]sqlstore.Row, error)
}

// Load fills the cache with all live rows and returns the revision they are of,
// from which the feed goes on. What the cache held before is gone then, and its
// watchers with it: what happened in between is not known. Nobody may call Apply
// meanwhile; readers see the former state until all of the new one is there.
func (c *Cache) Load(ctx context.Context, s Scanner) (revision int64, err error) {
	for try := 0; ; try++ {
		revision, err = s.Head(ctx)
		if err != nil {
			return 0, err
		}
		loaded, err := c.read(ctx, s, revision)
		var gone *sqlstore.CompactedError
		if errors.As(err, &gone) && try < 5 {
			continue
		}
		if err != nil {
			return 0, err
		}
		c.replace(loaded, revision)
		c.publish(revision)
		return revision, nil
	}
}

// Reload implements sqlstore.Reloader.
func (c *Cache) Reload(ctx context.Context, s *sqlstore.Store) (int64, error) {
	return c.Load(ctx, s)
}

type items = btree.BTreeG[*Item]

func newItems() *items { return btree.NewBTreeGOptions(byKey, btree.Options{NoLocks: true}) }

// read makes the items of a revision, by storage. An item that is in memory already
// is used again, with the wire forms that it has.
func (c *Cache) read(ctx context.Context, s Scanner, revision int64) (map[*shelf]*items, error) {
	loaded := map[*shelf]*items{}
	if revision == 0 {
		return loaded, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var at *shelf
	var into *items
	for page := range pages(ctx, s, revision) {
		if page.err != nil {
			return nil, page.err
		}
		for i := range page.rows {
			row := &page.rows[i]
			if at == nil || at.key != row.Key.Resource {
				at, into = c.shelf(row.Key.Resource), newItems()
				loaded[at] = into
			}
			it := at.published.Load().get(row.Key.Namespace, row.Key.Name)
			if it == nil || it.Revision != row.Revision {
				it = newItem(row, &at.storage, !at.internal, true)
			}
			into.Load(it)
		}
	}
	return loaded, ctx.Err()
}

type page struct {
	rows []sqlstore.Row
	err  error
}

// pages scans all live rows of a revision, one page ahead of its reader. It ends after
// the last page, an error, or with ctx, which its reader must end.
func pages(ctx context.Context, s Scanner, revision int64) <-chan page {
	out := make(chan page, 1)
	go func() {
		defer close(out)
		req := sqlstore.ScanRequest{Limit: loadPage, Revision: revision}
		for {
			rows, err := s.Scan(ctx, req)
			select {
			case out <- page{rows, err}:
			case <-ctx.Done():
				return
			}
			if err != nil || len(rows) < loadPage {
				return
			}
			req.After = rows[len(rows)-1].Key
		}
	}()
	return out
}

// replace puts the items of a revision in place of all there are.
func (c *Cache) replace(loaded map[*shelf]*items, revision int64) {
	c.making.Lock()
	defer c.making.Unlock()
	c.base = revision
	c.shelves.Range(func(_, v any) bool {
		s := v.(*shelf)
		s.replace(loaded[s], revision)
		return true
	})
}

func (s *shelf) replace(with *items, revision int64) {
	if with == nil {
		with = newItems()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items, s.changed = with, revision
	s.ring = ring{floor: revision, bounds: s.ring.bounds}
	s.reindex()
	s.watchers.each(func(w *Watcher) {
		if w.after < revision {
			s.watchers.remove(w)
			w.end(&sqlstore.CompactedError{Revision: w.after, Floor: revision})
		}
	})
}

// end lets Take fail from now on.
func (w *Watcher) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err, w.queue = err, nil
	}
	w.signal()
}
