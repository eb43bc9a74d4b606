package namespaces

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds"
)

const agent = "namespace-controller" // field manager of this package's writes

// emptier deletes the objects of this server in a namespace.
type emptier struct {
	reconcile.Base
	contents
	podsFirst bool // Pods go before everything else
}

// empty deletes everything in a namespace, and continues after failures. An object that remains without a
// finalizer or a grace period is a failure as well.
func (e *emptier) empty(ctx context.Context, ns *corev1.Namespace) *found {
	f := &found{}
	pods := func(r *kinds.Resource) bool { return r.Storage.Key == "pods" }
	one := func(r *kinds.Resource) int {
		left, held, err := e.resource(ctx, ns, r)
		if err != nil {
			f.failures = append(f.failures, err)
		}
		f.left(r.Plural, r.Group, left, held)
		return left
	}
	list := e.inside()
	if i := slices.IndexFunc(list, pods); e.podsFirst && i >= 0 {
		if one(list[i]) > 0 {
			f.podsLeft = true
			return f
		}
		list = slices.Delete(list, i, i+1)
	}
	for _, r := range list {
		one(r)
	}
	return f
}

// resource deletes the objects of one resource, and returns the number of remaining ones and their
// finalizers.
func (e *emptier) resource(ctx context.Context, ns *corev1.Namespace, r *kinds.Resource) (left int, held map[string]int, err error) {
	names, grace := e.objects(ns.Name, r)
	if len(names) == 0 {
		return 0, nil, nil
	}
	endsLater := grace > 0 && e.Now().Before(ns.DeletionTimestamp.Add(grace)) // Pods may take their time
	path := collection(r, ns.Name)
	if slices.Contains(r.Verbs, "deletecollection") && len(names) <= manyObjects {
		err = e.API.Call(ctx, agent, http.MethodDelete, path+"?propagationPolicy=Background", "", nil, nil)
	} else {
		err = e.deleteEach(ctx, path, names)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, nil, err
	}
	held = map[string]int{}
	e.Cache.Snapshot(r.Storage.Key).Ascend(ns.Name, "", "", func(it *cache.Item) bool {
		left++
		for _, f := range reconcile.Finalizers(it) {
			held[f]++
		}
		return true
	})
	if left > 0 && len(held) == 0 && !endsLater {
		gvr := schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Plural}
		return left, held, errors.New("unexpected items still remain in namespace: " + ns.Name + " for gvr: " + gvr.String())
	}
	return left, held, nil
}

const (
	// manyObjects is the largest number of objects that are deleted as a collection: that deletes one after
	// the other, and its answer has all of them.
	manyObjects = 16
	// deletesAtOnce is the number of concurrent deletes otherwise, which share commits.
	deletesAtOnce = 16
)

// deleteEach deletes objects of one resource by their names, until one cannot be.
func (e *emptier) deleteEach(ctx context.Context, path string, names []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(deletesAtOnce)
	for _, name := range names {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			err := e.API.Call(ctx, agent, http.MethodDelete, path+"/"+url.PathEscape(name)+"?propagationPolicy=Background", "", nil, nil)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	return group.Wait()
}
