package namespaces

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds"
)

// A create that found its namespace may commit after the namespace began to terminate, and even after it was deleted:
// webhooks are called in between, and another server may not have received the change yet. A pause before namespaces are
// emptied makes that rare. This file deletes such objects:
//
// Revisions are one sequence, and the cache has them in order. When it has the revision with which a namespace was
// deleted, it has each object that was created in it before: the sweeper deletes those immediately. It finds objects
// that are created later, as long as no namespace of that name exists, by sweeps after one second, two, four and so on
// up to 64: longer, in total, than a request may take. A reused name is safe: objects of the new namespace have newer
// revisions than the end of the old one. Package writes deletes such a later object itself, unless its server dies or does not
// learn in time that the object was stored.
//
// Only a namespace that was terminating leaves orphans. Otherwise an operator has removed it
// with `store repair --delete`, because it was unreadable: its objects are
// intact, and wait for the namespace to be created again.
//
// A server that dies just after the deletion of a namespace may leave such an object, and so may one whose controller
// is on standby.

// orphaned is a deleted namespace in which objects may remain.
type orphaned struct {
	name string
	end  int64 // the revision of its deletion
	wait time.Duration
}

const (
	orphansLongest = 64 * time.Second
	orphansMost    = 10_000 // namespaces that are swept several times; the rest are swept once
)

// ended reports whether the deletion of a namespace is the end of its termination, by its last state. An
// unreadable state is not.
func ended(d cache.Delivery) bool {
	return d.Item().Meta().Deleting && (d.Event.Prev == nil || d.Event.Prev.Err() == nil)
}

// sweeper deletes the objects that deleted namespaces left.
type sweeper struct {
	reconcile.Base
	contents
	anyNamespace bool // objects may be made in namespaces that are not there
}

// sweep deletes the objects that a namespace left, and returns when to sweep again; 0: never.
func (s *sweeper) sweep(ctx context.Context, o *orphaned) time.Duration {
	s.remove(ctx, s.left(o))
	if o.wait = max(2*o.wait, time.Second); o.wait > orphansLongest {
		return 0
	}
	return o.wait
}

// orphan is an object whose namespace was deleted.
type orphan struct {
	resource *kinds.Resource
	*cache.Item
}

// left returns the remaining objects of a deleted namespace. It finally checks whether a namespace of that name
// exists: a new one has objects of its own.
func (s *sweeper) left(o *orphaned) (list []orphan) {
	for _, r := range s.inside() {
		s.Cache.Snapshot(r.Storage.Key).Ascend(o.name, "", "", func(it *cache.Item) bool {
			list = append(list, orphan{r, it})
			return true
		})
	}
	if s.anyNamespace || s.Cache.Get("namespaces", "", o.name) != nil {
		list = slices.DeleteFunc(list, func(it orphan) bool { return it.Created() >= o.end })
	}
	return list
}

// remove deletes objects despite finalizers: clients cannot remove a finalizer in a namespace that does not exist. A new
// object of the same name stays.
func (s *sweeper) remove(ctx context.Context, list []orphan) {
	for _, o := range list {
		path, uid := collection(o.resource, o.Namespace)+"/"+url.PathEscape(o.Name), types.UID(o.Meta().UID)
		options := metav1.DeleteOptions{
			TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
			Preconditions: &metav1.Preconditions{UID: &uid}, GracePeriodSeconds: new(int64(0)), PropagationPolicy: new(metav1.DeletePropagationBackground),
		}
		err := s.API.Call(ctx, agent, http.MethodDelete, path, reconcile.JSON, &options, nil)
		if err == nil && s.Cache.Get(o.resource.Storage.Key, o.Namespace, o.Name) != nil {
			free := map[string]any{"metadata": map[string]any{"uid": uid, "finalizers": nil}}
			err = s.API.Call(ctx, agent, http.MethodPatch, path, reconcile.MergePatch, free, nil)
		}
		if reconcile.Current(err) != nil && ctx.Err() == nil {
			s.Log.Warn("an object of a deleted namespace remains", "resource", o.resource.Plural, "namespace", o.Namespace, "name", o.Name, "error", err)
		}
	}
}
