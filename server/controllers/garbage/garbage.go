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
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/rowlock/rowlock/server/controllers/garbage/graph"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/ratelog"
)

// agent is the name under which the collector writes, and component that in its events, as stock
// ones are.
const (
	agent     = reconcile.ManagerAgent + "generic-garbage-collector"
	component = "garbage-collector-controller"
)

// Workers is how many objects are worked on at once unless somebody says otherwise.
const Workers = 20

// Collector is the garbage collector. Its Meter is that of the objects that are looked at.
type Collector struct {
	reconcile.Base
	Catalogue *kinds.Catalogue
	Elsewhere reconcile.Elsewhere // nil: there are no other servers

	// Workers is how many objects are worked on at once. 0: Workers.
	Workers int
	// Orphans and Changes are the meters of objects whose dependents are to stay, and of the changes that come in; each may be
	// nil.
	Orphans, Changes *reconcile.Meter
}

// The backoff of an object that could not be dealt with, at first and at most.
const (
	firstBackoff   = 10 * time.Millisecond
	longestBackoff = 5 * time.Minute
)

// collection is one run of a Collector.
type collection struct {
	*Collector
	bell    *bell
	queue   *reconcile.Queue[graph.Look, unique.Handle[string]]
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
	r := &collection{Collector: c, bell: newBell(), graph: graph.New(), away: newElsewhere(), failed: ratelog.Line{Clock: c.Clock}}
	r.events, r.looks = allowance{most: eventsAtFirst, perSecond: eventsPerSecond}, allowance{most: looksAtFirst, perSecond: looksPerSecond}
	r.queue = r.newQueue()
	r.sources.byStorage = map[string]*source{}
	ctx, cancel := context.WithCancel(ctx)
	defer r.running.Wait()
	defer cancel()
	defer r.stop()
	r.run(ctx)
	return ctx.Err()
}

// newQueue makes the queue of objects to look at, of which namespaces take turns.
func (c *collection) newQueue() *reconcile.Queue[graph.Look, unique.Handle[string]] {
	return &reconcile.Queue[graph.Look, unique.Handle[string]]{
		Clock: c.Clock, Turn: func(what graph.Look) unique.Handle[string] { return what.Namespace }, First: firstBackoff, Longest: longestBackoff,
		Wake: c.bell.signal, Meter: c.Meter,
	}
}

// run follows the cache and starts workers until ctx ends.
func (c *collection) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		moved := c.Moves.Next()
		c.follow(ctx)
		c.feed(ctx, c.bell.answer())
		c.catchUp(ctx)
		c.unpark()
		_, next := c.queue.Promote()
		c.queue.Work(&c.running, c.Workers, func(what graph.Look) (r reconcile.Result, err error) {
			if ctx.Err() == nil && c.look(ctx, what.ID) {
				err = reconcile.ErrRetry
			}
			return r, err
		})
		timer.Reset(c.idle(next))
		select {
		case <-ctx.Done():
		case <-c.bell.rings:
		case <-moved:
		case <-timer.C:
		}
	}
}

// idle is how long there is nothing to do unless somebody rings, if a key is due after next; 0: none is.
func (c *collection) idle(next time.Duration) time.Duration {
	idle := c.sources.nextLook(c.Clock())
	if next > 0 {
		idle = min(idle, next)
	}
	if at := c.sources.unpark; !at.IsZero() {
		idle = min(idle, at.Sub(c.Clock()))
	}
	return max(idle, 0)
}
