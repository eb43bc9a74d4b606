package namespaces

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds"
)

// work does what can be done for a namespace.
func (n *Controller) work(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
	path := "/api/v1/namespaces/" + key.Namespace
	var ns corev1.Namespace
	if err := n.API.Call(ctx, agent, http.MethodGet, path, "", nil, &ns); err != nil {
		return r, err
	}
	if string(ns.UID) != key.Name || ns.DeletionTimestamp == nil || !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		return r, nil // others have to finish it
	}
	found := n.empty(ctx, &ns)
	others := &emptied{}
	if found.podsLeft && n.Elsewhere != nil {
		_, others.unknown = n.Elsewhere.Resources()
	} else if !found.podsLeft {
		if others = n.emptyElsewhere(ctx, key); others == nil { // it is looked at again when that is done
			return reconcile.Result{After: time.Minute}, nil
		}
	}
	found.failures = append(found.failures, others.failures...)
	found.left.add(&others.left)
	if len(found.failures) == 0 && len(others.unknown) == 0 && found.left.none() {
		ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
		if err = n.API.Call(ctx, agent, http.MethodPut, path+"/finalize", reconcile.JSON, &ns, nil); apierrors.IsConflict(err) {
			r.After = conflictRest
		}
		return r, err
	}
	left := n.count(key.Namespace)
	n.mu.Lock()
	if g := n.going[key]; g != nil {
		g.left = left
	}
	n.mu.Unlock()
	return r, cmp.Or(n.report(ctx, &ns, found, others.unknown), reconcile.ErrRetry)
}

// emptying is what emptying a namespace here came to.
type emptying struct {
	failures []error
	left     *leftovers
	podsLeft bool // Pods go first, and some are there still: nothing else was touched
}

// empty deletes everything in a namespace, and goes on after failures. What is left without
// a finalizer and without time to end in is a failure too.
func (n *Controller) empty(ctx context.Context, ns *corev1.Namespace) *emptying {
	found := &emptying{left: &leftovers{}}
	held := map[string]int{}
	pods := func(r *kinds.Resource) bool { return r.Storage.Key == "pods" }
	one := func(r *kinds.Resource) (left int) {
		left, finalizers, err := n.emptyResource(ctx, ns, r)
		if err != nil {
			found.failures = append(found.failures, err)
		}
		if left > 0 {
			found.left.resources = append(found.left.resources, fmt.Sprintf("%s.%s has %d resource instances", r.Plural, r.Group, left))
		}
		for name, count := range finalizers {
			held[name] += count
		}
		return left
	}
	list := n.inside()
	if i := slices.IndexFunc(list, pods); n.Ordered && i >= 0 {
		if one(list[i]) > 0 {
			found.podsLeft = true
			return found
		}
		list = slices.Delete(list, i, i+1)
	}
	for _, r := range list {
		one(r)
	}
	found.left.hold(held)
	slices.Sort(found.left.resources)
	return found
}

// emptyResource deletes the objects of one resource, and says how many are left and which
// finalizers hold them.
func (n *Controller) emptyResource(ctx context.Context, ns *corev1.Namespace, r *kinds.Resource) (left int, held map[string]int, err error) {
	names, grace := n.objects(ns.Name, r)
	if len(names) == 0 {
		return 0, nil, nil
	}
	endsLater := grace > 0 && n.Now().Before(ns.DeletionTimestamp.Add(grace)) // Pods may take their time
	path := collection(r, ns.Name)
	if slices.Contains(r.Verbs, "deletecollection") && len(names) <= manyObjects {
		err = n.API.Call(ctx, agent, http.MethodDelete, path+"?propagationPolicy=Background", "", nil, nil)
	} else {
		err = n.deleteEach(ctx, path, names)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, nil, err
	}
	held = map[string]int{}
	n.Cache.Snapshot(r.Storage.Key).Ascend(ns.Name, "", "", func(it *cache.Item) bool {
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
	// manyObjects is up to how many objects are deleted as a collection, which goes one after
	// the other, and is answered with all of them.
	manyObjects = 16
	// deletesAtOnce is how many are deleted at once then, so that they share commits.
	deletesAtOnce = 16
)

// deleteEach deletes objects of one resource by their names, until one cannot be.
func (n *Controller) deleteEach(ctx context.Context, path string, names []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(deletesAtOnce)
	for _, name := range names {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			err := n.API.Call(ctx, agent, http.MethodDelete, path+"/"+url.PathEscape(name)+"?propagationPolicy=Background", "", nil, nil)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	return group.Wait()
}

// objects are the names of the objects of a resource, and of Pods the longest time that one
// of them has to end.
func (n *Controller) objects(namespace string, r *kinds.Resource) (names []string, grace time.Duration) {
	n.Cache.Snapshot(r.Storage.Key).Ascend(namespace, "", "", func(it *cache.Item) bool {
		names = append(names, it.Name)
		var pod corev1.Pod
		if r.Storage.Key != "pods" || !reconcile.Decode(it, &pod) || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			return true
		}
		if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
			grace = max(grace, time.Duration(*s)*time.Second)
		}
		return true
	})
	return names, grace
}

func collection(r *kinds.Resource, namespace string) string {
	prefix := "/api/" + r.Version
	if r.Group != "" {
		prefix = "/apis/" + r.Group + "/" + r.Version
	}
	return prefix + "/namespaces/" + namespace + "/" + r.Plural
}
