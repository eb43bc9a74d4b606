package cache

import (
	"bytes"
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

// Opener decrypts what lies in the table; sqlstore.Store is one.
type Opener interface {
	Open(ctx context.Context, key sqlstore.Key, stored []byte) ([]byte, error)
}

// reopenFailures ends a pass over objects that cannot be decrypted: where so many cannot,
// the others wait for the next one.
const reopenFailures = 1000

// Reopen tries to decrypt the live objects that could not be, as their key may be there
// again, and returns how many can be read now. They keep their revision, so clients'
// watchers hear nothing of it: those that met the object as it could not be read were ended.
// Those of the server's own followers, which passed it over, are told that it is there.
func (c *Cache) Reopen(ctx context.Context, with Opener) (opened int) {
	failed := 0
	c.resources.Range(func(_, v any) bool {
		s := v.(*resource)
		for _, it := range s.sealed() {
			if ctx.Err() != nil || failed == reopenFailures {
				return false
			}
			key := s.keyOf(it)
			plain, err := with.Open(ctx, key, it.JSON())
			if err != nil {
				failed++
				continue
			}
			row := &sqlstore.Row{Key: key, Revision: it.Revision, Created: it.Created, Value: plain}
			if s.reread(it, s.read(row, nil)) {
				opened++
			}
		}
		return true
	})
	return opened
}

// sealed lists the live items that cannot be decrypted, in no order.
func (s *resource) sealed() (list []*Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.corrupt {
		if it.Sealed {
			list = append(list, it)
		}
	}
	return list
}

// reread puts an item that can be read in the place of what it was; false if there is
// another one by now.
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

// reread gives an object that can be read now to a watcher that does not go by the log. The
// resource's mu is held.
func (w *Watcher) reread(it *Item) {
	sc := &w.scope
	if sc.Log != nil || sc.Namespace != "" && sc.Namespace != it.Namespace || sc.Name != "" && sc.Name != it.Name || !sc.Filter.Match(it) {
		return
	}
	if w.is(catchingUp) || !w.push(Delivery{Event: &Event{Type: Added, Item: it}, Type: Added}) {
		w.resource.watchers.remove(w)
		w.end(ErrSlow)
		return
	}
	w.Wake()
}

// A cache file is sealed, so its objects are as its writer had them in memory. No server has unpacked them since they were
// packed, perhaps weeks and several files before: bytes that memory has damaged meanwhile would end each start that
// meets them. So what cannot be unpacked is read from its row once more.

// restoreFor bounds how long who meets such an object waits for the database.
const restoreFor = 10 * time.Second

// restore reads an object from its row whose packed body does not come back, which is its body from then on. It
// is nil where that cannot be, or the row is another object's. Callers may hold the locks of the resource.
func (s *resource) restore(it *Item, b *body) (made *body) {
	from := s.cache.rows.Load()
	if from == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), restoreFor)
	defer cancel()
	err := (*from).ReadRows(ctx, []int64{it.Revision}, func(rows []sqlstore.Row) error {
		for i := range rows {
			if rows[i].Revision != it.Revision || rows[i].Key != s.keyOf(it) {
				continue
			}
			row := rows[i]
			row.Value = bytes.Clone(row.Value)
			if one := s.read(&row, nil); one.Corrupt == nil && one.head == it.head && one.Size() == int(b.size) {
				made = one.body.Load()
			}
		}
		return nil
	})
	if err != nil || made == nil || made.bare() {
		return nil
	}
	if it.body.CompareAndSwap(b, made) {
		it.home.plain.Grow(len(made.data))
	}
	return made
}
