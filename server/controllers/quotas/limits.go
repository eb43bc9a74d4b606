package quotas

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
)

// limits knows which resources quotas limit, and in which namespaces.
type limits struct {
	named   map[string][]string               // the storages of those, by namespace
	in      map[string]map[string]bool        // the namespaces, by storage
	unknown map[string][]schema.GroupResource // by namespace: those that are not there

	generation uint64 // of the catalogue that served is made of
	served     map[schema.GroupResource]*kinds.Resource
}

func newLimits() limits {
	return limits{named: map[string][]string{}, in: map[string]map[string]bool{}, unknown: map[string][]schema.GroupResource{}}
}

// resource finds one that is in namespaces and whose objects this server has; nil: there is none.
func (l *limits) resource(c *kinds.Catalogue, r schema.GroupResource) *kinds.Resource {
	if all, generation := c.Snapshot(); l.served == nil || generation != l.generation {
		l.generation, l.served = generation, make(map[schema.GroupResource]*kinds.Resource, len(all))
		for _, one := range all {
			if key := one.GroupResource(); one.Namespaced && one.Storage != nil && l.served[key] == nil {
				l.served[key] = one
			}
		}
	}
	return l.served[r]
}

// set notes what the quotas of a namespace limit. came are storages that nobody limited
// before, left those that nobody limits any more. What other servers have is not followed.
func (l *limits) set(c *kinds.Catalogue, namespace string, list []schema.GroupResource, elsewhere func(schema.GroupResource) bool) (came []string, left map[string]bool) {
	var now []string
	delete(l.unknown, namespace)
	for _, r := range list {
		one := l.resource(c, r)
		if one == nil {
			if !elsewhere(r) {
				l.unknown[namespace] = append(l.unknown[namespace], r)
			}
			continue
		}
		now = append(now, one.Storage.Key)
	}
	for _, storage := range l.named[namespace] {
		if slices.Contains(now, storage) {
			continue
		}
		if delete(l.in[storage], namespace); len(l.in[storage]) == 0 {
			delete(l.in, storage)
			if left == nil {
				left = map[string]bool{}
			}
			left[storage] = true
		}
	}
	for _, storage := range now {
		if l.in[storage] == nil {
			l.in[storage] = map[string]bool{}
			came = append(came, storage)
		}
		l.in[storage][namespace] = true
	}
	if l.named[namespace] = now; len(now) == 0 {
		delete(l.named, namespace)
	}
	return came, left
}

// has says whether a quota of a namespace limits what is in a storage.
func (l *limits) has(storage, namespace string) bool { return l.in[storage][namespace] }

// lost forgets a storage, and names the namespaces that limit what is in it.
func (l *limits) lost(storage string) (namespaces []string) {
	for namespace := range l.in[storage] {
		namespaces = append(namespaces, namespace)
		l.named[namespace] = slices.DeleteFunc(l.named[namespace], func(s string) bool { return s == storage })
	}
	delete(l.in, storage)
	return namespaces
}

// objects implements quota.Objects.
type objects struct {
	ctx       context.Context
	q         *Controller
	namespace string
}

// Count implements quota.Objects.
func (o *objects) Count(r schema.GroupResource) (n int, known bool) {
	one := o.q.limits.resource(o.q.Catalogue, r)
	if one == nil {
		return o.q.away.count(o.ctx, o.q, o.namespace, r)
	}
	return o.q.Cache.Snapshot(one.Storage.Key).Count(o.namespace, cache.Position{}), true
}

// Each implements quota.Objects. What cannot be read uses nothing.
func (o *objects) Each(r schema.GroupResource, visit func(runtime.Object) bool) (known bool) {
	one := o.q.limits.resource(o.q.Catalogue, r)
	if one == nil {
		return false
	}
	stored := o.q.Catalogue.ByStorage(one.Storage.Key)
	o.q.Cache.Snapshot(one.Storage.Key).Ascend(o.namespace, "", "", func(item *cache.Item) bool {
		if obj := o.q.decode(item, stored); obj != nil && !visit(obj) {
			return false
		}
		return o.ctx.Err() == nil
	})
	return o.ctx.Err() == nil
}
