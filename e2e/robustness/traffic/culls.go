//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// culls makes two batches of objects side by side, and deletes first one and then the other: by selectors of which each part alone would
// choose more. A deletion whose preconditions no object fulfils deletes none.
func (c *client) culls(ctx context.Context) {
	for ctx.Err() == nil {
		ns, goes, stays := Namespaces[c.rand.IntN(2)], c.rec.ID(), c.rec.ID()
		made, all := 0, "cull="+goes
		number := 2 + c.rand.IntN(5)
		for i := range number {
			batch, on := goes, "yes"
			if i%2 == 1 {
				batch, on = stays, "no"
			}
			op := &history.Op{ID: c.rec.ID(), Server: c.any(), Kind: history.Create, Field: "v", Key: history.Key{Resource: configMaps.resource, Namespace: ns, Name: fmt.Sprintf("batch-%s-%d", batch, i)}}
			c.do(op, http.MethodPost, configMaps.path(ns, ""), plainJSON, fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"on":%q,"batch":%q,"cull":%q}},"data":{"v":%q}}`, op.Key.Name, on, batch, goes, op.ID))
			if batch == goes && op.Outcome == history.OK {
				made++
			}
			c.rest(ctx)
		}
		cull := func(batch, labels, fields, body string, never bool) history.Outcome {
			q := url.Values{"labelSelector": {labels}}
			if fields != "" {
				q.Set("fieldSelector", fields)
			}
			op := &history.Op{Server: c.any(), Kind: history.DeleteCollection, Field: batch, Never: never, Key: history.Key{Resource: configMaps.resource, Namespace: ns}}
			return c.do(op, http.MethodDelete, configMaps.path(ns, "")+"?"+q.Encode(), plainJSON, body).Outcome
		}
		if made > 0 {
			cull(goes, "batch="+goes, "", []string{
				`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"00000000-0000-4000-8000-000000000000"}}`,
				`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"1"}}`,
			}[c.rand.IntN(2)], true)
			c.rest(ctx)
		}
		selectors := [][2]string{{all + ",on=yes", ""}, {all + ",on!=no", ""}, {all + ",batch notin (" + stays + ")", ""}, {"on in (yes),batch=" + goes, "metadata.namespace=" + ns}}
		if number == 2 && made == 1 {
			selectors = append(selectors, [2]string{all, "metadata.name=batch-" + goes + "-0"})
		}
		some := selectors[c.rand.IntN(len(selectors))]
		for _, last := range [][3]string{{goes, some[0], some[1]}, {stays, all, ""}} {
			c.insist(ctx, func() history.Outcome { return cull(last[0], last[1], last[2], "", false) })
			c.rest(ctx)
		}
	}
}
