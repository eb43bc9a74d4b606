package cache

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/cache/values"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/tidwall/btree"
)

// core is shared by the resources of one cache.
type core struct {
	streamShared
	catalogue *kinds.Catalogue
	resources sync.Map       // storage key -> *resource
	recent    eventLogBounds // of each resource
	clock     func() time.Time
	json      json.Codec
	corrupt   func(sqlstore.Key, *Item) // see Config.Corrupt
	plain     packing.Budget
	rounds    sync.Mutex // held during a round of packing
	pages     *values.Pages

	rows atomic.Pointer[sqlstore.Attestor] // reads a row again whose packed bytes are damaged; nil before LoadFile and WriteFile
}

// all yields each resource.
func (c *core) all() iter.Seq[*resource] {
	return func(yield func(*resource) bool) {
		c.resources.Range(func(_, v any) bool { return yield(v.(*resource)) })
	}
}

// resource is the objects of one storage in memory: the live items, their indexes, the recent events and the watchers. Apply
// is its only writer; readers take states of it, which never change.
type resource struct {
	storageInfo
	stream

	core     *core
	internal bool
	dropped  atomic.Bool // the cache no longer has it, and nothing changes in it any more

	namespace string // of the last change; guarded by mu

	published atomic.Pointer[state] // the current state; nil if no reader has needed it since the last change
	wantIndex atomic.Bool           // labels are indexed, or about to be

	trees   sync.RWMutex // held, with mu, while the trees change; readers may wait for it
	items   *btree.BTreeG[*Item]
	index   *postings           // of the indexed fields
	labels  *postings           // nil until a selector needs it and it is built
	changed int64               // revision of the last change
	removed int64               // revision at which an item may have been deleted last
	corrupt map[[2]string]*Item // the corrupt ones of items, by namespace and name
	build   *labelBuild         // the index of labels that is being built, or nil
	packer  packer
}

func (c *core) newResource(key string, storage *kinds.Storage, base int64) *resource {
	s := &resource{core: c, internal: Internal(key), items: newItems(), index: newPostings(), changed: base, removed: base}
	s.hub, s.key, s.recent = &c.streamShared, key, eventLog{floor: base, bounds: c.recent}
	s.clock, s.wantLabels = c.clock, s.indexLabels
	s.parse = func(row *sqlstore.Row) *Item { return s.read(row, nil) }
	s.storageInfo.init()
	s.packer.home = &s.storageInfo
	s.plain, s.again = &c.plain, s.restore
	s.setStorage(storage)
	s.watchers.init()
	return s
}

// alter changes the trees. The caller holds mu, unless the resource is new. Trees that no state shares are changed in place:
// copying the paths to the changed entries would make more garbage than everything else that a write does.
func (s *resource) alter(change func()) {
	s.trees.Lock()
	defer s.trees.Unlock()
	s.published.Store(nil)
	change()
}

// state returns the current state. It waits at most as long as a writer needs for one batch.
func (s *resource) state() *state {
	if v := s.published.Load(); v != nil {
		return v
	}
	s.trees.Lock()
	defer s.trees.Unlock()
	if v := s.published.Load(); v != nil {
		return v
	}
	v := &state{changed: s.changed, removed: s.removed, items: s.items.Copy(), corrupt: len(s.corrupt) > 0 || s.unread.Load(), of: &s.readers}
	if s.indexed() {
		v.index, v.keys = s.index.Copy(), s.keys.Load()
	}
	if s.labels != nil {
		v.labels = s.labels.Copy()
	}
	s.published.Store(v)
	return v
}

// get finds an item, or nil, without making a state.
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

// extent returns the number of items, and the revisions of the last change and of the last delete.
func (s *resource) extent() (items int, changed, removed int64) {
	s.trees.RLock()
	defer s.trees.RUnlock()
	return s.items.Len(), s.changed, s.removed
}

// indexed reports whether some field has an index.
func (s *resource) indexed() bool { return len(*s.keys.Load()) > 0 }

// setStorage takes the selectable fields and indexes from the catalogue.
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

// set replaces an older item by it, or removes the older one if it is nil.
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
		reindex(s.index, fieldTerms(*s.keys.Load()), it, old)
	}
	s.relabel(it, old)
}

// indexOf makes the index of the fields of items.
func (s *resource) indexOf(all *items) *postings {
	if s.indexed() && !s.internal {
		return index(all, fieldTerms(*s.keys.Load()), nil, never)
	}
	return newPostings()
}

// refresh follows the catalogue: the selectable fields of custom resources may change.
func (s *resource) refresh(st *kinds.Storage) {
	old := s.storage.Load()
	if old == st {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state() // readers get it until the new index is made
	s.setStorage(st)
	if sameIndex(old, st) {
		return
	}
	made := s.indexOf(s.items)
	s.alter(func() { s.index = made })
	s.watchers.each(func(w *Watcher) {
		if w.is(catchingUp) {
			return // it gets a bucket when it has caught up
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

// apply takes the changes of one batch, in revision order.
func (s *resource) apply(changes []*sqlstore.Change, now int64) {
	if s.applied(changes, now) {
		s.hub.start(s.runRounds)
	}
}

// applied is apply, and leaves it to the caller to start rounds for the watchers with hooks.
func (s *resource) applied(changes []*sqlstore.Change, now int64) (start bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := make([]*Event, 0, len(changes))
	listed := !s.internal && (s.indexed() || s.labels != nil)
	for _, ch := range changes {
		it := s.itemOf(ch)
		if listed && !ch.Deleted {
			it.Meta() // the indexes need it below, where readers wait
		}
		events = append(events, &Event{Item: it, at: now})
	}
	s.alter(func() {
		for i, e := range events {
			s.take(changes[i], e)
		}
	})
	if s.internal {
		return false
	}
	for _, e := range events {
		s.recent.add(e)
		s.dispatch(e)
	}
	return s.watchers.wake()
}

// itemOf makes the item of a change.
func (s *resource) itemOf(ch *sqlstore.Change) (it *Item) {
	pending, _ := ch.Aux.(*Pending)
	if ch.Aux != nil && !s.internal && ch.Unopened == nil && ch.Damaged == nil { // this process has encoded it
		if it = bareItem(&ch.Row, &s.storageInfo, s.namespaceOf(&ch.Key)); !pending.complete(it) {
			it.splice(nil, ch.Value)
		}
	} else {
		it = s.readIn(&ch.Row, nil, s.namespaceOf(&ch.Key))
	}
	s.plain.Grow(it.Size())
	if pending != nil {
		pending.Item = it
	}
	return it
}

// namespaceOf returns the namespace for an item of a change, which shares it with another item. All writers wait for the caller, so it
// must not wait for a garbage collection, as sharedName may. The caller holds mu.
func (s *resource) namespaceOf(key *sqlstore.Key) string {
	if s.namespace == key.Namespace {
		return s.namespace
	}
	s.trees.RLock()
	near := neighbor(s.items, key.Namespace, key.Name)
	s.trees.RUnlock()
	if near != nil {
		s.namespace = near.Namespace
	} else {
		s.namespace = strings.Clone(key.Namespace)
	}
	return s.namespace
}

// take enters the item of a change, and completes its event.
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

// rewind makes the state at an earlier revision by undoing recent events. It returns nil if they do not reach back so far.
func (s *resource) rewind(revision int64) *state {
	s.mu.Lock()
	if revision < s.recent.floor {
		s.mu.Unlock()
		return nil
	}
	s.trees.Lock()
	items := s.items.Copy()
	s.trees.Unlock()
	undo := append([]*Event(nil), s.recent.after(revision)...)
	s.mu.Unlock()
	for i := len(undo) - 1; i >= 0; i-- {
		if e := undo[i]; e.Prev != nil {
			items.Set(e.Prev)
		} else {
			items.Delete(e.Item)
		}
	}
	return &state{changed: revision, items: items, corrupt: true, of: &s.readers} // some may be
}

func (s *resource) keyOf(it *Item) sqlstore.Key {
	return sqlstore.Key{Resource: s.key, Namespace: it.Namespace, Name: it.Name}
}

// resource returns the kind of the objects in their stored version, or nil.
func (s *resource) resource() *kinds.Resource {
	if s.core.catalogue == nil || s.internal {
		return nil
	}
	return s.core.catalogue.ByStorage(s.key)
}

// read makes an item of a row of the table.
func (s *resource) read(row *sqlstore.Row, room []byte) *Item {
	return s.readIn(row, room, sharedName(row.Key.Namespace))
}

// readIn is read with the item's namespace.
func (s *resource) readIn(row *sqlstore.Row, room []byte, namespace string) *Item {
	it := bareItem(row, &s.storageInfo, namespace)
	switch {
	case !s.internal:
		it.scanUntrusted(s.core.json, s.resource(), row, room)
	case row.Damaged != nil:
		it.fail(row.Damaged)
	}
	return it
}

// count keeps corrupt up to date.
func (s *resource) count(it, old *Item) {
	if old != nil && old.Err() != nil {
		delete(s.corrupt, [2]string{old.Namespace, old.Name})
	}
	if it == nil || it.Err() == nil {
		return
	}
	if s.corrupt == nil {
		s.corrupt = map[[2]string]*Item{}
	}
	s.corrupt[[2]string{it.Namespace, it.Name}] = it
	if f := s.core.corrupt; f != nil {
		f(s.keyOf(it), it)
	}
}

// restoreFor bounds how long a reader of a damaged object waits for the database.
const restoreFor = 10 * time.Second

// restore reads an object from its row if its packed body cannot be unpacked, and makes the result its body. It returns nil
// if it cannot read the row, or if the row is another object's. Callers may hold the locks of the resource.
//
// The seal of a cache file shows that its objects are as its writer had them in memory. But objects may go from file to file
// for weeks without being unpacked, and memory that damages one meanwhile must not end every later start.
func (s *resource) restore(it *Item, b *body) (made *body) {
	from := s.core.rows.Load()
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
			if one := s.read(&rows[i], nil); one.Err() == nil && one.head() == it.head() && one.Size() == int(b.size) {
				made = one.body.Load()
			}
		}
		return nil
	})
	if err != nil || made == nil || made.bare() {
		return nil
	}
	if it.body.CompareAndSwap(b, made) {
		s.plain.Grow(made.weight())
	}
	return made
}
