//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// The crowd is more objects than a server reads before it begins to answer a list: it reads the rest while it sends the answer, in several
// parts.
const (
	crowdNamespace = "crowd"
	crowded        = 5300
	crowdMakers    = 32
	crowdTime      = 5 * time.Minute // for all of it, on a busy machine
	crowdRests     = 40              // after two lists, which cost more than others
)

var crowdScope = history.Scope{Resource: leases.resource, Namespace: crowdNamespace}

func crowdName(i int) string { return fmt.Sprintf("crowd-%04d", i) }

// setupCrowd makes the objects. It repeats what has no answer.
func (t *Traffic) setupCrowd(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, crowdTime)
	defer cancel()
	var makers sync.WaitGroup
	failed := make(chan error, crowdMakers)
	shared := t.c.Client(cluster.HTTP2, false)
	defer shared.CloseIdleConnections()
	for n := range crowdMakers {
		c := t.client(fmt.Sprintf("crowd-maker-%d", n), cluster.HTTP2, false)
		c.http = shared
		makers.Go(func() {
			for i := n; i < crowded; i += crowdMakers {
				on := i < crowdOn
				if _, _, ok := c.must(ctx, c, http.MethodPost, leases.path(crowdNamespace, ""), leases.body(crowdName(i), 0, "holder", "setup", &on, 0), http.StatusCreated, http.StatusConflict); !ok {
					failed <- fmt.Errorf("making the crowd: %w", ctx.Err())
					return
				}
			}
		})
	}
	makers.Wait()
	close(failed)
	return <-failed
}

// crowds lists the crowd, whole, while some of it changes: objects are written, deleted, and made again.
func (c *client) crowds(ctx context.Context) {
	lister := c.Traffic.client(c.name+"-list", c.proto, false)
	defer lister.http.CloseIdleConnections()
	for ctx.Err() == nil {
		changing, stop := context.WithCancel(ctx)
		var changes sync.WaitGroup
		changes.Go(func() { c.changeCrowd(changing) })
		for range 2 {
			if lister.someForm(); lister.form == history.YAML || lister.form == history.CBOR { // which takes a client longer than all other, and whose client reads at most 1,024 items
				lister.form = history.Whole
			}
			lister.gzip = lister.rand.IntN(2) == 0
			lister.list(ctx, &history.List{Scope: crowdScope, Selector: history.Selector{On: lister.rand.IntN(2) == 0}, Match: []history.Match{history.Latest, history.Any}[lister.rand.IntN(2)]}, 0)
		}
		stop()
		changes.Wait()
		for range crowdRests {
			c.rest(ctx)
		}
	}
}

// Almost as many objects have a label from the beginning as an index of labels keeps in a slice, and one in some that change gets it.
const (
	crowdOn = 56
	fewOn   = 6
)

// changeCrowd changes objects near the end of the crowd until ctx ends. One of some gets a label, which the others lose.
func (c *client) changeCrowd(ctx context.Context) {
	for ctx.Err() == nil {
		op := &history.Op{ID: c.rec.ID(), Server: c.any(), Key: history.Key{Resource: leases.resource, Namespace: crowdNamespace, Name: crowdName(crowded - 1 - c.rand.IntN(crowded/8))}}
		on := c.rand.IntN(fewOn) == 0
		if op.Kind = history.Set; c.rand.IntN(3) == 0 {
			op.Kind = history.Delete
			c.do(op, http.MethodDelete, leases.path(crowdNamespace, op.Key.Name), "", "")
		} else {
			op.Field, op.On = "holder", &on
			c.do(op, http.MethodPatch, leases.path(crowdNamespace, op.Key.Name), mergePatch, leases.body("", 0, "holder", op.ID, &on, 0))
		}
		if op.Outcome == history.NotFound {
			made := &history.Op{ID: c.rec.ID(), Server: c.any(), Kind: history.Create, Field: "holder", On: &on, Key: op.Key}
			c.do(made, http.MethodPost, leases.path(crowdNamespace, ""), plainJSON, leases.body(op.Key.Name, 0, "holder", made.ID, &on, 0))
		}
		sleep(ctx, c.pace/8)
	}
}
