// Package namespaces empties namespaces that are being deleted, and lets them go.
package namespaces

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/accounts"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds"
)

const agent = "namespace-controller" // field manager of what Controller writes

// Controller empties and finalizes namespaces that are being deleted.
//
// Several are worked on at once. One that cannot be finished is looked at again when fewer objects are left in it, after
// a backoff of up to 15 seconds, or when another server has answered. What has many objects takes half of the workers at
// most, so that it keeps no others waiting.
//
// No object stays behind in a namespace that is gone; see orphans. Base.Settle is for how long a namespace is left alone
// after a client made something in it, and one that somebody else seems to be emptying. One that is empty, or whose
// objects are older, is left alone for a tenth of a second at most.
type Controller struct {
	reconcile.Base
	Catalogue *kinds.Catalogue
	Follow    func() // has Catalogue know all definitions that Cache has; nil: it does
	Workers   int    // how many namespaces are emptied at once. 0: 10
	Ordered   bool   // Pods go before everything else
	// Homeless says that objects may be made in namespaces that are not there.
	Homeless bool
	// Elsewhere knows of the resources of other servers; nil: there are none.
	Elsewhere reconcile.Elsewhere

	loop    *reconcile.Loop
	orphans []*orphaned
	removed map[string]int64 // by storage: when an object of it went last
	polled  time.Time        // when that was looked at
	running sync.WaitGroup   // all but the workers
	away    away

	mu    sync.Mutex
	going map[reconcile.Key]*going
	heavy int // how many of those that are worked on have much in them
}

// going is a namespace that is being deleted. Its key has its name and its UID.
type going struct {
	rested bool // it has been left alone at first
	left   int  // objects that were left; fewer are a reason to look at once
	heavy  bool // it is worked on, and has much in it
}

const (
	longestBackoff = 15 * time.Second
	// emptyRest is for how long an empty or settled namespace is left alone, so that the client that deleted it can see that
	// it is terminating.
	emptyRest = 100 * time.Millisecond
	// youngestOf is among how many objects the youngest is looked for.
	youngestOf = 1000
	// heavyFrom is from how many objects a namespace has much in it.
	heavyFrom = 2000
	// removalTick is how often it is looked whether objects went, while namespaces wait for that: a look at one number for
	// each kind.
	removalTick = 50 * time.Millisecond
	// conflictRest is how soon a namespace is tried again that changed meanwhile.
	conflictRest = 10 * time.Millisecond
)

// Run works until ctx ends.
func (n *Controller) Run(ctx context.Context) error {
	n.Workers = cmp.Or(n.Workers, 10)
	n.going, n.heavy, n.removed, n.orphans = map[reconcile.Key]*going{}, 0, map[string]int64{}, nil
	n.away.results, n.away.places = map[string]*emptied{}, make(chan struct{}, elsewhereAtOnce)
	n.loop = &reconcile.Loop{
		Base: n.Base, Reconcile: n.reconcile, Workers: n.Workers, Poll: n.poll(ctx), Longest: longestBackoff,
		Failure: "cannot empty a namespace", Queue: &reconcile.Queue[reconcile.Key, string]{Admit: n.admit},
	}
	n.loop.Settle = 0 // see reconcile
	n.loop.Begin = func(context.Context) error {
		for key := range n.going { // which may have gone unseen
			n.loop.Queue.Touch(key, 0)
		}
		return nil
	}
	n.loop.Sources = []reconcile.Source{{Storage: "namespaces", Seen: n.see, Changed: func(d cache.Delivery) {
		if d.Type != cache.Deleted {
			n.see(d.Item())
			return
		}
		if ended(d) {
			n.orphans = append(n.orphans[max(0, len(n.orphans)+1-orphansMost):], &orphaned{name: d.Item().Name, end: d.Revision(), at: n.Now()})
		}
		n.gone(d.Item())
	}}}
	defer n.running.Wait()
	return n.loop.Run(ctx)
}

// see is shown a namespace as it is now. One that waits for something is not hurried by what clients write into it.
func (n *Controller) see(it *cache.Item) {
	if it.Corrupt != nil || !it.Meta().Deleting {
		return
	}
	key := reconcile.Key{Namespace: it.Name, Name: it.Meta().UID}
	n.mu.Lock()
	if n.going[key] == nil {
		n.going[key] = &going{}
	}
	n.mu.Unlock()
	n.loop.Queue.Touch(key, 0)
}

// gone is shown the last state of a namespace. One that cannot be read is known by its name.
func (n *Controller) gone(it *cache.Item) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key := range n.going {
		if key.Name == it.Meta().UID || it.Corrupt != nil && key.Namespace == it.Name {
			n.forget(key)
		}
	}
}

// forget drops what is known of a namespace that is gone. n.mu is held.
func (n *Controller) forget(key reconcile.Key) {
	delete(n.going, key)
	n.away.forget(key.Name)
}

// admit says whether a namespace may be worked on now, and notes that it is.
func (n *Controller) admit(key reconcile.Key) bool {
	heavy := n.count(key.Namespace) >= heavyFrom
	n.mu.Lock()
	defer n.mu.Unlock()
	if heavy && n.heavy >= max(1, n.Workers/2) {
		return false
	}
	if g := n.going[key]; g != nil && heavy {
		g.heavy = true
		n.heavy++
	}
	return true
}

// reconcile does what can be done for a namespace now.
func (n *Controller) reconcile(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
	n.mu.Lock()
	g := n.going[key]
	rested := g != nil && g.rested
	if g != nil {
		g.left, g.rested = 0, true
	}
	n.mu.Unlock()
	if g == nil {
		return r, nil
	}
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if g.heavy {
			g.heavy = false
			n.heavy--
		}
	}()
	if !rested {
		if rest := n.rest(n.Cache.Get("namespaces", "", key.Namespace)); rest > 0 {
			return reconcile.Result{After: rest, Rest: rest}, nil
		}
	}
	return n.work(ctx, key)
}

// rest is for how long a namespace is left alone at first.
func (n *Controller) rest(it *cache.Item) time.Duration {
	var ns corev1.Namespace
	if n.Settle == 0 || !reconcile.Decode(it, &ns) {
		return n.Settle
	}
	// A lone server writes these conditions after this; so somebody else empties namespaces.
	if len(ns.Status.Conditions) > 0 {
		return n.Settle
	}
	youngest, known := n.youngest(it.Name)
	if !known {
		return n.Settle
	}
	// Times of creation are whole seconds, and may be those of another machine.
	settled := youngest.Add(time.Second + n.Settle).Sub(n.Now())
	return max(min(n.Settle, emptyRest), min(n.Settle, settled))
}

// youngest is when a client made the youngest object in a namespace, zero where none did.
// It is not known of a namespace with more objects than are looked at.
func (n *Controller) youngest(namespace string) (at time.Time, known bool) {
	left := youngestOf
	for _, r := range n.inside() {
		n.Cache.Snapshot(r.Storage.Key).Ascend(namespace, "", "", func(it *cache.Item) bool {
			if r.Storage.Key == "serviceaccounts" && it.Name == accounts.DefaultAccount || r.Storage.Key == "configmaps" && it.Name == accounts.RootCAMap {
				return true
			}
			left--
			if made, err := time.Parse(time.RFC3339, it.Meta().CreationTimestamp); err == nil && made.After(at) {
				at = made
			}
			return left >= 0
		})
		if left < 0 {
			return at, false
		}
	}
	return at, true
}

// poll is what is to be done again and again: it looks for objects that namespaces left, and whether objects went from
// those that wait for that.
func (n *Controller) poll(ctx context.Context) func() time.Duration {
	return func() (next time.Duration) {
		next = n.sweep(ctx)
		if !n.waiting() {
			return next
		}
		now := n.Now()
		if passed := now.Sub(n.polled); passed >= 0 && passed < removalTick {
			return removalTick - passed
		}
		n.polled = now
		n.wake()
		return removalTick
	}
}

// waiting says whether a namespace waits for objects to go.
func (n *Controller) waiting() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, g := range n.going {
		if g.left > 0 {
			return true
		}
	}
	return false
}

// wake has namespaces worked on that have fewer objects than before.
func (n *Controller) wake() {
	newest := int64(0)
	for _, r := range n.inside() {
		if _, removed := n.Cache.Moved(r.Storage.Key); removed != n.removed[r.Storage.Key] {
			n.removed[r.Storage.Key] = removed
			newest = max(newest, removed)
		}
	}
	if newest == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, g := range n.going {
		if g.left > 0 && n.count(key.Namespace) < g.left {
			g.left = 0
			n.loop.Queue.Touch(key, newest) // it waits no longer for the backoff of what was tried before
		}
	}
}

// inside lists one resource for each storage that lives in namespaces, also where the definition came a
// moment ago: another server may have taken objects of it already.
func (n *Controller) inside() []*kinds.Resource {
	if n.Follow != nil {
		n.Follow()
	}
	var out []*kinds.Resource
	seen := make(map[string]bool)
	for _, r := range n.Catalogue.Known() {
		if r.Namespaced && r.Storage != nil && !seen[r.Storage.Key] && slices.Contains(r.Verbs, "delete") {
			seen[r.Storage.Key] = true
			out = append(out, n.Catalogue.ByStorage(r.Storage.Key))
		}
	}
	return out
}

// count is how many objects are in a namespace.
func (n *Controller) count(namespace string) (count int) {
	for _, r := range n.inside() {
		count += n.Cache.Snapshot(r.Storage.Key).Count(namespace, cache.Position{})
	}
	return count
}
