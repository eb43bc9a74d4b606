// Package garbage deletes objects whose owners are gone, lets dependents go before owners
// that wait for them, and takes references away where dependents are to stay.
//
// It keeps a graph of who refers to whom (package graph), fed by the cache, and looks at an
// object whenever one that it is connected with changes. What is to be done with it is decided
// then, by the objects as they are in memory, and done through the API, on condition that the
// object is still what was looked at. So whatever the graph might have missed, nothing is
// deleted that has an owner.
//
// It promises: an object goes only if none of its owners is there, or those that are wait for
// it to go; not while an owner is of a kind that nobody knows. What cannot be written is tried
// again, later each time. Namespaces take turns.
//
// Goroutines: Run follows the cache, and starts workers, which end when there is nothing to do
// for them, or with Run, which waits for them.
package garbage

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/garbage/graph"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/ratelog"
)

// API is the server's own API, called in process.
type API interface {
	Call(ctx context.Context, agent, method, path, contentType string, body, into any) error
}

// Elsewhere knows of the resources of other servers.
type Elsewhere interface {
	// Serves says whether another server has a version, even if it cannot be reached.
	Serves(gv schema.GroupVersion) bool
	// OfKind finds the resource of a kind that another server has.
	OfKind(gvk schema.GroupVersionKind) (what schema.GroupVersionResource, namespaced, ok bool)
}

// Meter measures how objects wait and how long the work for one takes.
type Meter interface {
	// Add says that objects wait.
	Add(objects int)
	// Work does something for the object that has waited longest, and says whether that is
	// done. Several may work at once.
	Work(do func() (done bool)) bool
}

// agent is the name under which the collector writes, and component that in its events, as stock
// ones are.
const (
	agent     = "kube-controller-manager/rowlock/system:serviceaccount:kube-system:generic-garbage-collector"
	component = "garbage-collector-controller"
)

// Workers is how many objects are worked on at once unless somebody says otherwise.
const Workers = 20

// Collector is the garbage collector.
type Collector struct {
	API       API
	Cache     *cache.Cache
	Catalogue *kinds.Catalogue
	Elsewhere Elsewhere // nil: there are no other servers
	Log       *slog.Logger
	Clock     func() time.Time // nil: time.Now
	// Moves says that somebody moves the clock: what it returns is closed by the next move. Nil:
	// nobody does.
	Moves func() <-chan struct{}

	// Workers is how many objects are worked on at once. 0: Workers.
	Workers int
	// Settle is how long what others do is left alone before anything follows from it.
	Settle time.Duration
	// Meters of the objects that are looked at, of those whose dependents are to stay, and of
	// the changes that come in; each may be nil.
	Deletes, Orphans, Changes Meter
}

// collection is one run of a Collector.
type collection struct {
	*Collector
	bell    *bell
	queue   *queue
	sources sources
	fed     fed
	running sync.WaitGroup // workers
	failed  ratelog.Line
	away    *elsewhere

	events, looks allowance   // of misplaced
	parked        atomic.Bool // some object is, since it was looked last

	mu    sync.Mutex // guards graph and kinds
	graph *graph.Graph
	kinds kindNumbers
}

// Run works until ctx ends.
func (c *Collector) Run(ctx context.Context) error {
	if c.Workers <= 0 {
		c.Workers = Workers
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Deletes == nil {
		c.Deletes = unmeasured{}
	}
	if c.Orphans == nil {
		c.Orphans = unmeasured{}
	}
	if c.Changes == nil {
		c.Changes = unmeasured{}
	}
	r := &collection{Collector: c, bell: newBell(), graph: graph.New(), away: newElsewhere(), failed: ratelog.Line{Clock: c.Clock}}
	r.events, r.looks = allowance{most: eventsAtFirst, perSecond: eventsPerSecond}, allowance{most: looksAtFirst, perSecond: looksPerSecond}
	r.queue = newQueue(c.Clock, r.bell.signal, func() { c.Deletes.Add(1) })
	r.sources.byStorage = map[string]*source{}
	ctx, cancel := context.WithCancel(ctx)
	defer r.running.Wait()
	defer cancel()
	defer r.stop()
	r.run(ctx)
	return ctx.Err()
}

// run follows the cache and starts workers until ctx ends.
func (c *collection) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		var moved <-chan struct{}
		if c.Moves != nil {
			moved = c.Moves()
		}
		c.follow(ctx)
		c.feed(ctx, c.bell.answer())
		c.catchUp(ctx)
		c.unpark()
		next, _ := c.queue.ripen()
		for range c.queue.hire(c.Workers) {
			c.running.Go(func() { c.work(ctx) })
		}
		timer.Reset(c.idle(next))
		select {
		case <-ctx.Done():
		case <-c.bell.rings:
		case <-moved:
		case <-timer.C:
		}
	}
}

// idle is how long there is nothing to do unless somebody rings, if something is due at next.
func (c *collection) idle(next time.Time) time.Duration {
	idle := c.sources.nextLook(c.Clock())
	for _, at := range []time.Time{next, c.sources.unpark} {
		if !at.IsZero() {
			idle = min(idle, at.Sub(c.Clock()))
		}
	}
	return max(idle, 0)
}

// work looks at objects until none is due.
func (c *collection) work(ctx context.Context) {
	for {
		e, ok := c.queue.next()
		if !ok {
			return
		}
		if ctx.Err() != nil {
			c.queue.done(e, false)
			continue
		}
		c.Deletes.Work(func() bool {
			again := c.look(ctx, e.id)
			c.queue.done(e, again)
			return !again
		})
	}
}

// unmeasured is the Meter of nobody.
type unmeasured struct{}

func (unmeasured) Add(int) {}

func (unmeasured) Work(do func() bool) bool { return do() }
