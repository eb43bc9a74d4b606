package cache

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/tidwall/btree"
)

// resource is the objects of one storage in memory: the live items, their index, the recent events,
// and the watchers. Apply is its only writer; readers take states of it, which never change.
type resource struct {
	home

	cache    *Cache
	key      string
	internal bool
	keys     atomic.Pointer[[]string] // posting keys of its fields, "" where there is no index

	published atomic.Pointer[state] // of now; nil: nobody has asked for it since the last change
	wantIndex atomic.Bool           // labels are indexed, or about to be

	mu       sync.Mutex   // held while the resource changes, and to watch from a known point
	trees    sync.RWMutex // held, beside mu, while what a state is made of changes; readers wait for it
	items    *btree.BTreeG[*Item]
	index    *postings           // of the fields that are indexed
	labels   *postings           // nil until a selector asked for them, and a while longer
	changed  int64               // newest revision in items
	removed  int64               // the last one at which an item may have gone
	corrupt  map[[2]string]*Item // those of items that cannot be read, by namespace and name
	build    *labelBuild         // labels in the making, or nil
	recent   eventLog
	watchers watchers
	// generation counts the calls of End.
	generation int64

	pins   pins
	packer packer
}

// state is a state of a resource that never changes.
type state struct {
	changed int64 // the state is that of every revision from here to the next change
	removed int64 // no item has gone since
	items   *btree.BTreeG[*Item]
	index   *postings // of fields; nil: none are indexed
	labels  *postings // nil: not indexed, or not yet
	corrupt bool      // some of items cannot be read, or may not
}

func byKey(a, b *Item) bool {
	if a.Namespace != b.Namespace {
		return a.Namespace < b.Namespace
	}
	return a.Name < b.Name
}

func newResource(key string, storage *kinds.Storage, base int64, bounds eventLogBounds) *resource {
	s := &resource{
		key:      key,
		internal: Internal(key),
		items:    newItems(),
		index:    newPostings(),
		changed:  base,
		removed:  base,
		recent:   eventLog{floor: base, bounds: bounds},
	}
	s.setStorage(storage)
	s.watchers.init()
	return s
}

// alter changes what a state is made of; mu is held, but while the resource is new. A tree of
// which no state was asked for since the last change is changed where it lies: a write that copied
// the way to each of its entries made more garbage than all else that it did.
func (s *resource) alter(change func()) {
	s.trees.Lock()
	defer s.trees.Unlock()
	s.published.Store(nil)
	change()
}

// state is the items as they are now. It takes no longer than writers need for one batch.
func (s *resource) state() *state {
	if v := s.published.Load(); v != nil {
		return v
	}
	s.trees.Lock()
	defer s.trees.Unlock()
	if v := s.published.Load(); v != nil {
		return v
	}
	v := &state{changed: s.changed, removed: s.removed, items: s.items.Copy(), corrupt: len(s.corrupt) > 0}
	if s.indexed() {
		v.index = s.index.Copy()
	}
	if s.labels != nil {
		v.labels = s.labels.Copy()
	}
	s.published.Store(v)
	return v
}

// get finds an item, or nil, without a state being made for it.
func (s *resource) get(namespace, name string) *Item {
	if v := s.published.Load(); v != nil {
		return v.get(namespace, name)
	}
	p := pivot(namespace, name)
	defer release(p)
	s.trees.RLock()
	defer s.trees.RUnlock()
	it, _ := s.items.Get(p)
	return it
}

// extent is how many items there are, when they changed last, and when one went last.
func (s *resource) extent() (items int, changed, removed int64) {
	s.trees.RLock()
	defer s.trees.RUnlock()
	return s.items.Len(), s.changed, s.removed
}

// indexed says that there are fields that have an index.
func (s *resource) indexed() bool { return len(*s.keys.Load()) > 0 }

// indexKey is the posting key of a selectable field, "" if it has no index.
func (s *resource) indexKey(field int) string {
	if keys := *s.keys.Load(); field >= 0 && field < len(keys) {
		return keys[field]
	}
	return ""
}

// setStorage takes over what the catalogue says of the key.
func (s *resource) setStorage(st *kinds.Storage) {
	var keys []string
	if st != nil && len(st.Indexed) > 0 {
		keys = make([]string, len(st.Fields))
		for i, f := range st.Fields {
			if slices.Contains(st.Indexed, f.Label) {
				keys[i] = fieldTerm + f.Label
			}
		}
	}
	s.keys.Store(&keys)
	s.storage.Store(st)
}

// set puts an item in place of an older one, or removes that one (nil).
func (s *resource) set(it, old *Item) {
	s.count(it, old)
	if it != nil {
		s.items.Set(it)
	} else if old != nil {
		s.items.Delete(old)
	}
	if s.internal {
		return
	}
	if s.indexed() {
		reenter(s.index, fieldTerms(*s.keys.Load()), it, old)
	}
	s.relabel(it, old)
}

// indexOf is the index of the fields of some items.
func (s *resource) indexOf(all *items) *postings {
	if s.indexed() && !s.internal {
		return index(all, fieldTerms(*s.keys.Load()), nil, never)
	}
	return newPostings()
}

// refresh follows the catalogue: selectable fields of custom resources may change.
func (s *resource) refresh(st *kinds.Storage) {
	old := s.storage.Load()
	if old == st {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state() // which readers are given while the index is not that of the fields
	s.setStorage(st)
	if sameIndex(old, st) {
		return
	}
	made := s.indexOf(s.items)
	s.alter(func() { s.index = made })
	s.watchers.each(func(w *Watcher) {
		if w.is(catchingUp) {
			return // it is given a place when it has caught up
		}
		s.watchers.remove(w)
		w.place = s.bucketFor(&w.scope)
		s.watchers.add(w)
	})
}

func sameIndex(a, b *kinds.Storage) bool {
	if a == nil || b == nil {
		return a == b || (a == nil || len(a.Indexed) == 0) && (b == nil || len(b.Indexed) == 0)
	}
	return slices.Equal(a.Indexed, b.Indexed) && slices.EqualFunc(a.Fields, b.Fields,
		func(x, y kinds.SelectableField) bool {
			return x.Label == y.Label && slices.Equal(x.Path, y.Path) && x.Default == y.Default
		})
}

// apply takes the resource's changes of one batch, in revision order.
func (s *resource) apply(changes []*sqlstore.Change, now int64) {
	if f := s.applied(changes, now); f != nil {
		f.start(&s.cache.fanOuts)
	}
}

// applied is apply, but for what the watchers with hooks are to be told.
func (s *resource) applied(changes []*sqlstore.Change, now int64) *fanOut {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := make([]*Event, 0, len(changes))
	listed := !s.internal && (s.indexed() || s.labels != nil)
	for _, ch := range changes {
		it := s.itemOf(ch)
		if listed && !ch.Deleted {
			it.Meta() // here, as the indexes want it below, where readers wait
		}
		events = append(events, &Event{Item: it, at: now})
	}
	s.alter(func() {
		for i, e := range events {
			s.take(changes[i], e)
		}
	})
	if s.internal {
		return nil
	}
	for _, e := range events {
		s.recent.add(e)
		s.dispatch(e)
	}
	return s.watchers.wake()
}

// itemOf is the item of a change.
func (s *resource) itemOf(ch *sqlstore.Change) (it *Item) {
	if ch.Aux != nil && !s.internal && ch.Unopened == nil && ch.Damaged == nil { // this process wrote it
		it = bareItem(&ch.Row, &s.home)
		it.splice(nil, ch.Value)
	} else {
		it = s.read(&ch.Row, nil)
	}
	s.plain.Grow(it.Size())
	if pending, ok := ch.Aux.(*Pending); ok && pending != nil {
		pending.Item = it
	}
	return it
}

// take puts the item of a change in its place, and completes its event.
func (s *resource) take(ch *sqlstore.Change, e *Event) {
	it := e.Item
	old, _ := s.items.Get(it)
	e.Type, e.Prev = Modified, old
	switch {
	case ch.Deleted:
		e.Type = Deleted
		s.set(nil, old)
		s.removed = ch.Revision
	case old == nil:
		e.Type = Added
		s.set(it, nil)
	default:
		s.set(it, old)
	}
	s.changed = ch.Revision
}
