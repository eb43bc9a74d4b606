package quotas

import (
	"bytes"
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/claims"
	"github.com/rowlock/rowlock/server/kinds"
)

// objects implements quota.Objects.
type objects struct {
	ctx       context.Context
	limits    *limits
	away      *remoteCounts
	namespace string
}

// Count implements quota.Objects.
func (o *objects) Count(r schema.GroupResource) (n int, known bool) {
	one := o.limits.resource(r)
	if one == nil {
		return o.away.count(o.ctx, o.namespace, r)
	}
	return o.away.Cache.Snapshot(one.Storage.Key).Count(o.namespace, cache.Position{}), true
}

// Each implements quota.Objects. Unreadable objects count as nothing.
func (o *objects) Each(r schema.GroupResource, visit func(runtime.Object) bool) (known bool) {
	one := o.limits.resource(r)
	if one == nil {
		return false
	}
	stored := o.limits.catalogue.ByStorage(one.Storage.Key)
	o.away.Cache.Snapshot(one.Storage.Key).Ascend(o.namespace, "", "", func(item *cache.Item) bool {
		if obj := decode(o.away.Cache, item, stored); obj != nil && !visit(obj) {
			return false
		}
		return o.ctx.Err() == nil
	})
	return o.ctx.Err() == nil
}

// decode reads an object; nil: that cannot be done.
func decode(c *cache.Cache, item *cache.Item, r *kinds.Resource) kinds.Object {
	if item.Err() != nil || r == nil {
		return nil
	}
	obj := r.New()
	if _, err := c.JSON().Decode(item.JSON(), obj, codecs.Ignore); err != nil {
		return nil
	}
	return obj
}

// frees reports whether a change may have freed something that a quota limits.
func frees(storage string, d cache.Delivery) bool {
	if d.Type == cache.Deleted {
		return true
	}
	item, before := d.Item(), d.Event.Prev
	if before == nil || before.Err() != nil || item.Err() != nil {
		return d.Type == cache.Modified
	}
	differ := func(path ...string) bool {
		return !bytes.Equal(scan.Lookup(item.JSON(), path...), scan.Lookup(before.JSON(), path...))
	}
	switch storage {
	case "pods":
		return differ("status", "phase") || differ("metadata", "deletionGracePeriodSeconds") || differ("spec", "containers")
	case "services":
		return differ("spec")
	case claims.Storage:
		return differ("spec") || differ("status", "allocatedResources") || differ("status", "capacity")
	}
	return false
}
