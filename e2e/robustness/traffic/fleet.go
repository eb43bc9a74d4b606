//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// The fleet makes a run dense: nodes renew Leases of their own, and read those of all nodes, without a rest between requests.
// No order of these operations has to be searched: the versions that writes replace, and the versions seen when reads began,
// suffice to check them in linear time.
const (
	fleetNamespace = "fleet"
	fleetLeases    = 16 // of each node
	fleetShare     = 8  // nodes that share an HTTP/2 connection
)

var fleetScope = history.Scope{Resource: leases.resource, Namespace: fleetNamespace}

// startFleet runs the nodes, and watches of their Leases.
func (t *Traffic) startFleet(ctx context.Context, start func(func())) {
	if t.fleet == 0 {
		return
	}
	var shared *http.Client
	for n := range t.fleet {
		p := protocols[n/fleetShare%2]
		c := t.client(fmt.Sprintf("node-%d", n), p, false)
		if p == cluster.HTTP2 {
			if n%fleetShare == 0 {
				shared = c.http
			}
			c.http = shared
		}
		start(func() {
			defer c.http.CloseIdleConnections()
			c.node(ctx, n)
		})
	}
	for i, on := range []bool{false, true} {
		w := &watcher{scope: fleetScope, selector: history.Selector{On: on}, streams: on}
		w.client = t.client(fmt.Sprintf("fleet-watch-%d", i), protocols[i], false)
		t.readers.Go(w.run)
	}
}

// absent is in the place of the version of an object that does not exist.
const absent = ^uint64(0)

// node is a node of the fleet.
func (c *client) node(ctx context.Context, number int) {
	known := make([]uint64, fleetLeases) // versions of its own; 0: not known
	key := func(node, i int) history.Key {
		return history.Key{Resource: leases.resource, Namespace: fleetNamespace, Name: fmt.Sprintf("node-%d-%d", node, i)}
	}
	for ctx.Err() == nil {
		n, i := c.rand.IntN(1000), c.rand.IntN(fleetLeases)
		if n < 2 {
			c.pause(ctx, c.list(ctx, &history.List{Scope: fleetScope, Selector: c.someSelector(), Match: []history.Match{history.Latest, history.Any}[n]}, 0).Outcome)
			continue
		}
		op := &history.Op{Server: c.any(), Kind: history.Get, Key: key(number, i)}
		if n < 730 || n < 750 && known[i] == absent { // of any node
			op.Key = key(c.rand.IntN(c.fleet), c.rand.IntN(fleetLeases))
			if n < 20 {
				c.renew(op, history.Set, 0)
			} else {
				c.look(op, n)
			}
			c.pause(ctx, op.Outcome)
			continue
		}
		switch version := known[i]; {
		case version == 0:
			c.look(op, 0)
		case version == absent:
			c.renew(op, history.Create, 0)
		case n < 740:
			op.Kind, op.Expect = history.Delete, version
			c.do(op, http.MethodDelete, leases.path(fleetNamespace, op.Key.Name), plainJSON, fmt.Sprintf(`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"%d"}}`, version))
		case n < 790:
			c.renew(op, history.Set, 0)
		default:
			c.renew(op, history.Swap, version)
		}
		switch known[i] = 0; {
		case op.Outcome == history.OK && op.Got != nil:
			known[i] = op.Got.Version
		case op.Outcome == history.NotFound, op.Outcome == history.OK:
			known[i] = absent
		}
		c.pause(ctx, op.Outcome)
	}
}

// look reads a Lease: the newest, one from memory, or one not older than any revision that a client has seen.
func (c *client) look(op *history.Op, n int) {
	query := ""
	switch {
	case n%3 == 1:
		op.Cached, query = true, "?resourceVersion=0"
	case n%3 == 2:
		if op.AtLeast = c.newest.Load(); op.AtLeast != 0 {
			query = fmt.Sprintf("?resourceVersion=%d", op.AtLeast)
		}
	}
	c.do(op, http.MethodGet, leases.path(fleetNamespace, op.Key.Name)+query, "", "")
}

// renew writes a Lease.
func (c *client) renew(op *history.Op, kind string, version uint64) {
	op.ID, op.Kind, op.Field, op.Expect = c.rec.ID(), kind, "holder", version
	on := c.rand.IntN(4) > 0
	op.On = &on
	switch kind {
	case history.Create:
		c.do(op, http.MethodPost, leases.path(fleetNamespace, ""), plainJSON, leases.body(op.Key.Name, 0, op.Field, op.ID, &on, 0))
	case history.Set:
		c.do(op, http.MethodPatch, leases.path(fleetNamespace, op.Key.Name), mergePatch, leases.body("", 0, op.Field, op.ID, &on, 0))
	case history.Swap:
		op.Creates = true
		c.do(op, http.MethodPut, leases.path(fleetNamespace, op.Key.Name), plainJSON, leases.body(op.Key.Name, version, op.Field, op.ID, &on, 0))
	}
}

// pause lets a server that does not answer come back.
func (c *client) pause(ctx context.Context, o history.Outcome) {
	if o != history.Unknown && o != history.Refused {
		return
	}
	sleep(ctx, 50*time.Millisecond+time.Duration(c.rand.IntN(50))*time.Millisecond)
}
