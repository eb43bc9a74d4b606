// Package endpoints finds the EndpointSlices of a Service without a scan of those of others.
//
// A reader that calls after a write of a slice was acknowledged sees that write, and Of returns the same
// pointer as long as the slices of the Service are the same, so that callers can cache what they derive from
// them.
//
// Cost: reading the labels of each slice once a change, and an entry of some hundred bytes for each slice,
// from the first call on. Clients that may write slices cause it. The slices of a Service are sorted at the
// first call after a change of them.
//
// It has no goroutine. Locks: the follower's, see package follow.
package endpoints

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/follow"
)

// Storage is the storage key of EndpointSlices.
const Storage = "endpointslices.discovery.k8s.io"

// Index knows which slices are of which Service. It is safe for concurrent use.
type Index struct {
	follower *follow.Follower
	of       map[service]*group // guarded by the follower's lock, as owner is
	owner    map[slice]service
}

type (
	service struct{ namespace, name string }
	slice   struct{ namespace, name string }
)

// group holds the slices of a Service.
type group struct {
	items  map[string]*cache.Item // by name, guarded by the follower's lock
	sorted atomic.Pointer[Slices] // of items; nil: not sorted since they changed
}

// Slices are the slices of a Service, by name. They do not change.
type Slices struct{ Items []*cache.Item }

// New makes an Index, which reads nothing before its first use.
func New(c *cache.Cache) *Index {
	x := &Index{}
	x.follower = follow.New(c, x.reset, follow.Kind{Storage: Storage, Set: x.set, Delete: x.forget})
	return x
}

// Of returns the slices of a Service that can be read; nil: there are none.
func (x *Index) Of(namespace, name string) *Slices {
	x.follower.RLock()
	defer x.follower.RUnlock()
	g := x.of[service{namespace, name}]
	if g == nil {
		return nil
	}
	if known := g.sorted.Load(); known != nil {
		return known
	}
	made := &Slices{slices.SortedFunc(maps.Values(g.items), func(a, b *cache.Item) int { return strings.Compare(a.Name, b.Name) })}
	if !g.sorted.CompareAndSwap(nil, made) {
		return g.sorted.Load() // another reader was faster, and all get the same
	}
	return made
}

func (x *Index) reset() {
	x.of, x.owner = map[service]*group{}, map[slice]service{}
}

func (x *Index) set(item *cache.Item) {
	at, to := slice{item.Namespace, item.Name}, service{item.Namespace, item.Meta().Labels[discoveryv1.LabelServiceName]}
	if had, ok := x.owner[at]; ok && had != to {
		x.forget(item.Namespace, item.Name)
	}
	if to.name == "" {
		return
	}
	g := x.of[to]
	if g == nil {
		g = &group{items: map[string]*cache.Item{}}
		x.of[to] = g
	}
	x.owner[at], g.items[item.Name] = to, item
	g.sorted.Store(nil)
}

func (x *Index) forget(namespace, name string) {
	at := slice{namespace, name}
	to, ok := x.owner[at]
	if !ok {
		return
	}
	delete(x.owner, at)
	g := x.of[to]
	delete(g.items, name)
	g.sorted.Store(nil)
	if len(g.items) == 0 {
		delete(x.of, to)
	}
}
