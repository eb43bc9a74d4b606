//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// csiNodes are in no namespace, as Nodes, and only the traffic makes them.
var csiNodes = kind{resource: "csinodes.storage.k8s.io", plural: "csinodes", apiVersion: "storage.k8s.io/v1", name: "CSINode", prefix: "/apis/storage.k8s.io/v1"}

var csiScope = history.Scope{Resource: csiNodes.resource}

const someCSINodes = 4

func csiName(i int) string { return fmt.Sprintf("csi-%d", i) }

// clusterScoped writes objects of cluster scope.
func (c *client) clusterScoped(ctx context.Context) {
	for ctx.Err() == nil {
		name := csiName(c.rand.IntN(someCSINodes))
		path := csiNodes.path("", name)
		on := c.rand.IntN(2) == 0
		op := &history.Op{ID: c.rec.ID(), Server: c.any(), Key: history.Key{Resource: csiNodes.resource, Name: name}}
		switch c.rand.IntN(8) {
		case 0:
			op.Kind = history.Delete
			c.do(op, http.MethodDelete, path, "", "")
		case 1:
			op.Kind = history.Get
			c.do(op, http.MethodGet, path, "", "")
		default:
			op.Kind, op.Field, op.On = history.Set, "v", &on
			c.do(op, http.MethodPatch, path, mergePatch, fmt.Sprintf(`{"metadata":{%s}}`, marksOf(on, op.ID)))
		}
		if op.Outcome == history.NotFound {
			made := &history.Op{ID: c.rec.ID(), Server: c.any(), Kind: history.Create, Field: "v", On: &on, Key: op.Key}
			c.do(made, http.MethodPost, csiNodes.path("", ""), plainJSON, fmt.Sprintf(`{"metadata":{"name":%q,%s},"spec":{"drivers":[]}}`, name, marksOf(on, made.ID)))
		}
		c.rest(ctx)
	}
}

// marksOf returns the metadata that a write of a CSINode sets.
func marksOf(on bool, id string) string {
	return fmt.Sprintf(`"labels":{"on":%q},"annotations":{"robust.rowlock.dev/v":%q}`, map[bool]string{true: "yes", false: "no"}[on], id)
}

// watchCSINodes watches two CSINodes by their names, as a kubelet does its Node, and those with a label.
func (t *Traffic) watchCSINodes() {
	for n, selector := range []history.Selector{{Name: csiName(0)}, {Name: csiName(1)}, {On: true}} {
		w := &watcher{scope: csiScope, selector: selector, streams: n == 1}
		w.client = t.client(fmt.Sprintf("csi-watch-%d", n), protocols[n%2], false)
		t.readers.Go(w.run)
	}
}
