package cache

import (
	"slices"

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
	slices.SortFunc(out, func(a, b CorruptItem) int { return a.Key.Compare(b.Key) })
	return out
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
	if !s.internal {
		it.judge(s.cache.cfg.JSON, s.resource(), row, room)
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
