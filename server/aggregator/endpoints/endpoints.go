// Package endpoints finds the EndpointSlices of a Service without looking at those of others.
//
// It promises: who asks after a write of a slice was acknowledged finds that write; and what
// Of returns is the same pointer as long as the slices of the Service are the same, so that
// what was made of them can be kept.
//
// What it costs: the reading of the labels of each slice once a change, and for each slice
// an entry of some hundred bytes, from the first question on. Who writes slices causes it.
//
// It has no goroutine. Locks: the follower's, see package follow.
package endpoints

import (
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/follow"
)

// Storage is the storage key of EndpointSlices.
const Storage = "endpointslices.discovery.k8s.io"

// Index knows which slices are of which Service. It is safe for concurrent use.
type Index struct {
	follower *follow.Follower
	of       map[service]*Slices // guarded by the follower's lock, as owner is
	owner    map[slice]service
}

type (
	service struct{ namespace, name string }
	slice   struct{ namespace, name string }
)

// Slices are those of a Service, by name. They do not change.
type Slices struct{ Items []*cache.Item }

// New makes an Index, which reads nothing before it is asked.
func New(c *cache.Cache) *Index {
	x := &Index{}
	x.follower = follow.New(c, x.reset, follow.Kind{Storage: Storage, Set: x.set, Delete: x.forget})
	return x
}

// Of are the slices of a Service that can be read; nil: there are none.
func (x *Index) Of(namespace, name string) *Slices {
	x.follower.RLock()
	defer x.follower.RUnlock()
	return x.of[service{namespace, name}]
}

func (x *Index) reset() {
	x.of, x.owner = map[service]*Slices{}, map[slice]service{}
}

func (x *Index) set(item *cache.Item) {
	at, to := slice{item.Namespace, item.Name}, service{item.Namespace, item.Meta().Labels[discoveryv1.LabelServiceName]}
	if had, ok := x.owner[at]; ok && had != to {
		x.forget(item.Namespace, item.Name)
	}
	if to.name == "" {
		return
	}
	x.owner[at] = to
	x.replace(to, item.Name, item)
}

func (x *Index) forget(namespace, name string) {
	at := slice{namespace, name}
	if to, ok := x.owner[at]; ok {
		delete(x.owner, at)
		x.replace(to, name, nil)
	}
}

// replace makes new Slices of a Service, with another item of a name; nil takes it out.
func (x *Index) replace(to service, name string, item *cache.Item) {
	var items []*cache.Item
	if old := x.of[to]; old != nil {
		items = old.Items
	}
	i, found := slices.BinarySearchFunc(items, name, func(item *cache.Item, name string) int { return strings.Compare(item.Name, name) })
	next := make([]*cache.Item, 0, len(items)+1)
	next = append(next, items[:i]...)
	if item != nil {
		next = append(next, item)
	}
	if found {
		i++
	}
	if next = append(next, items[i:]...); len(next) == 0 {
		delete(x.of, to)
		return
	}
	x.of[to] = &Slices{next}
}
