package controllers

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
)

const (
	volumesStorage   = "persistentvolumes"
	volumesSwitch    = "pv-protection"
	volumesAgent     = managerAgent + "pv-protection-controller"
	volumesFinalizer = "kubernetes.io/pv-protection"
)

// VolumeProtection keeps a PersistentVolume that is being deleted for as long as it is bound
// to a claim, by a finalizer, which it gives to volumes that lack it.
//
// Who may write PersistentVolumes causes a look and at most a write for each change of one.
type VolumeProtection struct {
	API    API
	Cache  *cache.Cache
	Log    *slog.Logger
	Clock  func() time.Time
	Moves  Moves         // of the clock
	Settle time.Duration // how long a volume that has changed is left alone at first
	Retry  time.Duration // how soon a failure is tried again; 0: 1 second
	Queue  *Queue        // nil: the work is not measured
}

// volumeProtection builds the controller.
func volumeProtection(h Host, c Config) func(context.Context) error {
	p := &VolumeProtection{API: h.API, Cache: h.Cache, Log: h.Log, Clock: h.Clock, Moves: h.Moves, Settle: c.Settle(volumesSwitch), Queue: h.Queues.Of("pvprotection")}
	return p.Run
}

// Run works until ctx ends.
func (p *VolumeProtection) Run(ctx context.Context) error {
	if p.Retry == 0 {
		p.Retry = time.Second
	}
	list := &agenda{settle: p.Settle, first: p.Retry, longest: mostRest, queue: p.Queue}
	touch := func(item *cache.Item) {
		if misfit(item, volumesFinalizer) {
			list.touch(objectKey{name: item.Name}, p.Clock())
		}
	}
	return again(ctx, p.Retry, func(ctx context.Context) bool {
		d := &desk{cache: p.Cache, clock: p.Clock, agendas: []*agenda{list}, moves: p.Moves, look: p.look}
		d.run(ctx, source{
			storage: volumesStorage,
			there: func(item *cache.Item) bool {
				touch(item)
				return ctx.Err() == nil
			},
			changed: func(batch []cache.Delivery) {
				for _, d := range batch {
					if d.Type != cache.Deleted {
						touch(d.Item())
					}
				}
			},
		})
		return true
	})
}

// look does what there is to do for a volume.
func (p *VolumeProtection) look(ctx context.Context, list *agenda, key objectKey) bool {
	item := p.Cache.Get(volumesStorage, "", key.name)
	if item == nil || !misfit(item, volumesFinalizer) || item.Meta().Deleting && textOf(item, "status", "phase") == string(corev1.VolumeBound) {
		list.forget(key)
		return true
	}
	err := setFinalizer(ctx, p.API, volumesAgent, "/api/v1/persistentvolumes/", item, volumesFinalizer)
	if err != nil && ctx.Err() == nil {
		p.Log.Warn("cannot protect a PersistentVolume, or let it go", "name", key.name, "error", err)
		list.fail(key, p.Clock())
		return false
	}
	list.forget(key)
	return true
}

// errUndone says that somebody takes part in writes who undoes what was written.
var errUndone = errors.New("the finalizer is not as it was written: a webhook or a policy changes it")

// setFinalizer gives an object a finalizer, or takes it away if the object is being deleted,
// unless the object has changed: then it is looked at again for that.
func setFinalizer(ctx context.Context, api API, agent, collection string, item *cache.Item, finalizer string) error {
	finalizers := finalizersOf(item)
	going := item.Meta().Deleting
	if going {
		finalizers = slices.DeleteFunc(finalizers, func(f string) bool { return f == finalizer })
	} else {
		finalizers = append(finalizers, finalizer)
	}
	body := map[string]any{"metadata": map[string]any{
		"uid": item.Meta().UID, "resourceVersion": strconv.FormatInt(item.Revision, 10), "finalizers": finalizers,
	}}
	var written metav1.PartialObjectMetadata
	err := api.Call(ctx, agent, http.MethodPatch, collection+url.PathEscape(item.Name), "application/merge-patch+json", body, &written)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return nil
	case err == nil && slices.Contains(written.Finalizers, finalizer) == going:
		return errUndone
	}
	return err
}
