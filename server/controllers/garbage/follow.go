package garbage

import (
	"context"
	"slices"
	"time"
	"unique"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/definitions"
	"github.com/rowlock/rowlock/server/controllers/garbage/graph"
)

// follower keeps the graph in step with the cache. It belongs to the goroutine of Run.
type follower struct {
	*state
	progress   *progress
	generation uint64 // of the catalogue that they are of
	byStorage  map[string]*source
	ended      []uint32  // numbers of storages that are not followed any more
	defining   time.Time // until when the catalogue is checked often
	batch      []cache.Delivery
	owners     []cache.Owner
	refs       []graph.Ref
}

// ownersOf returns an object's references, which are valid until the next call. If they cannot be read, it logs that, and ok is false.
func (c *follower) ownersOf(item *cache.Item) (_ []cache.Owner, ok bool) {
	if err := cache.Try(func() { c.owners = item.Owners(c.owners[:0]) }); err != nil {
		c.logUnread(item, err)
		return nil, false
	}
	return c.owners, true
}

// How soon the catalogue is checked after a change of a definition, for how long, and how
// often else.
const (
	definingEvery = 20 * time.Millisecond
	definingLasts = 2 * time.Second
	lookEvery     = 5 * time.Second
)

func (c *follower) nextLook(now time.Time) time.Duration {
	if now.Before(c.defining) {
		return definingEvery
	}
	return lookEvery
}

// follow brings the sources in step with the catalogue.
func (c *follower) follow(ctx context.Context) {
	all, generation := c.Catalogue.Snapshot()
	if generation == c.generation {
		return
	}
	c.generation, c.defining = generation, time.Time{}
	wanted := map[string]bool{}
	var fresh []*source
	for _, r := range all {
		if !collectable(r) {
			continue
		}
		wanted[r.Storage.Key] = true
		c.mu.Lock()
		kind := c.kinds.numberOf(r)
		c.mu.Unlock()
		if c.byStorage[r.Storage.Key] == nil {
			s := &source{storage: r.Storage.Key, kind: kind}
			c.byStorage[s.storage] = s
			fresh = append(fresh, s)
		}
	}
	for storage, s := range c.byStorage {
		if !wanted[storage] {
			c.end(s)
		}
	}
	c.load(ctx, fresh)
	c.forgetEnded()
	if !c.parking.at.IsZero() { // owners that were unknown may be known now
		c.parking.at, c.parking.rest = c.Clock(), 0
	}
}

// end stops following a storage. Its objects were deleted, or exist without being served: temporarily, or because their
// definition is unreadable.
func (c *follower) end(s *source) {
	s.watcher.Stop()
	delete(c.byStorage, s.storage)
	c.mu.Lock()
	c.graph.Begin(s.kind)
	c.mu.Unlock()
	c.lose(s)
	c.ended = append(c.ended, s.kind)
}

// forgetEnded releases the numbers of storages that are no longer followed, once no dependent names one of
// their objects. Objects that existed at the last check may be gone.
func (c *follower) forgetEnded() {
	for _, kind := range c.ended {
		c.mu.Lock()
		name := c.kinds.names[kind]
		c.mu.Unlock()
		if name != nil && c.byStorage[name.storage] == nil {
			c.lose(&source{storage: name.storage, kind: kind})
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = slices.DeleteFunc(c.ended, func(kind uint32) bool {
		name := c.kinds.names[kind]
		return name == nil || c.byStorage[name.storage] != nil || c.kinds.forget(kind, c.graph)
	})
}

func (c *follower) stop() {
	for _, s := range c.byStorage {
		s.watcher.Stop()
	}
}

// load watches storages from now on, reads its objects, and looks at the new ones once
// all is known.
func (c *follower) load(ctx context.Context, list []*source) {
	snapshots := make([]*cache.Snapshot, len(list))
	newest := int64(0)
	for i, s := range list {
		s.watcher, snapshots[i] = c.Cache.WatchNow(s.storage, cache.Scope{})
		s.upTo = snapshots[i].Revision
		newest = max(newest, s.upTo)
		ring := func() { c.notifier.notify(s) }
		s.watcher.SetHooks(cache.HookFuncs(ring, ring))
		c.notifier.notify(s) // of changes from before there were hooks
	}
	var changed []*cache.Item
	for i, s := range list {
		c.mu.Lock()
		c.graph.Begin(s.kind)
		c.mu.Unlock()
		snapshots[i].Ascend("", "", "", func(item *cache.Item) bool {
			if c.set(s, item) {
				changed = append(changed, item)
			}
			return ctx.Err() == nil
		})
		if ctx.Err() != nil {
			return
		}
		c.lose(s)
	}
	c.screen(ctx, newest, changed)
}

// lose removes objects that a storage no longer has. Objects in the cache exist, whatever happened to the
// storage.
func (c *follower) lose(s *source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.graph.Missing(s.kind) {
		if n, ok := c.graph.Find(id); ok && !c.has(s.storage, n.Place.Namespace.Value(), n.Place.Name, id) {
			c.graph.Gone(id, &n.Place, c.queueFor(c.graph.ClearUrgent(id)))
		}
	}
}

// feed takes the changes of sources.
func (c *follower) feed(ctx context.Context, changed []*source) {
	for _, s := range changed {
		if s.watcher != nil && c.byStorage[s.storage] == s {
			c.take(ctx, s)
		}
	}
}

// take takes the waiting changes of a source.
func (c *follower) take(ctx context.Context, s *source) {
	batch, given, err := s.watcher.Take(ctx, c.batch)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		// The storage is served again, or changes were too fast: read everything again.
		if r := c.Catalogue.ByStorage(s.storage); r == nil || !collectable(r) {
			s.upTo = c.Cache.Revision()
			c.end(s)
			c.generation = 0 // the resource may be served again
			return
		}
		s.watcher.Stop()
		c.load(ctx, []*source{s})
		return
	}
	c.batch = batch
	if s.storage == definitions.Storage && len(batch) > 0 {
		c.defining = c.Clock().Add(definingLasts)
	}
	var changed []*cache.Item
	newest := int64(0)
	c.Changes.Add(len(batch))
	for _, d := range batch {
		c.Changes.Work(func() bool {
			item := d.Item()
			newest = max(newest, item.Revision)
			if d.Type == cache.Deleted {
				c.gone(s, d)
			} else if c.set(s, item) {
				changed = append(changed, item)
			}
			return true
		})
	}
	s.upTo = given
	c.screen(ctx, newest, changed)
}

// set takes an object as it is now, and reports whether it refers to owners, otherwise than
// before.
func (c *follower) set(s *source, item *cache.Item) bool {
	if item.Err() != nil {
		return false // it may be read later; until then it is as it was
	}
	owners, ok := c.ownersOf(item)
	if !ok {
		return false // the same
	}
	info, refs := item.OwnerInfo(), c.refs[:0]
	for _, o := range owners {
		refs = append(refs, graph.Ref{Owner: graph.IDOf(o.UID), Blocks: o.Blocks})
	}
	c.refs = refs
	o := graph.Object{ID: graph.IDOf(info.UID), Place: placeOf(s.kind, item), State: stateOf(info), Refs: refs}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.graph.Set(&o, c.queueFor(c.graph.ClearUrgent(o.ID))) && len(refs) > 0
}

func placeOf(kind uint32, item *cache.Item) graph.Place {
	return graph.Place{Kind: kind, Namespace: unique.Make(item.Namespace), Name: item.Name}
}

// gone handles the deletion of an object.
func (c *follower) gone(s *source, d cache.Delivery) {
	item := d.Item()
	if item.Err() != nil && d.Event.Prev != nil {
		item = d.Event.Prev
	}
	if item.Err() != nil {
		return // the owner is unknown
	}
	id, p := graph.IDOf(item.OwnerInfo().UID), placeOf(s.kind, item)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.graph.Gone(id, &p, c.queueFor(c.graph.ClearUrgent(id)))
}

// queueFor queues objects: immediately if the change follows from the collector's own work, otherwise after
// it has settled.
func (c *follower) queueFor(own bool) func(graph.WorkItem) {
	after := c.Debounce
	if own {
		after = 0
	}
	return func(what graph.WorkItem) { c.queue.AddAfter(what, after) }
}

// catchUp takes changes of all sources until the graph has the newest revision that a waiter needs.
func (c *follower) catchUp(ctx context.Context) {
	c.progress.mu.Lock()
	waiting := c.progress.waiting
	c.progress.waiting = nil
	c.progress.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	newest := int64(0)
	for _, w := range waiting {
		newest = max(newest, w.revision)
	}
	if newest > c.progress.upTo.Load() {
		if c.Cache.WaitFor(ctx, newest) != nil {
			return
		}
		c.follow(ctx) // a kind may have been added in the meantime
		for _, s := range c.byStorage {
			for s.upTo < newest && ctx.Err() == nil {
				c.take(ctx, s)
			}
		}
		c.progress.upTo.Store(newest)
	}
	for _, w := range waiting {
		close(w.done)
	}
}

// screen checks objects whose owner references have changed, once the cache has
// everything up to a revision, and queues those that may have to be deleted or changed.
func (c *follower) screen(ctx context.Context, newest int64, items []*cache.Item) {
	if len(items) == 0 || c.Cache.WaitFor(ctx, newest) != nil {
		return
	}
	var known ownerMemo
	for _, item := range items {
		owners, ok := c.ownersOf(item)
		if !ok {
			c.queue.AddAfter(graph.WorkItem{ID: graph.IDOf(item.OwnerInfo().UID), Namespace: unique.Make(item.Namespace)}, c.Debounce)
			continue
		}
		for _, r := range owners {
			if known.is(item, &r) {
				continue
			}
			if o, err := c.resolveOwner(item, &r); o != solid || err != nil {
				c.queue.AddAfter(graph.WorkItem{ID: graph.IDOf(item.OwnerInfo().UID), Namespace: unique.Make(item.Namespace)}, c.Debounce)
				break
			}
			known = ownerMemo{item.Namespace, r}
		}
	}
}

// ownerMemo is the last owner that was found to be there: objects that follow each other mostly
// have the same.
type ownerMemo struct {
	namespace string
	owner     cache.Owner
}

func (s *ownerMemo) is(item *cache.Item, r *cache.Owner) bool {
	o := &s.owner
	return s.namespace == item.Namespace && o.UID != "" && o.UID == r.UID && o.Name == r.Name && o.Kind == r.Kind && o.APIVersion == r.APIVersion
}

// idle returns how long the follower may wait for the notifier, if a key is due after next (0: no key is due).
func (c *follower) idle(next time.Duration) time.Duration {
	idle := c.nextLook(c.Clock())
	if next > 0 {
		idle = min(idle, next)
	}
	if at := c.parking.at; !at.IsZero() {
		idle = min(idle, at.Sub(c.Clock()))
	}
	return max(idle, 0)
}
