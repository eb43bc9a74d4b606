package cache

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/tracing"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/tidwall/btree"
)

// core is what the resources of one cache share.
type core struct {
	hub
	catalogue *kinds.Catalogue
	resources sync.Map       // storage key -> *resource
	recent    eventLogBounds // of each resource
	clock     func() time.Time
	json      json.Codec
	corrupt   func(sqlstore.Key, *Item) // see Config.Corrupt
	plain     packing.Budget

	rows atomic.Pointer[sqlstore.Attestor] // reads a row again whose packed bytes are damaged; nil before LoadFile
}

// each calls fn with each resource.
func (c *core) each(fn func(*resource)) {
	c.resources.Range(func(_, v any) bool {
		fn(v.(*resource))
		return true
	})
}

// Pending travels as sqlstore.Op.Aux from a writer to Apply, which sets Item before the write is acknowledged. So the
// writer answers with the same item that readers see.
type Pending struct {
	Item   *Item
	Commit *tracing.Span // of the write, where it is traced
}

// resource is the objects of one storage in memory: the live items, their index, the recent events,
// and the watchers. Apply is its only writer; readers take states of it, which never change.
type resource struct {
	home
	stream

	core     *core
	internal bool

	published atomic.Pointer[state] // of now; nil: nobody has asked for it since the last change
	wantIndex atomic.Bool           // labels are indexed, or about to be

	trees   sync.RWMutex // held, beside mu, while what a state is made of changes; readers wait for it
	items   *btree.BTreeG[*Item]
	index   *postings           // of the fields that are indexed
	labels  *postings           // nil until a selector asked for them, and a while longer
	changed int64               // newest revision in items
	removed int64               // the last one at which an item may have gone
	corrupt map[[2]string]*Item // those of items that cannot be read, by namespace and name
	build   *labelBuild         // labels in the making, or nil
	packer  packer
}

func (c *core) newResource(key string, storage *kinds.Storage, base int64) *resource {
	s := &resource{core: c, internal: Internal(key), items: newItems(), index: newPostings(), changed: base, removed: base}
	s.hub, s.key, s.recent = &c.hub, key, eventLog{floor: base, bounds: c.recent}
	s.clock, s.wantLabels = c.clock, s.indexLabels
	s.parse = func(row *sqlstore.Row) *Item { return s.read(row, nil) }
	s.plain, s.again = &c.plain, s.restore
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
	v := &state{changed: s.changed, removed: s.removed, items: s.items.Copy(), corrupt: len(s.corrupt) > 0, of: &s.readers}
	if s.indexed() {
		v.index, v.keys = s.index.Copy(), s.keys.Load()
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
		f.start(s.hub)
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

// rewind makes the state at an earlier revision by undoing recent events, or
// returns nil if they do not reach back so far.
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
	return &state{changed: revision, items: items, corrupt: true, of: &s.readers} // some of them may be
}

func (s *resource) keyOf(it *Item) sqlstore.Key {
	return sqlstore.Key{Resource: s.key, Namespace: it.Namespace, Name: it.Name}
}

// resource is what serves the resource's objects in their stored version, or nil.
func (s *resource) resource() *kinds.Resource {
	if s.core.catalogue == nil || s.internal {
		return nil
	}
	return s.core.catalogue.ByStorage(s.key)
}

// read makes an item of a row as it lies in the table.
func (s *resource) read(row *sqlstore.Row, room []byte) *Item {
	it := bareItem(row, &s.home)
	switch {
	case !s.internal:
		it.judge(s.core.json, s.resource(), row, room)
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
	if f := s.core.corrupt; f != nil {
		f(s.keyOf(it), it)
	}
}

// A cache file is sealed, so its objects are as its writer had them in memory. No server has unpacked them since they were
// packed, perhaps weeks and several files before: bytes that memory has damaged meanwhile would end each start that
// meets them. So what cannot be unpacked is read from its row once more.

// restoreFor bounds how long who meets such an object waits for the database.
const restoreFor = 10 * time.Second

// restore reads an object from its row whose packed body does not come back, which is its body from then on. It
// is nil where that cannot be, or the row is another object's. Callers may hold the locks of the resource.
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

// labelBuild is an index of labels in the making. Items change meanwhile.
type labelBuild struct{ meanwhile []moved }

// moved is an item that took the place of an older one; either may be nil.
type moved struct{ it, old *Item }

// Bounds of what is kept of the changes that come while labels are indexed.
const (
	fewMoved  = 256     // so many are entered while writers wait
	mostMoved = 1 << 20 // with more, the index is given up
	mostTurns = 32      // of entering what came during the last one
)

// indexLabels lets an index of labels be made, if there is none and nobody is at it. Readers
// look at all items until it is there.
func (s *resource) indexLabels() {
	if s.internal || s.wantIndex.Swap(true) {
		return
	}
	s.hub.start(s.buildLabels)
}

// buildLabels makes the index out of what is published, beside the lock. What comes meanwhile
// is entered in turns, each shorter than the one before; of the last few writers wait.
func (s *resource) buildLabels() {
	b := &labelBuild{}
	s.mu.Lock()
	s.build = b
	v := s.state()
	s.mu.Unlock()
	labels := index(v.items, labelTerms, sameLabels, s.hub.isClosed)
	if labels == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dropBuild(b)
		return
	}
	for turn := 0; ; turn++ {
		some, more := s.finish(b, labels, turn)
		if !more {
			return
		}
		for _, m := range some {
			reenter(labels, labelTerms, m.it, m.old)
		}
	}
}

// finish publishes the index if little is missing. Otherwise it returns what is, and more.
func (s *resource) finish(b *labelBuild, labels *postings, turn int) (some []moved, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.build != b { // the items are others now, or too many changed
		return nil, false
	}
	some, b.meanwhile = b.meanwhile, nil
	if len(some) > fewMoved {
		if turn < mostTurns {
			return some, true
		}
		s.dropBuild(b)
		return nil, false
	}
	for _, m := range some {
		reenter(labels, labelTerms, m.it, m.old)
	}
	s.build = nil
	s.alter(func() { s.labels = labels })
	return nil, false
}

// dropBuild gives an index up; the next reader who would use one begins anew. The resource's
// mu is held.
func (s *resource) dropBuild(b *labelBuild) {
	if s.build == b {
		s.build = nil
		s.wantIndex.Store(false)
	}
}

// relabel keeps the labels' index in step with a change, or the one in the making. The
// resource's mu is held.
func (s *resource) relabel(it, old *Item) {
	switch b := s.build; {
	case s.labels != nil:
		reenter(s.labels, labelTerms, it, old)
	case b == nil:
	case len(b.meanwhile) == mostMoved:
		s.dropBuild(b)
	default:
		b.meanwhile = append(b.meanwhile, moved{it, old})
	}
}

// forgetLabels is for when the items are all others. It returns whether an index was there, or
// in the making. The resource's mu is held.
func (s *resource) forgetLabels() (had bool) {
	had = s.wantIndex.Swap(false)
	s.labels, s.build = nil, nil
	return had
}
