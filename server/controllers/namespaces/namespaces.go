// Package namespaces empties namespaces that are being deleted, and removes their finalizer. No object remains in a
// deleted namespace.
package namespaces

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds"
)

// Controller empties and finalizes namespaces that are being deleted.
//
// It processes several concurrently. A namespace that it cannot finish is due again when fewer objects are left in it, after
// a backoff of up to 15 seconds, or when another server has answered. Namespaces with many objects take half of the workers
// at most, so that they do not delay others.
//
// No object remains in a deleted namespace; see orphaned. Base.Debounce is the delay before the controller empties a namespace in
// which a client has created an object, or which another controller seems to be emptying. If the namespace is empty, or its
// objects are older, it waits for a tenth of a second at most; if it was deleted before the server started, not at all.
type Controller struct {
	reconcile.Base
	Catalogue *kinds.Catalogue
	Follow    func() // updates Catalogue with all definitions in Cache; nil: not needed
	Workers   int    // how many namespaces are emptied at once. 0: 10
	Ordered   bool   // Pods go before everything else
	// AnyNamespace means that objects may be made in namespaces that are not there.
	AnyNamespace bool
	// Remote lists the resources of other servers; nil: there are none.
	Remote reconcile.RemoteResources

	loop    *reconcile.Loop
	here    emptier
	remote  remoteContents
	sweeper sweeper
	removed map[string]int64 // by storage: the last deletion of an object
	polled  time.Time        // when removed was updated
	pause   time.Duration    // after that

	mu    sync.Mutex // is taken by those that hold the queue's
	going map[reconcile.Key]*termination
	gone  map[reconcile.Key]*orphaned
	heavy map[reconcile.Key]bool // those that a worker empties and that have many objects
	large map[reconcile.Key]bool // those that had many objects when checked, and wait for a heavy one to end
}

// termination is a namespace that is being deleted. Its key has its name and its UID.
type termination struct {
	rested bool // it has been left alone at first
	left   int  // objects that were left; fewer make its key due at once
}

const (
	longestBackoff = 15 * time.Second
	// emptyRest is for how long an empty or settled namespace is left alone, so that the client that deleted it can see that
	// it is terminating.
	emptyRest = 100 * time.Millisecond
	// heavyFrom is from how many objects a namespace has much in it.
	heavyFrom = 2000
	// removalTick is the least interval at which the controller checks for deleted objects, while namespaces wait for that. A
	// check reads one number of each kind and, after a deletion, one more for each waiting namespace. It takes at most one part
	// in removalRest of the time.
	removalTick = 50 * time.Millisecond
	removalRest = 20
	// conflictRest is the delay before a retry after a conflict.
	conflictRest = 10 * time.Millisecond
)

// Run works until ctx ends.
func (n *Controller) Run(ctx context.Context) error {
	n.Workers = cmp.Or(n.Workers, 10)
	n.going, n.gone = map[reconcile.Key]*termination{}, map[reconcile.Key]*orphaned{}
	n.heavy, n.large = map[reconcile.Key]bool{}, map[reconcile.Key]bool{}
	l := &reconcile.Loop{
		Base: n.Base, Reconcile: n.reconcile, Workers: n.Workers, Poll: n.poll, Longest: longestBackoff,
		Failure: "cannot empty a namespace", Queue: &reconcile.Queue[reconcile.Key, string]{Admit: n.admit},
	}
	l.Debounce = 0 // see reconcile
	n.loop = l
	all := contents{cache: n.Cache, catalogue: n.Catalogue, follow: n.Follow}
	n.here, n.sweeper = emptier{Base: n.Base, contents: all, podsFirst: n.Ordered}, sweeper{Base: n.Base, contents: all, anyNamespace: n.AnyNamespace}
	n.remote.start(n.Base, n.Remote, func(key reconcile.Key) {
		if n.state(key) == nil {
			n.remote.forget(key)
		}
		l.Queue.AddAfter(key, 0)
	})
	l.Begin = func(context.Context) error {
		for key := range n.going { // which may have been deleted unnoticed
			l.Queue.Add(key, 0)
		}
		return nil
	}
	l.Sources = []reconcile.Source{{Storage: "namespaces", Seen: n.seen, Changed: func(d cache.Delivery) {
		if d.Type == cache.Deleted {
			n.namespaceDeleted(d)
		} else {
			n.seen(d.Item())
		}
	}}}
	defer n.remote.running.Wait()
	return l.Run(ctx)
}

// seen takes the present state of a namespace. Writes of clients do not speed up a waiting one.
func (n *Controller) seen(it *cache.Item) {
	if it.Err() != nil || !it.Meta().Deleting {
		return
	}
	key := reconcile.Key{Namespace: it.Name, Name: it.Meta().UID}
	n.mu.Lock()
	if n.going[key] == nil {
		n.going[key] = &termination{}
	}
	n.mu.Unlock()
	n.loop.Queue.Add(key, 0)
}

// namespaceDeleted handles the deletion of a namespace. An unreadable one is identified by its name.
func (n *Controller) namespaceDeleted(d cache.Delivery) {
	it := d.Item()
	key := reconcile.Key{Namespace: it.Name, Name: it.Meta().UID}
	if ended(d) {
		defer n.loop.Queue.AddAfter(key, 0) // when n.mu is free
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	forget := func(key reconcile.Key) {
		delete(n.going, key)
		delete(n.large, key)
		n.remote.forget(key)
	}
	forget(key)
	if it.Err() != nil {
		for key := range n.going {
			if key.Namespace == it.Name {
				forget(key)
			}
		}
	}
	if ended(d) {
		o := &orphaned{name: it.Name, end: d.Revision()}
		if len(n.gone) >= orphansMost {
			o.wait = orphansLongest
		}
		n.gone[key] = o
	}
}

// state returns the state of a namespace that is being deleted; nil: it is not being deleted.
func (n *Controller) state(key reconcile.Key) *termination {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.going[key]
}

// admit reports whether a worker may process a namespace now, and reserves it. The queue calls it under its lock, for all
// waiting keys before each that it returns: refused ones are not counted again before there is room for them.
func (n *Controller) admit(key reconcile.Key) bool {
	n.mu.Lock()
	full := len(n.heavy) >= max(1, n.Workers/2)
	wait := full && n.large[key]
	n.mu.Unlock()
	if wait {
		return false
	}
	heavy := n.here.count(key.Namespace) >= heavyFrom
	n.mu.Lock()
	defer n.mu.Unlock()
	if heavy && len(n.heavy) >= max(1, n.Workers/2) {
		n.large[key] = true
		return false
	}
	delete(n.large, key)
	if heavy {
		n.heavy[key] = true
	}
	return true
}

// reconcile empties a namespace that is being deleted, or deletes the remaining objects of a deleted one.
func (n *Controller) reconcile(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
	n.mu.Lock()
	g, o := n.going[key], n.gone[key]
	n.mu.Unlock()
	defer func() { // of admit, whatever has happened to the namespace since
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.heavy, key)
	}()
	switch {
	case o != nil:
		if r.After = n.sweeper.sweep(ctx, o); r.After == 0 {
			n.mu.Lock()
			delete(n.gone, key)
			n.mu.Unlock()
		}
		return r, nil
	case g == nil:
		return r, nil
	}
	n.mu.Lock()
	rested := g.rested
	g.left, g.rested = 0, true
	n.mu.Unlock()
	if !rested {
		if rest := n.rest(n.Cache.Get("namespaces", "", key.Namespace)); rest > 0 {
			return reconcile.Result{After: rest, Pause: rest}, nil
		}
	}
	return n.empty(ctx, key, g)
}

// rest returns for how long a namespace is left alone at first: not at all if its last change was before the server started.
func (n *Controller) rest(it *cache.Item) time.Duration {
	if it != nil && it.Revision <= n.Start {
		return 0
	}
	var ns corev1.Namespace
	if n.Debounce == 0 || !reconcile.Decode(it, &ns) {
		return n.Debounce
	}
	// A lone server writes these conditions after this; so another controller empties namespaces.
	if len(ns.Status.Conditions) > 0 {
		return n.Debounce
	}
	lastCreated, known := n.here.lastCreated(it.Name)
	if !known {
		return n.Debounce
	}
	// Times of creation are whole seconds, and may be those of another machine.
	settled := lastCreated.Add(time.Second + n.Debounce).Sub(n.Now())
	return max(min(n.Debounce, emptyRest), min(n.Debounce, settled))
}

// empty empties a namespace, and finalizes it or reports in its status why it still exists.
func (n *Controller) empty(ctx context.Context, key reconcile.Key, g *termination) (r reconcile.Result, err error) {
	path := "/api/v1/namespaces/" + key.Namespace
	var ns corev1.Namespace
	if err := n.API.Call(ctx, agent, http.MethodGet, path, "", nil, &ns); err != nil {
		return r, err
	}
	if string(ns.UID) != key.Name || ns.DeletionTimestamp == nil || !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		return r, nil // others have to finish it
	}
	found := n.here.empty(ctx, &ns)
	if !found.podsLeft {
		others := n.remote.empty(ctx, key)
		if others == nil { // remote queues the key again when it is done
			return reconcile.Result{After: time.Minute}, nil
		}
		found.add(others)
	} else if n.Remote != nil {
		_, found.unknown = n.Remote.Resources()
	}
	if len(found.failures)+len(found.unknown)+len(found.resources) == 0 {
		ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
		if err = n.API.Call(ctx, agent, http.MethodPut, path+"/finalize", reconcile.JSON, &ns, nil); apierrors.IsConflict(err) {
			r.After = conflictRest
		}
		return r, err
	}
	left := n.here.count(key.Namespace)
	n.mu.Lock()
	g.left = left
	n.mu.Unlock()
	if merge(&ns.Status, found.conditions(), metav1.Time{Time: n.Now().UTC().Truncate(time.Second)}) {
		err = n.API.Call(ctx, agent, http.MethodPut, path+"/status", reconcile.JSON, &ns, nil)
	}
	return r, cmp.Or(reconcile.Current(err), reconcile.ErrRetry)
}

// poll checks for deletions in namespaces that wait for them, and returns when to check again; 0: none waits.
func (n *Controller) poll() time.Duration {
	now := n.Now()
	if passed := now.Sub(n.polled); passed >= 0 && passed < n.pause {
		return n.pause - passed
	}
	waiting := map[reconcile.Key]int{}
	n.mu.Lock()
	for key, g := range n.going {
		if g.left > 0 {
			waiting[key] = g.left
		}
	}
	n.mu.Unlock()
	if len(waiting) == 0 {
		return 0
	}
	newest, all := int64(0), n.here.inside()
	last := make(map[string]int64, len(all))
	for _, r := range all {
		_, removed := n.Cache.LastChange(r.Storage.Key)
		if last[r.Storage.Key] = removed; removed != n.removed[r.Storage.Key] {
			newest = max(newest, removed)
		}
	}
	n.removed = last
	for key, left := range waiting {
		if newest > 0 && n.here.countOf(all, key.Namespace) < left {
			n.loop.Queue.Add(key, newest) // it does not wait for an earlier backoff
		}
	}
	n.polled, n.pause = now, max(removalTick, removalRest*n.Now().Sub(now))
	return n.pause
}
