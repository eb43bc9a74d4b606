package garbage

import (
	"context"
	"slices"
	"time"
	"unique"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/definitions"
	"github.com/rowlock/rowlock/server/controllers/garbage/graph"
	"github.com/rowlock/rowlock/server/kinds"
)

// source is a storage that is followed.
type source struct {
	kind    uint32 // its number in the graph
	storage string
	watcher *cache.Watcher
	given   int64 // the revision up to which everything was taken
	rung    bool  // guarded by the bell
}

// sources are all storages that are followed. They belong to the goroutine of Run.
type sources struct {
	generation uint64 // of the catalogue that they are of
	byStorage  map[string]*source
	ended      []uint32  // numbers of storages that are not followed any more
	defining   time.Time // until when the catalogue is looked at often
	unpark     time.Time // when objects of which nothing could be said are looked at again; zero: there are none
	rest       time.Duration
	batch      []cache.Delivery
	owners     []cache.Owner
	refs       []graph.Ref
}

// ownersOf are an object's references, which are good until another's are asked for.
func (s *sources) ownersOf(item *cache.Item) []cache.Owner {
	s.owners = item.Owners(s.owners[:0])
	return s.owners
}

// How soon the catalogue is looked at after a change of a definition, for how long, and how
// often else.
const (
	definingEvery = 20 * time.Millisecond
	definingLasts = 2 * time.Second
	lookEvery     = 5 * time.Second
)

func (s *sources) nextLook(now time.Time) time.Duration {
	if now.Before(s.defining) {
		return definingEvery
	}
	return lookEvery
}

// collectable says whether objects of a resource can be garbage.
func collectable(r *kinds.Resource) bool {
	return r.Storage != nil && !r.Storage.ForbidFinalizeOrphans &&
		slices.Contains(r.Verbs, "delete") && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch")
}

// follow brings the sources in step with the catalogue.
func (c *collection) follow(ctx context.Context) {
	all, generation := c.Catalogue.Snapshot()
	if generation == c.sources.generation {
		return
	}
	c.sources.generation, c.sources.defining = generation, time.Time{}
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
		if c.sources.byStorage[r.Storage.Key] == nil {
			s := &source{storage: r.Storage.Key, kind: kind}
			c.sources.byStorage[s.storage] = s
			fresh = append(fresh, s)
		}
	}
	for storage, s := range c.sources.byStorage {
		if !wanted[storage] {
			c.end(s)
		}
	}
	c.load(ctx, fresh)
	c.forgetEnded()
	if !c.sources.unpark.IsZero() { // what nobody knew may be known now
		c.sources.unpark, c.sources.rest = c.Clock(), 0
	}
}

// end follows a storage no more. Its objects are gone, or are there and not served: for a
// while, or because nobody can read their definition.
func (c *collection) end(s *source) {
	s.watcher.Stop()
	delete(c.sources.byStorage, s.storage)
	c.mu.Lock()
	c.graph.Begin(s.kind)
	c.mu.Unlock()
	c.lose(s)
	c.sources.ended = append(c.sources.ended, s.kind)
}

// forgetEnded gives back the numbers of storages that are followed no more, once no dependent
// names one of their objects. Objects that were still there may be gone meanwhile.
func (c *collection) forgetEnded() {
	for _, kind := range c.sources.ended {
		c.mu.Lock()
		name := c.kinds.names[kind]
		c.mu.Unlock()
		if name != nil && c.sources.byStorage[name.storage] == nil {
			c.lose(&source{storage: name.storage, kind: kind})
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources.ended = slices.DeleteFunc(c.sources.ended, func(kind uint32) bool {
		name := c.kinds.names[kind]
		return name == nil || c.sources.byStorage[name.storage] != nil || c.kinds.forget(kind, c.graph)
	})
}

func (c *collection) stop() {
	for _, s := range c.sources.byStorage {
		s.watcher.Stop()
	}
}

// load watches storages from now on, takes what is there, and looks at what is new of it once
// all is known.
func (c *collection) load(ctx context.Context, list []*source) {
	snapshots := make([]*cache.Snapshot, len(list))
	newest := int64(0)
	for i, s := range list {
		s.watcher, snapshots[i] = c.Cache.WatchNow(s.storage, cache.Scope{})
		s.given = snapshots[i].Revision
		newest = max(newest, s.given)
		ring := func() { c.bell.ring(s) }
		s.watcher.SetHooks(cache.HookFuncs(ring, ring))
		c.bell.ring(s) // of what came before there were hooks
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

// lose takes what is not there any more of a storage. What memory has is there, whatever else
// became of it.
func (c *collection) lose(s *source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.graph.Lost(s.kind) {
		if n, ok := c.graph.Find(id); ok && !c.has(s.storage, n.Place.Namespace.Value(), n.Place.Name, id) {
			c.graph.Gone(id, &n.Place, c.queueFor(c.graph.Calm(id)))
		}
	}
}

// feed takes the changes of sources.
func (c *collection) feed(ctx context.Context, rung []*source) {
	for _, s := range rung {
		if s.watcher != nil && c.sources.byStorage[s.storage] == s {
			c.take(ctx, s)
		}
	}
}

// take takes what waits of the changes of a source.
func (c *collection) take(ctx context.Context, s *source) {
	batch, given, err := s.watcher.Take(ctx, c.sources.batch)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		// It is served anew, or changes came too fast: all is read again.
		if r := c.Catalogue.ByStorage(s.storage); r == nil || !collectable(r) {
			s.given = c.Cache.Revision()
			c.end(s)
			c.sources.generation = 0 // it may be served again by now
			return
		}
		s.watcher.Stop()
		c.load(ctx, []*source{s})
		return
	}
	c.sources.batch = batch
	if s.storage == definitions.Storage && len(batch) > 0 {
		c.sources.defining = c.Clock().Add(definingLasts)
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
	s.given = given
	c.screen(ctx, newest, changed)
}

// set takes an object as it is now, and says whether it refers to owners, otherwise than
// before.
func (c *collection) set(s *source, item *cache.Item) bool {
	if item.Corrupt != nil {
		return false // it may be read later; until then it is as it was
	}
	info, refs := item.OwnerInfo(), c.sources.refs[:0]
	for _, o := range c.sources.ownersOf(item) {
		refs = append(refs, graph.Ref{Owner: graph.IDOf(o.UID), Blocks: o.Blocks})
	}
	c.sources.refs = refs
	o := graph.Object{ID: graph.IDOf(info.UID), Place: placeOf(s.kind, item), State: stateOf(info), Refs: refs}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.graph.Set(&o, c.queueFor(c.graph.Calm(o.ID))) && len(refs) > 0
}

func placeOf(kind uint32, item *cache.Item) graph.Place {
	return graph.Place{Kind: kind, Namespace: unique.Make(item.Namespace), Name: item.Name}
}

// gone takes that an object is gone.
func (c *collection) gone(s *source, d cache.Delivery) {
	item := d.Item()
	if item.Corrupt != nil && d.Event.Prev != nil {
		item = d.Event.Prev
	}
	if item.Corrupt != nil {
		return // nobody could say who it was
	}
	id, p := graph.IDOf(item.OwnerInfo().UID), placeOf(s.kind, item)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.graph.Gone(id, &p, c.queueFor(c.graph.Calm(id)))
}

// queueFor has objects looked at: at once where what happened follows from what the collector
// did itself, and else when it has settled.
func (c *collection) queueFor(own bool) func(graph.Look) {
	after := c.Settle
	if own {
		after = 0
	}
	return func(what graph.Look) { c.queue.Plan(what, after) }
}
