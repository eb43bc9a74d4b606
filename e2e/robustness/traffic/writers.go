//go:build unix

package traffic

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// generations bound the histories of objects: after some operations, or some without an answer, a name gets a successor.
type generations struct {
	mu  sync.Mutex
	all map[string]*generation
}

type generation struct{ number, ops, open int }

// Bounds of one object's history.
const (
	mostOps  = 120
	mostOpen = 10
)

func (g *generations) name(base string, round int) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == nil {
		g.all = map[string]*generation{}
	}
	now := g.all[base]
	if now == nil || now.ops >= mostOps || now.open >= mostOpen {
		next := &generation{}
		if now != nil {
			next.number = now.number + 1
		}
		now = next
		g.all[base] = now
	}
	now.ops++
	return fmt.Sprintf("%s-r%d-g%d", base, round, now.number)
}

// some returns the present name of one of the registers; "": none has one yet.
func (g *generations) some(round, i int) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	base := fmt.Sprintf("register%d", i)
	if now := g.all[base]; now != nil {
		return fmt.Sprintf("%s-r%d-g%d", base, round, now.number)
	}
	return ""
}

func (g *generations) opened(base string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all[base].open++
}

const (
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	applyPatch     = "application/apply-patch+yaml"
	jsonPatch      = "application/json-patch+json"
	plainJSON      = "application/json"
)

// registered is the number of registers.
const registered = 5

// register returns the kind and name of a register.
func register(i int) (kind, string) {
	return []kind{configMaps, leases, widgets}[i%3], Namespaces[i%2]
}

// registers reads, sets and swaps a few objects that all clients share: ConfigMaps, Leases and custom resources.
func (c *client) registers(ctx context.Context) {
	known := map[string]uint64{}
	uids, ended := map[string]string{}, map[string]string{} // of the known versions, and of objects that were deleted
	for ctx.Err() == nil {
		i := c.rand.IntN(registered)
		k, ns := register(i)
		if k.resource == widgets.resource {
			k = widgetVersions[c.rand.IntN(len(widgetVersions))]
		}
		if c.form = []history.Form{history.Protobuf, history.Protobuf, history.YAML, history.CBOR, history.CBOR, history.Whole}[min(c.rand.IntN(14), 5)]; c.form == history.Protobuf && k.resource == widgets.resource {
			c.form = history.Whole // custom resources have no other
		}
		field := map[string]string{configMaps.resource: "v", leases.resource: "holder", widgets.resource: "v"}[k.resource]
		base := fmt.Sprintf("register%d", i)
		name := c.gens.name(base, c.round)
		key := history.Key{Resource: k.resource, Namespace: ns, Name: name}
		op := &history.Op{ID: c.rec.ID(), Server: c.any(), Key: key}
		on := c.rand.IntN(2) == 0
		pad := 0
		if c.rand.IntN(8) == 0 {
			pad = c.rand.IntN(20_000)
		}
		version := known[name]
		switch n := c.rand.IntN(25); {
		case n < 5:
			op.Kind = history.Get
			c.do(op, http.MethodGet, k.path(ns, name), "", "")
		case n < 7:
			op.Kind, op.Cached = history.Get, true
			query := "?resourceVersion=0"
			if version != 0 && n == 6 {
				op.AtLeast, op.Cached = version, false
				query = fmt.Sprintf("?resourceVersion=%d", version)
			}
			c.do(op, http.MethodGet, k.path(ns, name)+query, "", "")
		case n == 20 && version != 0: // whatever it is, it must leave no trace
			op.Kind, op.Field, op.Dry = history.Set, field, true
			switch c.rand.IntN(4) {
			case 0:
				c.do(op, http.MethodPatch, k.path(ns, name)+"?dryRun=All", mergePatch, k.body("", 0, field, op.ID, &on, pad))
			case 1: // it may be deleted
				op.Kind = history.Create
				c.do(op, http.MethodPost, k.path(ns, "")+"?dryRun=All", plainJSON, k.body(name, 0, field, op.ID, &on, pad))
			case 2:
				c.do(op, http.MethodPut, k.path(ns, name)+"?dryRun=All", plainJSON, k.body(name, version, field, op.ID, &on, pad))
			default:
				op.Kind = history.Delete
				c.do(op, http.MethodDelete, k.path(ns, name)+"?dryRun=All", "", "")
			}
		case n == 21 && version != 0:
			op.Kind, op.Never = history.Delete, true
			c.do(op, http.MethodDelete, k.path(ns, name), plainJSON, fmt.Sprintf(`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":%q}}`, cmp.Or(ended[name], "00000000-0000-4000-8000-000000000000")))
		case n == 22 && version != 0: // of another object
			op.Kind, op.Field, op.Never = history.Swap, field, true
			method, contentType, text := http.MethodPut, plainJSON, name
			if k.resource == leases.resource || on { // a PUT creates Leases
				op.Kind, method, contentType, text = history.Set, http.MethodPatch, mergePatch, ""
			}
			body := strings.Replace(k.body(text, 0, field, op.ID, &on, pad), `"metadata":{`, `"metadata":{"uid":"00000000-0000-4000-8000-000000000000",`, 1)
			c.do(op, method, k.path(ns, name), contentType, body)
		case n > 22 && version > 1: // a patch that tests a version
			op.Kind, op.Field, op.Expect, op.Tests = history.Swap, field, version, true
			path := map[string]string{configMaps.resource: "/data/v", leases.resource: "/spec/holderIdentity", widgets.resource: "/spec/values/v"}[k.resource]
			c.do(op, http.MethodPatch, k.path(ns, name), jsonPatch, fmt.Sprintf(`[{"op":"test","path":"/metadata/resourceVersion","value":"%d"},{"op":"replace","path":%q,"value":%q}]`, version, path, op.ID))
		case n < 9 && version != 0: // a patch with a version
			op.Kind, op.Field, op.Expect, op.On = history.Swap, field, version, &on
			c.do(op, http.MethodPatch, k.path(ns, name), mergePatch, k.body("", version, field, op.ID, &on, pad))
		case n < 12 && version != 0:
			op.Kind, op.Field, op.Expect, op.On = history.Swap, field, version, &on
			op.Creates = k.resource == leases.resource // as stock servers do
			c.do(op, http.MethodPut, k.path(ns, name), plainJSON, k.body(name, version, field, op.ID, &on, pad))
		case n < 15 && version != 0:
			op.Kind, op.Field, op.On = history.Set, field, &on
			c.do(op, http.MethodPatch, k.path(ns, name), mergePatch, k.body("", 0, field, op.ID, &on, pad))
		case n < 17 && version != 0:
			op.Kind = history.Delete
			body := ""
			if n == 16 {
				op.Expect = version
				of := ""
				if on && uids[name] != "" {
					of = fmt.Sprintf(`"uid":%q,`, uids[name])
				}
				body = fmt.Sprintf(`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{%s"resourceVersion":"%d"}}`, of, version)
			}
			c.do(op, http.MethodDelete, k.path(ns, name), plainJSON, body)
		default:
			op.Kind, op.Field, op.On = history.Create, field, &on
			c.do(op, http.MethodPost, k.path(ns, ""), plainJSON, k.body(name, 0, field, op.ID, &on, pad))
		}
		if op.Dry || op.Never {
			c.rest(ctx)
			continue
		}
		switch op.Outcome {
		case history.OK:
			if op.Kind == history.Delete && op.Expect != 0 {
				ended[name] = uids[name]
			}
			if known[name] = 0; op.Got != nil {
				known[name], uids[name] = op.Got.Version, op.Got.UID
			}
		case history.NotFound, history.Conflict:
			known[name] = 0
		case history.Exists:
			known[name] = 1 // a version that no object has any more: a conflict or a read returns the right one
		case history.Unknown:
			if op.Writes() {
				c.gens.opened(base)
			}
		}
		c.rest(ctx)
	}
}

// sets adds members to sets that only grow, and reads them. Custom resources have some of the members in a list, to which a JSON patch adds
// one at the end.
func (c *client) sets(ctx context.Context) {
	for ctx.Err() == nil {
		i := c.rand.IntN(2)
		k := []kind{configMaps, widgets}[i]
		ns := Namespaces[i]
		base := fmt.Sprintf("set%d", i)
		name := c.gens.name(base, c.round)
		op := &history.Op{ID: c.rec.ID(), Server: c.any(), Key: history.Key{Resource: k.resource, Namespace: ns, Name: name}}
		if c.rand.IntN(3) == 0 {
			op.Kind = history.Get
			c.do(op, http.MethodGet, k.path(ns, name), "", "")
		} else if op.Kind, op.Field = history.Set, op.ID; k.resource == widgets.resource && c.rand.IntN(2) == 0 {
			op.Tests = true
			c.do(op, http.MethodPatch, k.path(ns, name), jsonPatch, fmt.Sprintf(`[{"op":"add","path":"/spec/log/-","value":%q}]`, op.ID))
		} else {
			c.do(op, http.MethodPatch, k.path(ns, name), mergePatch, k.body("", 0, op.ID, op.ID, nil, 0))
		}
		if op.Outcome == history.NotFound {
			id := c.rec.ID()
			create := &history.Op{ID: id, Server: c.any(), Kind: history.Create, Key: op.Key, Field: id}
			on := c.rand.IntN(2) == 0
			body := k.body(name, 0, id, id, &on, 0)
			c.do(create, http.MethodPost, k.path(ns, ""), plainJSON, strings.Replace(body, `"spec":{`, `"spec":{"log":[],`, 1))
		}
		c.rest(ctx)
	}
}

// applies is one of several owners of fields, who apply them to the same objects: each one field always, and another one at times,
// which goes with the next apply without it. At times an owner tries to take the field of another one, which is a conflict, takes the
// contested one by force, applies one together with others, names the version that it replaces, or one that does not apply writes a field.
func (c *client) applies(ctx context.Context) {
	seen := map[string]string{} // the field of another owner, by object
	known := map[string]uint64{}
	for ctx.Err() == nil {
		i := c.rand.IntN(2)
		k := []kind{configMaps, widgetVersions[c.rand.IntN(len(widgetVersions))]}[i]
		ns := Namespaces[i]
		name := c.gens.name(fmt.Sprintf("applied%d", i), c.round)
		op := &history.Op{ID: c.rec.ID(), Server: c.any(), Kind: history.Apply, Field: c.name, Key: history.Key{Resource: k.resource, Namespace: ns, Name: name}}
		query := ""
		switch n := c.rand.IntN(12); {
		case n < 3:
			op.Also = c.name + ".more"
		case n == 3:
			op.Also = seen[name]
		case n == 5:
			op.Expect = known[name]
		case n == 6, n == 7:
			op.Also = history.Shared
		case n > 8:
			op.Also, op.Force = history.Contested, true
			query = "&force=true"
		case n == 8:
			op.Dry = true
			query = "&dryRun=All"
		case n == 4: // a client that does not apply
			op.Kind, op.Field = history.Set, "updated"
			c.do(op, http.MethodPatch, k.path(ns, name)+"?fieldManager=updater", mergePatch, k.body("", 0, op.Field, op.ID, nil, 0))
			c.rest(ctx)
			continue
		}
		fields := map[string]any{op.Field: op.ID}
		if op.Also != "" {
			fields[op.Also] = op.ID
		}
		if op.Also == history.Shared {
			fields[op.Also] = "the same"
		}
		body := k.applied(name, op.Field, op.ID, fields)
		if op.Expect != 0 {
			body = strings.Replace(body, `"metadata":{`, fmt.Sprintf(`"metadata":{"resourceVersion":"%d",`, op.Expect), 1)
		}
		c.apply(op, k.path(ns, name)+"?fieldManager="+c.name+query, body)
		if op.Got != nil {
			known[name] = op.Got.Version
			for field := range op.Got.Fields {
				if field != c.name && field != history.Shared && !strings.Contains(field, ".") {
					seen[name] = field
				}
			}
		}
		c.rest(ctx)
	}
}

// statuses is one of several controllers, each with a field of its own in the status of the same objects. It scales these, too.
func (c *client) statuses(ctx context.Context) {
	for ctx.Err() == nil {
		ns := Namespaces[c.rand.IntN(2)]
		k, name, contentType := deployments, c.gens.name("deployment-"+ns, c.round), strategicPatch
		if c.rand.IntN(2) == 0 {
			k, name, contentType = widgets, c.gens.name("status-"+ns, c.round), mergePatch
		}
		if c.rand.IntN(4) == 0 {
			c.scales(k, history.Key{Resource: k.resource, Namespace: ns, Name: name})
			c.rest(ctx)
			continue
		}
		op := &history.Op{ID: c.rec.ID(), Server: c.any(), Kind: history.Status, Field: "status." + c.name, Key: history.Key{Resource: k.resource, Namespace: ns, Name: name}}
		c.do(op, http.MethodPatch, k.path(ns, name)+"/status", contentType, k.body("", 0, op.Field, op.ID, nil, 0))
		on := c.rand.IntN(2) == 0
		switch other := (&history.Op{ID: c.rec.ID(), Server: c.any(), Key: op.Key}); {
		case op.Outcome == history.NotFound && k.resource == deployments.resource:
			other.Kind = history.Create
			c.do(other, http.MethodPost, k.path(ns, ""), plainJSON, deploymentBody(name, other.ID, on))
		case op.Outcome == history.NotFound:
			other.Kind, other.Field, other.Also = history.Create, "v", history.Replicas
			replicas, err := history.ReplicasOf(other.ID)
			if err != nil {
				c.rec.Stuck(err.Error())
				return
			}
			body := k.body(name, 0, "v", other.ID, &on, 0)
			c.do(other, http.MethodPost, k.path(ns, ""), plainJSON, strings.Replace(body, `"spec":{`, fmt.Sprintf(`"spec":{"replicas":%d,`, replicas), 1))
		case k.resource == widgets.resource && op.Got != nil && c.rand.IntN(3) == 0:
			c.rest(ctx)
			c.replaceStatus(other, op.Got)
		case k.resource == widgets.resource && c.rand.IntN(3) == 0: // the rest changes meanwhile
			other.Kind, other.Field, other.On = history.Set, "v", &on
			c.do(other, http.MethodPatch, k.path(ns, name), mergePatch, k.body("", 0, "v", other.ID, &on, 0))
		}
		c.rest(ctx)
	}
}

// Some objects are larger than what a server queues for a watch.
const (
	hugePad = 600_000
	oneHuge = 60 // of so many
)

// ownFields are set by the server alone.
const ownFields = `"uid":"00000000-0000-4000-8000-000000000001","creationTimestamp":"2001-01-01T00:00:00Z","deletionTimestamp":"2001-01-01T00:00:00Z"`

// batches creates some objects, and deletes them together.
func (c *client) batches(ctx context.Context) {
	for ctx.Err() == nil {
		batch := c.rec.ID()
		ns := Namespaces[c.rand.IntN(2)]
		for i := range 2 + c.rand.IntN(6) {
			name := fmt.Sprintf("batch-%s-%d", batch, i)
			op := &history.Op{ID: c.rec.ID(), Server: c.any(), Kind: history.Create, Field: "v", Key: history.Key{Resource: configMaps.resource, Namespace: ns, Name: name}}
			by := "name"
			if i == 0 {
				by, name = "generateName", fmt.Sprintf("batch-%s-", batch)
				op.Key.Name, op.Prefix = name, true
			}
			pad := 0
			if c.rand.IntN(oneHuge) == 0 {
				pad = hugePad
			}
			body := fmt.Sprintf(`{"metadata":{%q:%q,%s,"labels":{"on":"yes","batch":%q}},"data":{"v":%q,"pad":%q}}`, by, name, ownFields, batch, op.ID, strings.Repeat("x", pad))
			c.do(op, http.MethodPost, configMaps.path(ns, ""), plainJSON, body)
			c.rest(ctx)
		}
		if c.rand.IntN(2) == 0 { // which must leave all that others read meanwhile
			dry := &history.Op{Server: c.any(), Kind: history.DeleteCollection, Field: batch, Dry: true, Key: history.Key{Resource: configMaps.resource, Namespace: ns}}
			c.do(dry, http.MethodDelete, configMaps.path(ns, "")+"?dryRun=All&labelSelector=batch%3D"+batch, "", "")
			c.rest(ctx)
		}
		c.insist(ctx, func() history.Outcome {
			op := &history.Op{Server: c.any(), Kind: history.DeleteCollection, Field: batch, Key: history.Key{Resource: configMaps.resource, Namespace: ns}}
			return c.do(op, http.MethodDelete, configMaps.path(ns, "")+"?labelSelector=batch%3D"+batch, "", "").Outcome
		})
	}
}
