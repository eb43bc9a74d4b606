// Package apiservices sets the condition Available of APIServices: true for versions of this server, otherwise by this
// server's own check of the other server.
package apiservices

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds/apiregistration"
)

const agent = "kube-apiserver" // field manager of the controller's writes

// Path is the path of APIServices in the API.
const Path = "/apis/apiregistration.k8s.io/v1/apiservices"

// Controller records which APIServices are available: those of this server always are; of others, the server
// that runs the controller records its own result.
type Controller struct {
	reconcile.Base
	Aggregator *aggregator.Aggregator
}

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	l := &reconcile.Loop{Base: c.Base, Failure: "cannot write whether an APIService is available", Signal: c.Aggregator.Changed}
	l.Sources = []reconcile.Source{l.Objects(aggregator.Storage, nil)}
	l.Signalled = func() { // of some of them something else is known now
		for _, s := range c.Aggregator.Services().All() {
			if desired, known := c.desired(s); known && !hasCondition(s, desired) {
				l.Queue.Add(reconcile.Key{Name: s.Name}, 0)
			}
		}
	}
	l.Reconcile = func(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
		return r, c.reconcile(ctx, c.Cache.Get(aggregator.Storage, "", key.Name), false)
	}
	return l.Run(ctx)
}

// desired returns the condition that an APIService should have; known is false until the aggregator
// has a verdict.
func (c *Controller) desired(s *apiregistrationv1.APIService) (_ apiregistrationv1.APIServiceCondition, known bool) {
	now := metav1.NewTime(c.Now())
	if s.Spec.Service == nil {
		return apiregistration.LocalCondition(now), true
	}
	v, known := c.Aggregator.Availability(s)
	return apiregistrationv1.APIServiceCondition{
		Type: apiregistrationv1.Available, Status: v.Status, Reason: v.Reason, Message: v.Message, LastTransitionTime: now,
	}, known
}

// Restore records that a local APIService is available after a write has removed the condition. It does so
// before the client is answered, so that the client's next request finds the condition, as on a stock server:
// the loop alone would have to be faster than the client. It leaves failures, and concurrent changes of the
// object, to the loop. It ignores writes of this controller: admission may remove the condition each time.
func (c *Controller) Restore(ctx context.Context, item *cache.Item) {
	if ctx.Value(restored{}) != nil {
		return
	}
	if err := c.reconcile(ctx, item, true); reconcile.Current(err) != nil && ctx.Err() == nil {
		c.Log.Warn("cannot write whether an APIService is available", "name", item.Name, "error", err)
	}
}

// restored marks the context of this controller's writes.
type restored struct{}

// reconcile writes the condition of an APIService if it has changed. If local is set, it skips APIServices that lead to
// another server.
func (c *Controller) reconcile(ctx context.Context, item *cache.Item, local bool) error {
	s := &apiregistrationv1.APIService{}
	if item == nil || item.Err() != nil {
		return nil
	}
	if _, err := c.Cache.JSON().Decode(item.JSON(), s, codecs.Ignore); err != nil || local && s.Spec.Service != nil {
		return nil
	}
	condition, known := c.desired(s)
	if !known || hasCondition(s, condition) {
		return nil
	}
	helper.SetAPIServiceCondition(s, condition)
	return c.API.Call(context.WithValue(ctx, restored{}, true), agent, http.MethodPut, Path+"/"+s.Name+"/status", reconcile.JSON, s, nil)
}

// hasCondition reports whether an APIService has a condition already, regardless of its time.
func hasCondition(s *apiregistrationv1.APIService, c apiregistrationv1.APIServiceCondition) bool {
	have := helper.GetAPIServiceConditionByType(s, c.Type)
	return have != nil && have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message
}
