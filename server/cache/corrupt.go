package cache

import (
	"context"
	"slices"
	"sort"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// Corrupt lists the live objects that cannot be read, in the order of keys.
func (c *Cache) Corrupt() []CorruptItem {
	var out []CorruptItem
	for s := range c.all() {
		s.mu.Lock()
		for _, it := range s.corrupt {
			out = append(out, CorruptItem{s.keyOf(it), it.Revision, it.Err()})
		}
		s.mu.Unlock()
	}
	for _, n := range c.noted() {
		have := slices.ContainsFunc(out, func(o CorruptItem) bool { return o.Key == n.Key })
		it := c.Get(n.Key.Resource, n.Key.Namespace, n.Key.Name)
		if !have && (it == nil || it.Revision <= n.Revision) { // else it was written again since
			out = append(out, n)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Key.Compare(out[j].Key) < 0 })
	return out
}

// CheckRows makes the database compare the table with its indexes and, if values is true, the rows with their checksums,
// which a start from a cache file has not read. Corrupt lists the live rows that the database lost or that are not as they
// were written, until the object is written again or everything is loaded again. CheckRows pauses between pages, so that it
// takes a share of one processor. Errors: those of the database.
func (c *Cache) CheckRows(ctx context.Context, s Source, values bool, share float64) (found []CorruptItem, err error) {
	last := time.Now()
	err = s.CheckRows(ctx, values, func(rows []sqlstore.Row) error {
		for i := range rows {
			if rows[i].Damaged != nil && rows[i].Superseded == 0 && len(found) < maxNoted {
				found = append(found, CorruptItem{rows[i].Key, rows[i].Revision, rows[i].Damaged})
				c.note(found)
			}
		}
		if !sqlstore.Sleep(ctx, time.Duration(float64(time.Since(last))*(1/share-1))) {
			return ctx.Err()
		}
		last = time.Now()
		return nil
	})
	return found, err
}

// maxNoted bounds the objects that CheckRows keeps: Corrupt looks each of them up.
const maxNoted = 1000

func (c *Cache) note(found []CorruptItem) { c.damaged.Store(&found) }

func (c *Cache) noted() []CorruptItem {
	if found := c.damaged.Load(); found != nil {
		return *found
	}
	return nil
}

// Opener decrypts stored values; sqlstore.Store implements it.
type Opener interface {
	Open(ctx context.Context, key sqlstore.Key, stored []byte) ([]byte, error)
}

// reopenFailures ends a Reopen after this many objects that still cannot be decrypted: the others wait for the next one.
const reopenFailures = 1000

// Reopen tries again to decrypt live objects, whose key may be available again, and returns how many can be read now. They
// keep their revision, so clients' watchers get no event: those that met the corrupt object have ended. The server's own
// followers, which skipped it, get it as added.
func (c *Cache) Reopen(ctx context.Context, with Opener) (opened int) {
	failed := 0
	for s := range c.all() {
		for _, it := range s.sealed() {
			if ctx.Err() != nil || failed == reopenFailures {
				return opened
			}
			key := s.keyOf(it)
			plain, err := with.Open(ctx, key, it.JSON())
			if err != nil {
				failed++
				continue
			}
			row := &sqlstore.Row{Key: key, Revision: it.Revision, Created: it.Created(), Value: plain}
			if s.reread(it, s.read(row, nil)) {
				opened++
			}
		}
	}
	return opened
}

// sealed lists the live items that cannot be decrypted, in no order.
func (s *resource) sealed() (list []*Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.corrupt {
		if it.Sealed() {
			list = append(list, it)
		}
	}
	return list
}

// reread replaces a corrupt item by a readable one. It returns false if the object has changed since.
func (s *resource) reread(old, it *Item) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have, _ := s.items.Get(old); have != old {
		return false
	}
	s.alter(func() { s.set(it, old) })
	s.recent.reread(old, it)
	s.watchers.each(func(w *Watcher) { w.reread(it) })
	return true
}
