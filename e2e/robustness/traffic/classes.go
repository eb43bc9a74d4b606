//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// runtimeClasses are in no namespace, as Nodes, and only the traffic makes them.
var runtimeClasses = kind{resource: "runtimeclasses.node.k8s.io", plural: "runtimeclasses", apiVersion: "node.k8s.io/v1", name: "RuntimeClass", prefix: "/apis/node.k8s.io/v1"}

var classScope = history.Scope{Resource: runtimeClasses.resource}

const someClasses = 4

func className(i int) string { return fmt.Sprintf("class-%d", i) }

// classes writes objects of cluster scope.
func (c *client) classes(ctx context.Context) {
	for ctx.Err() == nil {
		name := className(c.rand.IntN(someClasses))
		path := runtimeClasses.path("", name)
		on := c.rand.IntN(2) == 0
		op := &history.Op{ID: c.rec.ID(), Server: c.any(), Key: history.Key{Resource: runtimeClasses.resource, Name: name}}
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
			c.do(made, http.MethodPost, runtimeClasses.path("", ""), plainJSON, fmt.Sprintf(`{"metadata":{"name":%q,%s},"handler":"h"}`, name, marksOf(on, made.ID)))
		}
		c.rest(ctx)
	}
}

// marksOf returns the metadata that a write of a class sets.
func marksOf(on bool, id string) string {
	return fmt.Sprintf(`"labels":{"on":%q},"annotations":{"robust.rowlock.dev/v":%q}`, map[bool]string{true: "yes", false: "no"}[on], id)
}

// watchClasses watches two classes by their names, as a kubelet does its Node, and those with a label.
func (t *Traffic) watchClasses() {
	for n, selector := range []history.Selector{{Name: className(0)}, {Name: className(1)}, {On: true}} {
		w := &watcher{scope: classScope, selector: selector, streams: n == 1}
		w.client = t.client(fmt.Sprintf("class-watch-%d", n), protocols[n%2], false)
		t.readers.Go(w.run)
	}
}
