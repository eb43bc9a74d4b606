package storageversions

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const (
	// CollectorSwitch is the name of Collector in --controllers.
	CollectorSwitch = "storage-version-gc"
	collectorAgent  = "kube-controller-manager" // which runs this controller in a stock cluster
)

// Collector removes the entries of servers without an identity Lease from StorageVersions, and deletes StorageVersions
// without entries: otherwise a removed server would prevent a common version forever.
//
// What clients can cause: a read of each StorageVersion that they write; a read of all of them when they delete an identity
// Lease in kube-system, after which the controller pauses for four times as long as that took; and a write for each that
// has an entry of a missing server.
type Collector struct{ reconcile.Base }

// Run works until ctx ends.
func (c *Collector) Run(ctx context.Context) error {
	all := reconcile.Key{Namespace: metav1.NamespaceSystem} // others are names of objects
	l := &reconcile.Loop{Base: c.Base, Resync: resyncEvery, Failure: "cannot remove what servers that are gone said from a StorageVersion"}
	l.Sources = []reconcile.Source{l.Objects(versionsStorage, c.stale), {
		Storage: reconcile.LeaseStorage, Scope: cache.Scope{Namespace: metav1.NamespaceSystem},
		Changed: func(d cache.Delivery) {
			if d.Type == cache.Deleted && isIdentity(d.Event.Prev) {
				l.Queue.AddAfter(all, 0)
			}
		},
	}}
	l.Reconcile = func(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
		if key != all {
			return r, c.collect(ctx, c.Cache.Get(versionsStorage, "", key.Name))
		}
		began := time.Now()
		c.Cache.Snapshot(versionsStorage).Ascend("", "", "", func(item *cache.Item) bool {
			if c.stale(item) {
				l.Queue.Add(reconcile.KeyOf(item), item.Revision)
			}
			return ctx.Err() == nil
		})
		return reconcile.Result{Pause: min(4*time.Since(began), time.Second)}, nil
	}
	return l.Run(ctx)
}

// without returns an object without the entries of removed servers; stale reports whether it had any.
func (c *Collector) without(item *cache.Item) (v *apiserverinternalv1alpha1.StorageVersion, stale bool) {
	v = &apiserverinternalv1alpha1.StorageVersion{}
	if !reconcile.Decode(item, v) {
		return nil, false
	}
	before := len(v.Status.StorageVersions)
	v.Status.StorageVersions = slices.DeleteFunc(v.Status.StorageVersions, func(s apiserverinternalv1alpha1.ServerStorageVersion) bool {
		return !isIdentity(c.Cache.Get(reconcile.LeaseStorage, metav1.NamespaceSystem, s.APIServerID))
	})
	return v, len(v.Status.StorageVersions) < before
}

func (c *Collector) stale(item *cache.Item) bool {
	_, stale := c.without(item)
	return stale
}

func (c *Collector) collect(ctx context.Context, item *cache.Item) error {
	v, stale := c.without(item)
	if !stale {
		return nil
	}
	path := versionsPath + "/" + url.PathEscape(v.Name)
	if len(v.Status.StorageVersions) == 0 {
		return c.Delete(ctx, collectorAgent, path, item)
	}
	agree(v, c.Now())
	return c.API.Call(ctx, collectorAgent, http.MethodPut, path+"/status", reconcile.JSON, v, nil)
}
