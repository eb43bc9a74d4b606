// Package flow keeps the objects of flow control: the schemas and priority levels that every cluster has, and
// the condition of schemas whose level is missing.
package flow

import (
	"context"
	"net/http"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds/flowcontrol"
	"github.com/rowlock/rowlock/server/release"
)

const (
	schemasStorage = "flowschemas.flowcontrol.apiserver.k8s.io"
	schemasPath    = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/"
	levelsStorage  = "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"
	levelsPath     = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/"
)

// Controller keeps the Dangling condition of flow schemas true, and repairs the schemas and levels that are there from
// the start. A change of a schema costs a write at most, the coming and going of a priority level one for each schema
// that names it.
type Controller struct {
	reconcile.Base
	Release release.Version // whose schemas there are
}

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	var repair reconcile.Key // others are names of schemas
	l := &reconcile.Loop{Base: c.Base, Keys: []reconcile.Key{repair}, Resync: repairEvery, Failure: "cannot keep an object of flow control"}
	l.Reconcile = func(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
		if key == repair {
			return r, c.repair(ctx)
		}
		return r, c.condition(ctx, key.Name)
	}
	named := func(level *cache.Item) {
		c.Cache.Snapshot(schemasStorage).Ascend("", "", "", func(item *cache.Item) bool {
			if levelOf(item) == level.Name {
				l.Queue.Add(reconcile.KeyOf(item), 0)
			}
			return true
		})
	}
	l.Sources = []reconcile.Source{l.Objects(schemasStorage, nil), {Storage: levelsStorage, Changed: func(d cache.Delivery) { named(d.Item()) }}}
	return l.Run(ctx)
}

func levelOf(schema *cache.Item) string {
	return reconcile.Text(schema, "spec", "priorityLevelConfiguration", "name")
}

// condition writes the condition of a schema if it is out of date. An unreadable level counts as missing: no
// request is assigned to it.
func (c *Controller) condition(ctx context.Context, name string) error {
	var s struct {
		Status struct {
			Conditions []flowcontrolv1.FlowSchemaCondition
		}
	}
	item := c.Cache.Get(schemasStorage, "", name)
	if !reconcile.Decode(item, &s) {
		return nil
	}
	named := levelOf(item)
	level := c.Cache.Get(levelsStorage, "", named)
	want := flowcontrol.Dangling(named, level != nil && level.Err() == nil, c.Now())
	for _, has := range s.Status.Conditions {
		if has.Type == want.Type && has.Status == want.Status && has.Reason == want.Reason && has.Message == want.Message {
			return nil
		}
	}
	path := schemasPath + name + "/status?force=true&fieldManager=" + flowcontrol.Consumer
	return c.API.Call(ctx, flowcontrol.Consumer, http.MethodPatch, path, reconcile.Apply, flowcontrol.Applied(name, want), nil)
}
