package cache

import (
	"context"
	"errors"
	"slices"

	"github.com/tidwall/btree"

	"github.com/rowlock/rowlock/sqlstore"
)

// Source is what Load reads from; sqlstore.Store is one.
type Source interface {
	Head(ctx context.Context) (int64, error)
	ReadAll(ctx context.Context, revision int64, take func(rows []sqlstore.Row) error) error
	CheckRows(ctx context.Context, values bool, page func(differ []sqlstore.Row) error) error
}

// Load fills the cache with all live rows and returns their revision; the changes after it
// are for Apply. What the cache held before is dropped, and its watchers are ended, as the
// changes in between are not known. Apply must not be called meanwhile. Readers see the
// former state until the new one is complete.
func (c *Cache) Load(ctx context.Context, s Source) (revision int64, err error) {
	return c.load(ctx, s, false)
}

// load is Load; afresh uses no item again that is in memory.
func (c *Cache) load(ctx context.Context, s Source, afresh bool) (revision int64, err error) {
	var differ []sqlstore.Row // between the table and its indexes
	for try := 0; ; try++ {
		revision, err = s.Head(ctx)
		if err != nil {
			return 0, err
		}
		loaded, err := c.read(ctx, s, revision, differ, afresh)
		var gone *sqlstore.CompactedError
		if errors.As(err, &gone) && try < 5 {
			continue
		}
		if errors.Is(err, sqlstore.ErrIndexMismatch) {
			found := s.CheckRows(ctx, false, func(rows []sqlstore.Row) error {
				differ = append(differ, rows...)
				return nil
			})
			if found != nil {
				return 0, found
			}
			if len(differ) > 0 { // they are read once more, and known this time
				continue
			}
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
func (c *Cache) Reload(ctx context.Context, s *sqlstore.Store, afresh bool) (int64, error) {
	return c.load(ctx, s, afresh)
}

type items = btree.BTreeG[*Item]

func newItems() *items { return btree.NewBTreeGOptions(byKey, btree.Options{NoLocks: true}) }

// read makes the items of a revision, by storage. An item that is in memory already
// is used again, with the wire forms that it has, unless all is read afresh.
//
// What differs between the table and its indexes is damaged. Then that they do not match is no error.
func (c *Cache) read(ctx context.Context, s Source, revision int64, differ []sqlstore.Row, afresh bool) (map[*resource]*loaded, error) {
	if revision == 0 {
		return nil, nil
	}
	l := &loading{cache: c, found: map[*resource]*loaded{}, afresh: afresh}
	take, lost := l.take, func() error { return nil }
	if len(differ) > 0 {
		take, lost = l.takeDamaged(differ, revision)
	}
	if err := s.ReadAll(ctx, revision, take); err != nil && (len(differ) == 0 || !errors.Is(err, sqlstore.ErrIndexMismatch)) {
		return nil, err
	}
	if err := lost(); err != nil {
		return nil, err
	}
	l.sort()
	return l.found, nil
}

// lentRoom is memory that items are read and packed in, one after the other.
type lentRoom struct {
	line    []byte
	packing packRoom
}

// item is the item of a row that is lent. It is packed at once if there is no room and it is
// known what the objects look like; before that it is shown to look, as its metadata is at hand. One that
// is in memory at that revision is used again, unless it is to be made afresh.
func (s *resource) item(row *sqlstore.Row, lent *lentRoom, afresh bool, look func(*Item)) *Item {
	it := s.get(row.Key.Namespace, row.Key.Name)
	if it != nil && it.Revision == row.Revision && it.Corrupt == nil && row.Damaged == nil && !afresh {
		look(it)
		return it
	}
	of := s.packer.known()
	if of == nil || s.plain.Room() {
		it = s.read(row, nil)
		s.plain.Grow(it.Size())
		look(it)
	} else {
		lent.line = slices.Grow(lent.line[:0], len(row.Value)+64)
		it = s.read(row, lent.line)
		look(it)
		if s.packer.pack(it, of, &lent.packing) == 0 {
			b := it.body.Load()
			it.body.Store(&body{data: slices.Clone(b.data), size: b.size})
		}
	}
	if s.internal || it.Corrupt != nil { // it holds the row's own bytes
		it.body.Store(bareBody(slices.Clone(row.Value)))
	}
	return it
}

// replace puts the items of a revision in place of all there are.
func (c *Cache) replace(loaded map[*resource]*loaded, revision int64) {
	c.making.Lock()
	defer c.making.Unlock()
	c.base = revision
	c.note(nil)
	c.resources.Range(func(_, v any) bool {
		s := v.(*resource)
		s.replace(loaded[s], revision)
		return true
	})
}

func (s *resource) replace(with *loaded, revision int64) {
	if with == nil {
		with = &loaded{items: newItems()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if with.keys == nil || with.keys != s.keys.Load() {
		with.index = s.indexOf(with.items)
	}
	had := false
	s.alter(func() {
		s.items, s.index, s.corrupt, s.changed, s.removed = with.items, with.index, with.corrupt, revision, revision
		had = s.forgetLabels()
	})
	if had {
		s.indexLabels()
	}
	s.recent = eventLog{floor: revision, bounds: s.recent.bounds}
	s.watchers.each(func(w *Watcher) {
		if w.after < revision {
			s.watchers.remove(w)
			w.end(&sqlstore.CompactedError{Revision: w.after, Floor: revision})
		}
	})
}
