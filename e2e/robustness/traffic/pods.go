//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// nodes are those that Pods are bound to.
var nodes = []string{"node-a", "node-b"}

// somePods is the number of Pods that the clients share in a namespace.
const somePods = 3

// schedules is one of several schedulers, and kubelets: they make a few Pods, bind them, write their status, list those of a node, and
// delete them.
func (c *client) schedules(ctx context.Context) {
	for ctx.Err() == nil {
		ns := Namespaces[c.rand.IntN(len(Namespaces))]
		base := fmt.Sprintf("pod%d-%s", c.rand.IntN(somePods), ns)
		name := c.gens.name(base, c.round)
		op := &history.Op{ID: c.rec.ID(), Server: c.any(), Key: history.Key{Resource: pods.resource, Namespace: ns, Name: name}}
		dry := ""
		if op.Dry = c.rand.IntN(10) == 0; op.Dry {
			dry = "dryRun=All"
		}
		switch n := c.rand.IntN(10); {
		case n == 0 && !op.Dry: // a binding of another Pod of that name
			op.Kind, op.Never = history.Bind, true
			c.do(op, http.MethodPost, pods.path(ns, name)+"/binding", plainJSON, fmt.Sprintf(`{"apiVersion":"v1","kind":"Binding","metadata":{"name":%q,"uid":"00000000-0000-4000-8000-000000000000"},"target":{"kind":"Node","name":%q}}`, name, nodes[0]))
		case n < 4:
			op.Kind, op.Field, op.Value = history.Bind, "bound", nodes[c.rand.IntN(len(nodes))]
			c.do(op, http.MethodPost, pods.path(ns, name)+"/binding?"+dry, plainJSON, fmt.Sprintf(`{"apiVersion":"v1","kind":"Binding","metadata":{"name":%q,"annotations":{"robust.rowlock.dev/bound":%q}},"target":{"kind":"Node","name":%q}}`, name, op.ID, op.Value))
		case n < 6:
			op.Kind, op.Field = history.Status, "status."+c.name
			c.do(op, http.MethodPatch, pods.path(ns, name)+"/status?"+dry, strategicPatch, pods.body("", 0, op.Field, op.ID, nil, 0))
		case n < 8:
			op.Kind = history.Delete
			c.do(op, http.MethodDelete, pods.path(ns, name)+"?gracePeriodSeconds=0&"+dry, "", "")
		default:
			l := &history.List{Scope: op.Key.Scope(), Selector: history.Selector{Node: nodes[c.rand.IntN(len(nodes))]}, Match: []history.Match{history.Latest, history.Any}[n%2]}
			c.list(context.Background(), l, 0)
		}
		if op.Outcome == history.NotFound {
			op = &history.Op{ID: c.rec.ID(), Server: c.any(), Kind: history.Create, Field: "v", Key: op.Key}
			c.do(op, http.MethodPost, pods.path(ns, ""), plainJSON, podBody(name, op.ID, "default", c.rand.IntN(2) == 0))
		}
		if op.Outcome == history.Unknown {
			c.gens.opened(base)
		}
		c.rest(ctx)
	}
}
