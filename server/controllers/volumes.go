package controllers

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

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
type VolumeProtection struct{ Chore }

// volumeProtection builds the controller.
func volumeProtection(h Host, c Config) func(context.Context) error {
	return (&VolumeProtection{choreOf(h, c, volumesSwitch, "pvprotection")}).Run
}

// Run works until ctx ends.
func (p *VolumeProtection) Run(ctx context.Context) error {
	return p.run(ctx, p.look, func(ctx context.Context, list *agenda) []source {
		touch := func(item *cache.Item) {
			if misfit(item, volumesFinalizer) {
				list.touch(objectKey{name: item.Name}, p.Clock())
			}
		}
		return []source{objectsOf(ctx, volumesStorage, touch, func(*cache.Item) {})}
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
