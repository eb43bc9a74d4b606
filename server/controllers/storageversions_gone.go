package controllers

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
)

const (
	storageVersionsKey = "storageversions.internal.apiserver.k8s.io"
	versionGCSwitch    = "storage-version-gc"
	versionGCAgent     = "kube-controller-manager" // a part of which this is in a stock cluster
)

// StorageVersionCollector takes away what servers said of the versions that they store once
// their identity Lease is gone, and objects in which nobody says anything any more: else a
// server that was taken down would forbid a common version for ever.
//
// What clients can cause: a reading of each StorageVersion that they write, and of all of them
// when they delete a Lease of kube-system that names a server, with a rest of four times as
// long as that took; a write for each that names a server that is not there.
type StorageVersionCollector struct {
	API   API
	Cache *cache.Cache
	Log   *slog.Logger
	Clock func() time.Time
	Moves Moves         // of the clock
	Rest  time.Duration // for how long it leaves alone what it sees
	Retry time.Duration // how soon a failure is tried again; 0: 1 second
	Queue *Queue        // nil: the work is not measured

	refused refused
}

// collectVersions builds the controller where servers say which versions they store.
func collectVersions(h Host, c Config) func(context.Context) error {
	if !c.runs(versionGCSwitch) || c.Host == "" || !c.StorageVersions {
		return nil
	}
	g := &StorageVersionCollector{API: h.API, Cache: h.Cache, Log: h.Log, Clock: h.Clock, Moves: h.Moves, Rest: c.Settle(versionGCSwitch), Queue: h.Queues.Of("storage_version_garbage_collector_storageversions")}
	return g.Run
}

// Run works until ctx ends.
func (g *StorageVersionCollector) Run(ctx context.Context) error {
	if g.Retry == 0 {
		g.Retry = time.Second
	}
	return again(ctx, g.Retry, func(ctx context.Context) bool {
		g.refused = refused{first: g.Retry, longest: mostRest}
		g.Queue.Clear()
		r := round{cache: g.Cache, every: 10 * time.Minute, retry: g.Retry, refused: &g.refused, moves: g.Moves,
			again: func(key objectKey) {
				if item := g.Cache.Get(storageVersionsKey, key.namespace, key.name); item != nil {
					g.collect(ctx, item, true)
				} else {
					g.refused.forget(key)
				}
			},
			sources: []source{
				{storage: storageVersionsKey, there: func(item *cache.Item) bool { g.collect(ctx, item, false); return true }, changed: func(batch []cache.Delivery) {
					for _, d := range batch {
						if d.Type != cache.Deleted {
							g.collect(ctx, d.Item(), false)
						}
					}
				}},
				{storage: leasesKey, scope: cache.Scope{Namespace: metav1.NamespaceSystem}, changed: func(batch []cache.Delivery) {
					if slices.ContainsFunc(batch, func(d cache.Delivery) bool { return d.Type == cache.Deleted && isIdentity(d.Event.Prev) }) {
						g.all(ctx)
					}
				}},
			}}
		r.run(ctx)
		return true
	})
}

// all looks at all objects, and rests.
func (g *StorageVersionCollector) all(ctx context.Context) {
	began := time.Now()
	g.Cache.Snapshot(storageVersionsKey).Ascend("", "", "", func(item *cache.Item) bool {
		g.collect(ctx, item, false)
		return ctx.Err() == nil
	})
	select {
	case <-ctx.Done():
	case <-time.After(min(4*time.Since(began), time.Second)):
	}
}

// collect takes servers that are gone out of an object, once it has rested.
func (g *StorageVersionCollector) collect(ctx context.Context, item *cache.Item, rested bool) {
	key := objectKey{item.Namespace, item.Name}
	var v apiserverinternalv1alpha1.StorageVersion
	if g.refused.waits(key, item.Revision, time.Now()) || item.Corrupt != nil || json.Unmarshal(item.JSON(), &v) != nil {
		return
	}
	said := len(v.Status.StorageVersions)
	v.Status.StorageVersions = slices.DeleteFunc(v.Status.StorageVersions, func(s apiserverinternalv1alpha1.ServerStorageVersion) bool {
		return !isIdentity(g.Cache.Get(leasesKey, metav1.NamespaceSystem, s.APIServerID))
	})
	if len(v.Status.StorageVersions) == said {
		g.refused.forget(key)
		return
	}
	if g.Rest > 0 && !rested {
		g.refused.until(key, item.Revision, time.Now().Add(g.Rest))
		return
	}
	g.Queue.Add(1)
	g.Queue.Work(func() bool {
		err := g.write(ctx, item, &v)
		if err == nil || faster(err) || ctx.Err() != nil { // who was faster made a change that is looked at
			g.refused.forget(key)
			return true
		}
		g.refused.add(key, item.Revision, time.Now())
		g.Log.Warn("what servers said that are gone cannot be taken out of a StorageVersion", "name", item.Name, "error", err)
		return false
	})
}

func (g *StorageVersionCollector) write(ctx context.Context, item *cache.Item, v *apiserverinternalv1alpha1.StorageVersion) error {
	path := storageVersionsPath + "/" + url.PathEscape(item.Name)
	if len(v.Status.StorageVersions) == 0 {
		return removeSeen(ctx, g.API, versionGCAgent, path, item)
	}
	agree(v, g.Clock())
	return g.API.Call(ctx, versionGCAgent, http.MethodPut, path+"/status", "application/json", v, nil)
}
