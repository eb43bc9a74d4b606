package controllers

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds/apiregistration"
)

// apiServicesAgent is the field manager of what this controller writes.
const apiServicesAgent = "kube-apiserver"

// APIServices writes down which APIServices are available: those that this server serves
// itself always are, of others the server that runs the controller says what it found.
type APIServices struct {
	API        API
	Cache      *cache.Cache
	Aggregator *aggregator.Aggregator
	Log        *slog.Logger
	Clock      func() time.Time
	Retry      time.Duration // how soon a failure is tried again; 0: a second
	Queue      *Queue        // nil: the work is not measured
}

// Run works until ctx ends.
func (c *APIServices) Run(ctx context.Context) error { return again(ctx, c.Retry, c.follow) }

// follow looks at all APIServices whenever one of them, or what is known of one, changes.
func (c *APIServices) follow(ctx context.Context) bool {
	w, _ := c.Cache.WatchNow(aggregator.Storage, cache.Scope{})
	defer w.Stop()
	var batch []cache.Delivery
	var err error
	for {
		ok := true
		for _, s := range c.Aggregator.Services().All() {
			if wanted, known := c.wanted(s); known && !says(s, wanted) {
				c.Queue.Add(1)
				ok = c.Queue.Work(func() bool { return c.write(ctx, s, wanted) }) && ok
			}
		}
		if !ok {
			return false
		}
		select {
		case <-ctx.Done():
			return true
		case <-c.Aggregator.Changed():
		case <-w.Ready():
			if batch, _, err = w.Take(ctx, batch); err != nil {
				return true
			}
			awaitReaders(ctx, c.Cache, batch)
		}
	}
}

// awaitReaders waits until what a watch has brought is what readers of the cache find: a
// watch hears of changes first.
func awaitReaders(ctx context.Context, c *cache.Cache, batch []cache.Delivery) {
	if n := len(batch); n > 0 {
		_ = c.WaitFor(ctx, batch[n-1].Revision()) // fails with ctx alone
	}
}

// wanted is the condition that an APIService should have; known is false where nobody has
// looked yet.
func (c *APIServices) wanted(s *apiregistrationv1.APIService) (_ apiregistrationv1.APIServiceCondition, known bool) {
	now := metav1.NewTime(c.Clock())
	if s.Spec.Service == nil {
		return apiregistration.LocalCondition(now), true
	}
	v, known := c.Aggregator.Verdict(s)
	return apiregistrationv1.APIServiceCondition{
		Type: apiregistrationv1.Available, Status: v.Status, Reason: v.Reason, Message: v.Message, LastTransitionTime: now,
	}, known
}

// Restore writes down that a local APIService is available, where a write has left it
// without a word of that. It is done before the writer has its answer, so that what it
// sends next finds the condition, as clients of a stock server do: the loop alone would
// have to be faster than the client. Failures it leaves to the loop, and changes as well
// that another write has made of the object since. Of what this controller writes it hears
// as well, and leaves it alone: admission may take the condition away each time.
func (c *APIServices) Restore(ctx context.Context, item *cache.Item) {
	if ctx.Value(restored{}) != nil {
		return
	}
	s := &apiregistrationv1.APIService{}
	if _, err := c.Cache.JSON().Decode(item.JSON(), s, codecs.Ignore); err != nil || s.Spec.Service != nil {
		return
	}
	if wanted, known := c.wanted(s); known && !says(s, wanted) {
		c.write(ctx, s, wanted)
	}
}

// restored marks the context of what this controller writes.
type restored struct{}

func available(list []apiregistrationv1.APIServiceCondition) int {
	return slices.IndexFunc(list, func(c apiregistrationv1.APIServiceCondition) bool { return c.Type == apiregistrationv1.Available })
}

// says says whether an APIService has a condition already, whenever it got it.
func says(s *apiregistrationv1.APIService, c apiregistrationv1.APIServiceCondition) bool {
	i := available(s.Status.Conditions)
	if i < 0 {
		return false
	}
	have := s.Status.Conditions[i]
	return have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message
}

func (c *APIServices) write(ctx context.Context, s *apiregistrationv1.APIService, condition apiregistrationv1.APIServiceCondition) bool {
	s = s.DeepCopy()
	if i := available(s.Status.Conditions); i < 0 {
		s.Status.Conditions = append(s.Status.Conditions, condition)
	} else {
		if s.Status.Conditions[i].Status == condition.Status {
			condition.LastTransitionTime = s.Status.Conditions[i].LastTransitionTime
		}
		s.Status.Conditions[i] = condition
	}
	err := c.API.Call(context.WithValue(ctx, restored{}, true), apiServicesAgent, http.MethodPut, apiServicesPath+"/"+s.Name+"/status", "application/json", s, nil)
	if ignoreGone(err) == nil || ctx.Err() != nil {
		return true // what it is now is on its way here
	}
	c.Log.Warn("writing whether an APIService is available", "name", s.Name, "error", err)
	return false
}
