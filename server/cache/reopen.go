package cache

import (
	"context"

	"github.com/rowlock/rowlock/sqlstore"
)

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
