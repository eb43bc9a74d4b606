package garbage

import (
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

// Workers is the default number of objects that are processed at once.
const Workers = 20

// Collector is the garbage collector. Its Meter measures the queue of objects to process.
type Collector struct {
	reconcile.Base
	Catalogue *kinds.Catalogue
	Remote    reconcile.RemoteResources // nil: there are no other servers

	// Workers is the number of objects that are processed concurrently. 0: Workers.
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

// state is the state of a run of a Collector.
type state struct {
	*Collector
	notifier *notifier
	queue    *reconcile.Queue[graph.WorkItem, unique.Handle[string]]
	failed   ratelog.Line
	parking  parking

	mu    sync.Mutex // guards graph and kinds
	graph *graph.Graph
	kinds kindNumbers
}

func newState(c *Collector) *state {
	s := &state{Collector: c, notifier: &notifier{wake: make(chan struct{}, 1)}, graph: graph.New(), failed: ratelog.Line{Clock: c.Clock}}
	s.queue = &reconcile.Queue[graph.WorkItem, unique.Handle[string]]{
		Clock: c.Clock, Turn: func(what graph.WorkItem) unique.Handle[string] { return what.Namespace }, MinBackoff: firstBackoff, MaxBackoff: longestBackoff,
		Wake: s.notifier.signal, Meter: c.Meter,
	}
	return s
}

// parking determines when objects with an owner of unknown state are queued again.
type parking struct {
	some atomic.Bool   // an object was parked since at was set
	at   time.Time     // when they are queued again; zero: no object is parked
	rest time.Duration // the current backoff
}

// park queues an object separately while its owners cannot be judged.
func (c *state) park(id graph.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.graph.Park(id)
	c.parking.some.Store(true)
	c.notifier.signal()
}

// The first and the longest backoff of parked objects. A change of the served kinds ends the backoff.
const (
	firstUnpark = time.Second
	longUnpark  = time.Minute
)

// unpark queues the parked objects again when their backoff has ended.
func (c *state) unpark() {
	now, s := c.Clock(), &c.parking
	if s.some.Swap(false) && s.at.IsZero() {
		s.rest = min(max(2*s.rest, firstUnpark), longUnpark)
		s.at = now.Add(s.rest)
	}
	if s.at.IsZero() || now.Before(s.at) {
		return
	}
	s.at = time.Time{}
	c.mu.Lock()
	defer c.mu.Unlock()
	any := false
	c.graph.Unpark(func(what graph.WorkItem) {
		any = true
		c.queue.AddAfter(what, 0)
	})
	if !any {
		s.rest = 0
	}
}
