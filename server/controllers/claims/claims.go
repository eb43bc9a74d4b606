// Package claims protects PersistentVolumeClaims and PersistentVolumes that are in use from being deleted, by a
// finalizer.
package claims

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const (
	// Storage is where PersistentVolumeClaims are.
	Storage         = "persistentvolumeclaims"
	claimsAgent     = reconcile.ManagerAgent + "pvc-protection-controller" // field manager of what Claims writes
	claimsFinalizer = "kubernetes.io/pvc-protection"

	// restShare is how many times as long as its scan took a namespace waits for the next one.
	restShare = 5
)

// Claims keeps a PersistentVolumeClaim that is being deleted for as long as there is a pod on a node that uses it, by a
// finalizer, which it gives to claims that lack it.
//
// Clients that may delete claims and pods of a namespace cause a scan of all pods and claims of that namespace; scans
// take at most a sixth of the time. Each claim costs a write.
type Claims struct {
	reconcile.Base

	loop *reconcile.Loop
	held map[string]bool // namespaces with claims that pods keep from going
}

// Run works until ctx ends.
func (c *Claims) Run(ctx context.Context) error {
	c.held = map[string]bool{}
	l := &reconcile.Loop{Base: c.Base, Reconcile: c.reconcile, Failure: "cannot protect a PersistentVolumeClaim, or release it"}
	c.loop = l
	touch := func(item *cache.Item) { l.Queue.Touch(reconcile.Key{Namespace: item.Namespace}, 0) }
	l.Sources = []reconcile.Source{
		{
			Storage: Storage,
			Seen: func(item *cache.Item) {
				if misfit(item, claimsFinalizer) {
					touch(item)
				}
			},
			Gone: func(item *cache.Item) { l.Queue.Forget(reconcile.KeyOf(item)) },
		},
		{Storage: "pods", Changed: func(d cache.Delivery) {
			if item := d.Item(); c.held[item.Namespace] && (d.Type == cache.Deleted || item.Meta().Deleting) {
				touch(item)
			}
		}},
	}
	return l.Run(ctx)
}

// reconcile does what there is to do for the claims of a namespace. The key of a single claim is that of one that failed,
// for which the others of its namespace do not wait.
func (c *Claims) reconcile(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
	began := time.Now()
	var todo []*cache.Item
	var used claimUse
	going := int64(0) // the newest revision of a claim that is being deleted
	c.Cache.Snapshot(Storage).Ascend(key.Namespace, "", "", func(item *cache.Item) bool {
		if misfit(item, claimsFinalizer) && (key.Name == "" || key.Name == item.Name) {
			if todo = append(todo, item); item.Meta().Deleting {
				going = max(going, item.Revision)
			}
		}
		return ctx.Err() == nil
	})
	if going > 0 {
		if c.Cache.WaitFor(ctx, going) != nil { // the cache may show claims before pods of the same commit
			return r, nil
		}
		used = c.use(ctx, key.Namespace)
	}
	if looked := time.Since(began); looked > time.Millisecond && key.Name == "" {
		r.Rest = restShare * looked
	}
	if key.Name == "" {
		delete(c.held, key.Namespace)
	}
	for _, item := range todo {
		claim := reconcile.KeyOf(item)
		_, waits := c.loop.Queue.Backoff(claim)
		switch {
		case ctx.Err() != nil:
			return r, nil
		case item.Meta().Deleting && used.has(item):
			c.held[item.Namespace] = true
			continue
		case waits:
			continue
		}
		err := setFinalizer(ctx, &c.Base, claimsAgent, "/api/v1/namespaces/"+item.Namespace+"/persistentvolumeclaims/", item, claimsFinalizer)
		switch {
		case err == nil:
		case claim == key:
			return r, err
		default:
			c.loop.Failed(ctx, claim, err)
			c.loop.Queue.Fail(claim)
		}
	}
	return r, nil
}

// claimUse are the claims that pods of a namespace use: by name, and those that were made
// for a pod by the name and the pod's UID.
type claimUse struct {
	named map[string]bool
	made  map[string]types.UID
}

func (u claimUse) has(item *cache.Item) bool {
	if u.named[item.Name] {
		return true
	}
	pod, ok := u.made[item.Name]
	if !ok {
		return false
	}
	var claim metav1.PartialObjectMetadata
	if !reconcile.Decode(item, &claim) {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(&claim)
	return owner != nil && owner.UID == pod
}

// use finds the claims that pods use which are on a node: no kubelet starts one any more
// with a claim that is being deleted.
func (c *Claims) use(ctx context.Context, namespace string) claimUse {
	u := claimUse{map[string]bool{}, map[string]types.UID{}}
	c.Cache.Snapshot("pods").Ascend(namespace, "", "", func(item *cache.Item) bool {
		if item.Corrupt != nil || scan.Lookup(item.Peek(), "spec", "nodeName") == nil || scan.Lookup(item.JSON(), "spec", "volumes") == nil {
			return ctx.Err() == nil
		}
		var pod corev1.Pod
		if !reconcile.Decode(item, &pod) || pod.Spec.NodeName == "" {
			return true
		}
		grace := pod.DeletionGracePeriodSeconds
		shut := pod.DeletionTimestamp != nil && grace != nil && *grace == 0
		for _, v := range pod.Spec.Volumes {
			switch {
			case v.PersistentVolumeClaim != nil:
				u.named[v.PersistentVolumeClaim.ClaimName] = true
			case v.Ephemeral != nil && !shut:
				u.made[pod.Name+"-"+v.Name] = pod.UID
			}
		}
		return ctx.Err() == nil
	})
	return u
}
