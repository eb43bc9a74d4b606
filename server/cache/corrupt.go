package cache

import (
	"context"
	"slices"
	"time"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// CorruptItem is an object that cannot be read.
type CorruptItem struct {
	Key      sqlstore.Key
	Revision int64
	Reason   error
}

// Corrupt lists the live objects that cannot be read, in key order.
func (c *Cache) Corrupt() []CorruptItem {
	var out []CorruptItem
	c.resources.Range(func(_, v any) bool {
		s := v.(*resource)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, it := range s.corrupt {
			out = append(out, CorruptItem{s.keyOf(it), it.Revision, it.Corrupt})
		}
		return true
	})
	for _, n := range c.noted() {
		have := slices.ContainsFunc(out, func(o CorruptItem) bool { return o.Key == n.Key })
		it := c.Get(n.Key.Resource, n.Key.Namespace, n.Key.Name)
		if !have && (it == nil || it.Revision <= n.Revision) { // else it was written anew since
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b CorruptItem) int { return a.Key.Compare(b.Key) })
	return out
}

// CheckRows has the database compare the table with its indexes and, if values says so, the rows with their checksums,
// which a start from a cache file has not read. Corrupt lists the live rows that the database lost or that are not as they
// were written, until the object is written again or everything is loaded again. CheckRows rests between pages, so that it
// takes a share of one processor. Errors: those of the database.
func (c *Cache) CheckRows(ctx context.Context, s Source, values bool, share float64) (found []CorruptItem, err error) {
	last := time.Now()
	err = s.CheckRows(ctx, values, func(rows []sqlstore.Row) error {
		for i := range rows {
			if rows[i].Damaged != nil && rows[i].Superseded == 0 && len(found) < mostNoted {
				found = append(found, CorruptItem{rows[i].Key, rows[i].Revision, rows[i].Damaged})
				c.note(found)
			}
		}
		rest := time.NewTimer(time.Duration(float64(time.Since(last)) * (1/share - 1)))
		defer rest.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-rest.C:
		}
		last = time.Now()
		return nil
	})
	return found, err
}

// mostNoted bounds what CheckRows remembers: Corrupt looks each of them up.
const mostNoted = 1000

func (c *Cache) note(found []CorruptItem) { c.damaged.Store(&found) }

func (c *Cache) noted() []CorruptItem {
	if found := c.damaged.Load(); found != nil {
		return *found
	}
	return nil
}

func (s *resource) keyOf(it *Item) sqlstore.Key {
	return sqlstore.Key{Resource: s.key, Namespace: it.Namespace, Name: it.Name}
}

// resource is what serves the resource's objects in their stored version, or nil.
func (s *resource) resource() *kinds.Resource {
	if s.cache.catalogue == nil || s.internal {
		return nil
	}
	return s.cache.catalogue.ByStorage(s.key)
}

// read makes an item of a row as it lies in the table.
func (s *resource) read(row *sqlstore.Row, room []byte) *Item {
	it := bareItem(row, &s.home)
	switch {
	case !s.internal:
		it.judge(s.cache.cfg.JSON, s.resource(), row, room)
	case row.Damaged != nil:
		it.Corrupt = row.Damaged
	}
	return it
}

// count keeps track of the items that cannot be read.
func (s *resource) count(it, old *Item) {
	if old != nil && old.Corrupt != nil {
		delete(s.corrupt, [2]string{old.Namespace, old.Name})
	}
	if it == nil || it.Corrupt == nil {
		return
	}
	if s.corrupt == nil {
		s.corrupt = map[[2]string]*Item{}
	}
	s.corrupt[[2]string{it.Namespace, it.Name}] = it
	if f := s.cache.cfg.Corrupt; f != nil {
		f(s.keyOf(it), it)
	}
}
