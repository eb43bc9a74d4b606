//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// nearNamespace has a name that begins with that of another namespace, and comes after it, but before it with a slash behind.
var nearNamespace = Namespaces[0] + "-2"

// nearKinds are the kinds of the objects there.
var nearKinds = []kind{configMaps, widgets}

// nearNames are the ends of the names of the objects there: each begins with one before.
var nearNames = []string{"", "-1", "-1.a", "-1a", "-1a-b", "1"}

// similarNames writes objects in a namespace that is easily taken for another one. Their names begin with one another.
func (c *client) similarNames(ctx context.Context) {
	for ctx.Err() == nil {
		k := nearKinds[c.rand.IntN(len(nearKinds))]
		name := k.plural + nearNames[c.rand.IntN(len(nearNames))]
		op := &history.Op{ID: c.rec.ID(), Server: c.any(), Key: history.Key{Resource: k.resource, Namespace: nearNamespace, Name: name}}
		on := c.rand.IntN(2) == 0
		switch n := c.rand.IntN(8); {
		case n == 0:
			op.Kind = history.Delete
			c.do(op, http.MethodDelete, k.path(nearNamespace, name), "", "")
		case n == 1:
			op.Kind = history.Get
			c.do(op, http.MethodGet, k.path(nearNamespace, name), "", "")
		case n == 2: // which is no part of the spec
			op.Kind, op.Field = history.Set, history.Note
			c.do(op, http.MethodPatch, k.path(nearNamespace, name), mergePatch, fmt.Sprintf(`{"metadata":{"annotations":{"robust.rowlock.dev/%s":%q}}}`, op.Field, op.ID))
		default:
			op.Kind, op.Field, op.On = history.Set, "v", &on
			c.do(op, http.MethodPatch, k.path(nearNamespace, name), mergePatch, k.body("", 0, "v", op.ID, &on, 0))
		}
		if op.Outcome == history.NotFound {
			made := &history.Op{ID: c.rec.ID(), Server: c.any(), Kind: history.Create, Field: "v", On: &on, Key: op.Key}
			c.do(made, http.MethodPost, k.path(nearNamespace, ""), plainJSON, k.body(name, 0, "v", made.ID, &on, 0))
		}
		c.rest(ctx)
	}
}
