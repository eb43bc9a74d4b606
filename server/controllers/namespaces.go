// Package controllers holds the control loops that run inside the API server, so that it
// works without a controller manager: among them the deletion of what a terminating
// namespace holds, CustomResourceDefinitions, service accounts, aggregated roles,
// certificates and flow schemas. table.go lists them all.
//
// It promises: controllers change objects through the API alone, so that admission,
// finalizers and grace periods apply to them as to any other client.
package controllers

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
)

// API is the server's own API, called in process; server.Server is one. body and
// into are encoded and decoded as JSON, and may be nil.
type API interface {
	Call(ctx context.Context, agent, method, path, contentType string, body, into any) error
}

// namespaceAgent is the field manager of what this controller writes.
const namespaceAgent = "namespace-controller"

// Namespaces empties and finalizes namespaces that are being deleted.
//
// It is told of namespaces by a watch, and works on several at once. One that cannot be
// finished is looked at again when fewer objects are left in it, when a pause has passed
// that grows up to 15 seconds, or when another server has answered. What has many objects
// takes half of the workers at most, so that it keeps no others waiting.
//
// No object stays behind in a namespace that is gone; see orphans.
type Namespaces struct {
	API       API
	Cache     *cache.Cache
	Catalogue *kinds.Catalogue
	Follow    func() // has Catalogue know all definitions that Cache has; nil: it does
	Log       *slog.Logger
	Clock     func() time.Time // of what conditions say; nil: time.Now
	Moves     Moves            // of the clock: nothing waits any longer then

	// Rest is for how long a namespace is left alone after a client made something in it, and
	// one that somebody else seems to be emptying. One that is empty, or whose objects are older,
	// is left alone for a tenth of a second at most.
	Rest time.Duration
	// Interval is the first pause. 0: 1 second.
	Interval time.Duration
	Workers  int  // how many namespaces are emptied at once. 0: 10
	Ordered  bool // Pods go before everything else
	// Homeless says that objects may be made in namespaces that are not there.
	Homeless bool
	Queue    *Queue // nil: the work is not measured
	// Elsewhere knows of the resources of other servers; nil: there are none.
	Elsewhere Elsewhere

	going   map[string]*goingNamespace // by UID
	heavy   int                        // how many of those that are worked on have much in them
	busy    int                        // how many are worked on
	removed map[string]int64           // by storage: when an object of it went last
	orphans []*orphanage
	done    chan *goingNamespace
	running sync.WaitGroup
	away    away
}

// goingNamespace is one that is being deleted.
type goingNamespace struct {
	name, uid string
	at        time.Time // when it is worked on next; zero: when it changes
	wait      time.Duration
	left      int // objects that were left; fewer are a reason to look at once
	busy      bool
	heavy     bool
	changed   bool // while it was worked on
}

const (
	maxWait = 15 * time.Second
	// emptyRest is for how long an empty or settled namespace is left alone, so that who deleted it can
	// see that it is terminating.
	emptyRest = 100 * time.Millisecond
	// youngestOf is among how many objects the youngest is looked for.
	youngestOf = 1000
	// heavyFrom is from how many objects a namespace has much in it.
	heavyFrom = 2000
	// removalTick is how often it is looked whether objects went, while namespaces wait for
	// that: a look at one number for each kind.
	removalTick = 50 * time.Millisecond
	// conflictRest is how soon a namespace is tried again that changed meanwhile.
	conflictRest = 10 * time.Millisecond
)

func (n *Namespaces) now() time.Time {
	if n.Clock == nil {
		return time.Now()
	}
	return n.Clock()
}

// Run works until ctx ends.
func (n *Namespaces) Run(ctx context.Context) error {
	if n.Interval == 0 {
		n.Interval = time.Second
	}
	if n.Workers == 0 {
		n.Workers = 10
	}
	n.going, n.removed, n.orphans = map[string]*goingNamespace{}, map[string]int64{}, nil
	n.done, n.heavy, n.busy = make(chan *goingNamespace, n.Workers), 0, 0
	n.away.results, n.away.places, n.away.done = map[string]*emptied{}, make(chan struct{}, elsewhereAtOnce), make(chan string, 1)
	defer n.away.running.Wait()
	defer n.running.Wait()
	for ctx.Err() == nil {
		n.follow(ctx)
	}
	return ctx.Err()
}

// follow ends when its watcher was cut off, or with ctx.
func (n *Namespaces) follow(ctx context.Context) {
	watcher, snapshot := n.Cache.WatchNow("namespaces", cache.Scope{})
	defer watcher.Stop()
	there := map[string]bool{}
	snapshot.Ascend("", "", "", func(it *cache.Item) bool {
		there[it.Meta().UID] = true
		n.see(it)
		return true
	})
	for uid, g := range n.going {
		if !there[uid] {
			n.forget(g)
		}
	}
	tick := time.NewTicker(removalTick)
	defer tick.Stop()
	var batch []cache.Delivery
	for {
		moved := n.Moves.next()
		n.dispatch(ctx)
		var ticks <-chan time.Time
		if n.waiting() {
			ticks = tick.C
		}
		var due <-chan time.Time
		if at := n.next(); !at.IsZero() {
			due = time.After(time.Until(at))
		}
		select {
		case <-ctx.Done():
			return
		case <-due:
		case <-moved:
			n.hurry()
		case <-ticks:
			n.wake()
		case g := <-n.done:
			n.finished(g)
		case uid := <-n.away.done:
			if g := n.going[uid]; g != nil {
				n.again(g)
			} else {
				n.away.forget(uid)
			}
		case <-watcher.Ready():
			var err error
			if batch, _, err = watcher.Take(ctx, batch); err != nil {
				return
			}
			for _, d := range batch {
				if d.Type != cache.Deleted {
					n.see(d.Item())
					continue
				}
				if ended(d) {
					n.watchOrphans(d.Item().Name, d.Revision())
				}
				n.gone(d.Item())
			}
		}
	}
}

// see is shown a namespace as it is now. One that waits for something is not hurried by
// what clients write into it.
func (n *Namespaces) see(it *cache.Item) {
	if it.Corrupt != nil || !it.Meta().Deleting {
		return
	}
	uid := it.Meta().UID
	g := n.going[uid]
	switch {
	case g == nil:
		n.going[uid] = &goingNamespace{name: it.Name, uid: uid, at: time.Now().Add(n.rest(it))}
	case g.busy:
		g.changed = true
	case g.at.IsZero():
		n.again(g)
	}
}

// rest is for how long a namespace is left alone at first.
func (n *Namespaces) rest(it *cache.Item) time.Duration {
	var ns corev1.Namespace
	if n.Rest == 0 || json.Unmarshal(it.JSON(), &ns) != nil {
		return n.Rest
	}
	// A lone server writes these conditions after this; so somebody else empties namespaces.
	if len(ns.Status.Conditions) > 0 {
		return n.Rest
	}
	youngest, known := n.youngest(it.Name)
	if !known {
		return n.Rest
	}
	// Times of creation are whole seconds, and may be those of another machine.
	settled := youngest.Add(time.Second + n.Rest).Sub(n.now())
	return max(min(n.Rest, emptyRest), min(n.Rest, settled))
}

// youngest is when a client made the youngest object in a namespace, zero where none did.
// It is not known of a namespace with more objects than are looked at.
func (n *Namespaces) youngest(namespace string) (at time.Time, known bool) {
	left := youngestOf
	for _, r := range n.inside() {
		n.Cache.Snapshot(r.Storage.Key).Ascend(namespace, "", "", func(it *cache.Item) bool {
			if r.Storage.Key == "serviceaccounts" && it.Name == defaultAccount || r.Storage.Key == "configmaps" && it.Name == rootCAMap {
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

func (n *Namespaces) forget(g *goingNamespace) {
	delete(n.going, g.uid)
	n.away.forget(g.uid)
}

// again has a namespace worked on as soon as there is a worker.
func (n *Namespaces) again(g *goingNamespace) {
	if g.busy {
		g.changed = true
	} else {
		g.at = time.Now()
	}
}

// hurry has those worked on that wait for a time.
func (n *Namespaces) hurry() {
	for _, g := range n.going {
		if !g.busy && !g.at.IsZero() {
			n.again(g)
		}
	}
}

// next is when something is due; zero: not before something happens.
func (n *Namespaces) next() (at time.Time) {
	earlier := func(other time.Time) {
		if !other.IsZero() && (at.IsZero() || other.Before(at)) {
			at = other
		}
	}
	if n.busy < n.Workers {
		for _, g := range n.going {
			if !g.busy && !(g.heavy && n.heavyFull()) {
				earlier(g.at)
			}
		}
	}
	for _, o := range n.orphans {
		earlier(o.at)
	}
	return at
}

func (n *Namespaces) heavyFull() bool { return n.heavy >= max(1, n.Workers/2) }

// dispatch gives what is due to workers, the oldest first.
func (n *Namespaces) dispatch(ctx context.Context) {
	n.sweep(ctx)
	now := time.Now()
	var due []*goingNamespace
	for _, g := range n.going {
		if !g.busy && !g.at.IsZero() && !g.at.After(now) {
			due = append(due, g)
		}
	}
	slices.SortFunc(due, func(a, b *goingNamespace) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.name, b.name)) })
	for _, g := range due {
		if n.busy == n.Workers {
			return
		}
		if g.heavy = n.count(g.name) >= heavyFrom; g.heavy && n.heavyFull() {
			continue
		}
		if g.busy, g.changed = true, false; g.heavy {
			n.heavy++
		}
		n.busy++
		n.Queue.Add(1)
		n.running.Go(func() {
			n.Queue.Work(func() bool {
				err := n.work(ctx, g)
				if err != nil && ctx.Err() == nil {
					n.Log.Warn("emptying a namespace", "namespace", g.name, "error", err)
				}
				return err == nil && g.at.IsZero()
			})
			n.done <- g
		})
	}
}

// finished is told that a worker is done with a namespace.
func (n *Namespaces) finished(g *goingNamespace) {
	g.busy = false
	n.busy--
	if g.heavy {
		n.heavy--
	}
	if g.changed && g.at.IsZero() {
		n.again(g)
	}
}

// waiting says whether a namespace waits for objects to go.
func (n *Namespaces) waiting() bool {
	for _, g := range n.going {
		if !g.busy && g.left > 0 {
			return true
		}
	}
	return false
}

// wake has namespaces worked on that have fewer objects than before.
func (n *Namespaces) wake() {
	went := false
	for _, r := range n.inside() {
		if _, removed := n.Cache.Moved(r.Storage.Key); removed != n.removed[r.Storage.Key] {
			n.removed[r.Storage.Key], went = removed, true
		}
	}
	if !went {
		return
	}
	for _, g := range n.going {
		if !g.busy && g.left > 0 && n.count(g.name) < g.left {
			g.left, g.wait = 0, 0
			n.again(g)
		}
	}
}

// inside lists one resource for each storage that lives in namespaces, also where the definition came a
// moment ago: another server may have taken objects of it already.
func (n *Namespaces) inside() []*kinds.Resource {
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
func (n *Namespaces) count(namespace string) (count int) {
	for _, r := range n.inside() {
		count += n.Cache.Snapshot(r.Storage.Key).Count(namespace, cache.Position{})
	}
	return count
}
