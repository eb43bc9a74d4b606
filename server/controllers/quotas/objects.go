package quotas

import (
	"bytes"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/admission/quota"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/claims"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
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
		return differ("status", "phase") || differ("metadata", "deletionGracePeriodSeconds") ||
			differ("spec", "containers") || differ("spec", "initContainers") || differ("spec", "resources") ||
			differ("spec", "activeDeadlineSeconds") || // it decides the scope
			differ("status") && resized(before, item)
	case "services":
		return differ("spec")
	case claims.Storage:
		return differ("spec") || differ("status", "allocatedResources") || differ("status", "capacity") ||
			differ("status", "currentVolumeAttributesClassName") || differ("status", "modifyVolumeStatus") // they decide the scope
	}
	return false
}

// resized reports whether the resources that the node of a pod reports make another usage of it.
func resized(before, now *cache.Item) bool {
	var old, pod corev1.Pod
	if !reconcile.Decode(before, &old) || !reconcile.Decode(now, &pod) {
		return true
	}
	at := time.Now() // the same for both
	return !quota.Same(&corev1.ResourceQuotaStatus{Used: quota.PodUsage(&old, at)}, &corev1.ResourceQuotaStatus{Used: quota.PodUsage(&pod, at)})
}
