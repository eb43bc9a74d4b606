package claims

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const (
	volumesStorage   = "persistentvolumes"
	volumesAgent     = reconcile.ManagerAgent + "pv-protection-controller" // field manager of Volumes' writes
	volumesFinalizer = "kubernetes.io/pv-protection"
)

// Volumes keeps a PersistentVolume that is being deleted for as long as it is bound to a claim, by a finalizer, which it
// gives to volumes that lack it.
//
// Clients that may write PersistentVolumes cause a reconcile and at most one write for each change of one.
type Volumes struct{ reconcile.Base }

// Run works until ctx ends.
func (v *Volumes) Run(ctx context.Context) error {
	l := &reconcile.Loop{Base: v.Base, Failure: "cannot protect a PersistentVolume, or release it"}
	l.Reconcile = func(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
		item := v.Cache.Get(volumesStorage, "", key.Name)
		if item == nil || !needsUpdate(item, volumesFinalizer) || item.Meta().Deleting && reconcile.Text(item, "status", "phase") == string(corev1.VolumeBound) {
			return r, nil
		}
		return r, setFinalizer(ctx, &v.Base, volumesAgent, "/api/v1/persistentvolumes/", item, volumesFinalizer)
	}
	l.Sources = []reconcile.Source{{Storage: volumesStorage, Seen: func(item *cache.Item) {
		if needsUpdate(item, volumesFinalizer) {
			l.Queue.Add(reconcile.KeyOf(item), 0) // a webhook may make a revision of each try
		}
	}}}
	return l.Run(ctx)
}

// needsUpdate reports whether an object lacks a finalizer, or is being deleted and has it.
func needsUpdate(item *cache.Item, finalizer string) bool {
	return item.Err() == nil && slices.Contains(reconcile.Finalizers(item), finalizer) == item.Meta().Deleting
}

// errUndone: admission has reverted the write.
var errUndone = errors.New("the finalizer is not as it was written: a webhook or a policy changes it")

// setFinalizer adds a finalizer to an object, or removes it if the object is being deleted. It does nothing if the object
// has changed: the change queues it again.
func setFinalizer(ctx context.Context, b *reconcile.Base, agent, collection string, item *cache.Item, finalizer string) error {
	finalizers := reconcile.Finalizers(item)
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
	err := b.API.Call(ctx, agent, http.MethodPatch, collection+url.PathEscape(item.Name), reconcile.MergePatch, body, &written)
	if err == nil && slices.Contains(written.Finalizers, finalizer) == going {
		return errUndone
	}
	return reconcile.Current(err)
}
