//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

func noBody(string) string { return "" }

// holders makes objects with a finalizer, deletes them, changes and reads them while they wait for that, and takes it away.
func (c *client) holders(ctx context.Context) {
	for ctx.Err() == nil {
		n := c.rand.IntN(2)
		k, ns := []kind{configMaps, widgets}[n], Namespaces[n]
		name := "held-" + c.rec.ID()
		key := history.Key{Resource: k.resource, Namespace: ns, Name: name}
		object := func(metadata, spec, field, id string) string {
			if k.resource == widgets.resource {
				return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{%s},"spec":{%s"values":{%q:%q}}}`, k.apiVersion, k.name, metadata, spec, field, id)
			}
			return fmt.Sprintf(`{"metadata":{%s},"data":{%q:%q}}`, metadata, field, id)
		}
		create := func(id string) string {
			return object(fmt.Sprintf(`"name":%q,"labels":{"on":"yes"},"finalizers":[%q]`, name, holding), `"side":"yes",`, "v", id)
		}
		if _, ok := c.until(ctx, history.Op{Kind: history.Create, Field: "v", Key: key}, http.MethodPost, k.path(ns, ""), plainJSON, create, history.OK, history.Exists); !ok {
			return
		}
		if c.rand.IntN(2) == 0 {
			c.do(&history.Op{Server: c.any(), Kind: history.Mark, Dry: true, Key: key}, http.MethodDelete, k.path(ns, name)+"?dryRun=All", "", "")
		}
		marked, ok := c.until(ctx, history.Op{Kind: history.Mark, Key: key}, http.MethodDelete, k.path(ns, name), "", noBody, history.OK, history.NotFound)
		if !ok || marked.Outcome == history.NotFound { // a loss took it
			continue
		}
		release := func(id string) string { return object(`"finalizers":null`, "", "released", id) }
		for range c.rand.IntN(5) {
			op := &history.Op{ID: c.rec.ID(), Server: c.any(), Kind: history.Get, Key: key}
			switch c.rand.IntN(7) {
			case 0:
				c.do(op, http.MethodGet, k.path(ns, name), "", "")
				if op.Got != nil && k.resource == widgets.resource { // which only this client writes
					c.putStatus(k, key, op.Got.Version)
				}
			case 1: // again
				op.Kind = history.Mark
				c.do(op, http.MethodDelete, k.path(ns, name), "", "")
			case 2: // which must leave no trace
				op.Kind, op.Field, op.Dry = history.Release, "released", true
				c.do(op, http.MethodPatch, k.path(ns, name)+"?dryRun=All", mergePatch, release(op.ID))
			case 3: // nothing more can hold an object that goes
				op.Kind, op.Field, op.Never = history.Set, "v", true
				c.do(op, http.MethodPatch, k.path(ns, name), mergePatch, object(fmt.Sprintf(`"finalizers":[%q,"robust.rowlock.dev/late"]`, holding), "", "v", op.ID))
			case 4: // without what only the server sets
				op.Kind, op.Field = history.Set, "v"
				method, contentType, body := http.MethodPut, plainJSON, create(op.ID)
				if k.resource == widgets.resource { // whose PUT needs a version
					method, contentType, body = http.MethodPatch, mergePatch, object(`"deletionTimestamp":null,"deletionGracePeriodSeconds":null`, "", "v", op.ID)
				}
				c.do(op, method, k.path(ns, name), contentType, body)
			case 5: // a status is no way to release it
				if k.resource != widgets.resource {
					continue
				}
				op.Kind, op.Field = history.Status, heldStatus
				c.do(op, http.MethodPatch, k.path(ns, name)+"/status", mergePatch, strings.Replace(k.body("", 0, heldStatus, op.ID, nil, 0), `"metadata":{`, `"metadata":{"finalizers":null`, 1))
			default:
				op.Kind, op.Field = history.Set, "v"
				c.do(op, http.MethodPatch, k.path(ns, name), mergePatch, k.body("", 0, "v", op.ID, nil, 0))
			}
			c.rest(ctx)
		}
		if _, ok := c.until(ctx, history.Op{Kind: history.Release, Field: "released", Key: key}, http.MethodPatch, k.path(ns, name), mergePatch, release, history.OK, history.NotFound); !ok {
			return
		}
	}
}

// heldStatus is the field in the status of objects that wait for their clients.
const heldStatus = "status.held"

// putStatus replaces the status of an object at a version. All else that the body lacks, or has, is not the status.
func (c *client) putStatus(k kind, key history.Key, version uint64) {
	op := &history.Op{ID: c.rec.ID(), Server: c.any(), Kind: history.Status, Field: heldStatus, Key: key}
	c.do(op, http.MethodPut, k.path(key.Namespace, key.Name)+"/status", plainJSON, k.body(key.Name, version, heldStatus, op.ID, nil, 0))
}

// holding is the finalizer of objects that wait for their clients.
const holding = "robust.rowlock.dev/hold"

// vacates makes namespaces with some objects, and deletes them, while another client makes more objects in them.
func (c *client) vacates(ctx context.Context) {
	const path = "/api/v1/namespaces"
	for turn := 0; ctx.Err() == nil; turn++ {
		ns := fmt.Sprintf("%s-r%d-%d", c.name, c.round, turn)
		admin := history.Op{Kind: history.Vacate, Key: history.Key{Resource: "namespaces", Name: ns}}
		if _, _, ok := c.must(ctx, c, http.MethodPost, path, fmt.Sprintf(`{"metadata":{"name":%q}}`, ns), http.StatusCreated, http.StatusConflict); !ok {
			return
		}
		for i := range 6 {
			c.inside([]kind{configMaps, leases}[i%2], ns, fmt.Sprintf("object-%d", i))
		}
		late, stop := context.WithCancel(ctx)
		m := c.Traffic.client(ns+"-late", c.proto, false)
		var maker sync.WaitGroup
		maker.Go(func() {
			defer m.http.CloseIdleConnections()
			m.late(late, ns)
		})
		_, ok := c.until(ctx, admin, http.MethodDelete, path+"/"+ns, "", noBody, history.OK, history.NotFound, history.Conflict)
		ok = ok && c.absent(ctx, path+"/"+ns, path+"/"+ns, "")
		stop()
		if maker.Wait(); !ok {
			return
		}
	}
}

// late makes objects in a namespace until ctx ends. Those that are made before the namespace is gone go with it, and no others are made.
func (c *client) late(ctx context.Context, ns string) {
	for ctx.Err() == nil {
		c.inside(configMaps, ns, "late-"+c.rec.ID())
		c.rest(ctx)
	}
}

// inside makes an object in a namespace that goes.
func (c *client) inside(k kind, ns, name string) {
	op := &history.Op{ID: c.rec.ID(), Client: c.name, Server: c.any(), Kind: history.Create, Key: history.Key{Resource: k.resource, Namespace: ns, Name: name}, Call: c.rec.Now()}
	code, answer, err := c.send(context.Background(), op.Server, http.MethodPost, k.path(ns, ""), plainJSON, k.body(name, 0, "v", op.ID, nil, 0))
	op.Return, op.Code, op.Outcome = c.rec.Now(), code, outcome(code, answer, err)
	c.rec.Add(op) // without what it got: the judge reads the table of other namespaces without values
}

// absentTime bounds how long something is there that controllers delete, not counting faults.
const absentTime = time.Minute

// absent waits until an object is gone, and notes when. It repeats the delete that is its cause, which a failover may have undone.
func (c *client) absent(ctx context.Context, path, deleted, body string) bool {
	n, due := 0, &history.Due{Property: "liveness", Server: -1, Within: absentTime, Cause: c.rec.Now()}
	return c.awaits(ctx, due, func(ctx context.Context) (came, void bool) {
		if n++; n%50 == 0 {
			_, _, _ = c.send(ctx, c.any(), http.MethodDelete, deleted, plainJSON, body)
		}
		code, answer, err := c.send(ctx, c.any(), http.MethodGet, path, "", "")
		if err == nil {
			due.What = fmt.Sprintf("the end of %s, as %s was deleted, in place of the answer %d %.600s,", path, deleted, code, answer)
		}
		return code == http.StatusNotFound, false
	})
}

// happens makes Events, and writes some of them again, so that they live longer.
func (c *client) happens(ctx context.Context) {
	const resource, path = "events", "/api/v1/namespaces/green/events"
	for ctx.Err() == nil {
		name := "event-" + c.rec.ID()
		message := strings.Repeat("x", []int{10, 25_000}[c.rand.IntN(2)])
		op := history.Op{Kind: history.Renew, Key: history.Key{Resource: resource, Namespace: "green", Name: name}}
		body := func(id string) string {
			return fmt.Sprintf(`{"metadata":{"name":%q},"involvedObject":{"kind":"Pod","namespace":"green","name":"p"},"reason":%q,"message":%q,"type":"Normal"}`, name, id, message)
		}
		if _, ok := c.until(ctx, op, http.MethodPost, path, plainJSON, body, history.OK, history.Exists); !ok {
			return
		}
		for n := c.rand.IntN(3); n > 0 && ctx.Err() == nil; n-- {
			sleep(ctx, time.Duration(c.rand.IntN(4000))*time.Millisecond)
			op.ID, op.Server = c.rec.ID(), c.any()
			again := op
			c.do(&again, http.MethodPatch, path+"/"+name, mergePatch, fmt.Sprintf(`{"count":%d}`, 10-n))
		}
		c.rest(ctx)
	}
}

// toggles sets an object that all clients share to one of two values, in several ways, so that many writes change nothing of what
// their server knows, and reads it.
func (c *client) toggles(ctx context.Context) {
	const ns = fleetNamespace // in which the judge does not look for the writes of configmaps
	for ctx.Err() == nil {
		name := c.gens.name("toggle", c.round)
		op := &history.Op{ID: c.rec.ID(), Server: c.any(), Key: history.Key{Resource: configMaps.resource, Namespace: ns, Name: name}, Field: "v", Value: []string{"a", "b"}[c.rand.IntN(2)]}
		path, body := configMaps.path(ns, name), configMaps.body("", 0, "v", op.Value, nil, 0)
		switch op.Kind = history.Set; c.rand.IntN(5) {
		case 0, 1:
			op.Kind, op.Field, op.Value = history.Get, "", ""
			c.do(op, http.MethodGet, path, "", "")
		case 2:
			c.do(op, http.MethodPut, path, plainJSON, configMaps.body(name, 0, "v", op.Value, nil, 0))
		case 3:
			c.do(op, http.MethodPatch, path, strategicPatch, body)
		default:
			c.do(op, http.MethodPatch, path, mergePatch, body)
		}
		switch {
		case op.Outcome == history.NotFound:
			create := *op
			create.ID, create.Kind, create.Field, create.Value, create.Got = c.rec.ID(), history.Create, "v", "a", nil
			c.do(&create, http.MethodPost, configMaps.path(ns, ""), plainJSON, configMaps.body(name, 0, "v", "a", nil, 0))
		case op.Outcome == history.Unknown && op.Kind == history.Set:
			c.gens.opened("toggle")
		}
		c.rest(ctx)
	}
}
