package aggregator

import (
	"context"
	"math/rand/v2"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/server/aggregator/endpoints"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/webhook"
)

// route is the address that was found for a Service. It does not change.
type route struct {
	by        resolvedObjects
	addresses []string // one at least
}

// resolvedObjects are the objects by which a Service is found, as they were in memory. As long as
// they are the same, so are its addresses.
type resolvedObjects struct {
	service, endpoints *cache.Item
	slices             *endpoints.Slices
}

// traces returns the present slices and Endpoints. If there are no slices, Endpoints suffice.
func (a *Aggregator) traces(namespace, name string, withSlices bool) (t resolvedObjects) {
	if t.service = a.cfg.Cache.Get("services", namespace, name); t.service == nil {
		return t
	}
	if t.endpoints = a.cfg.Cache.Get("endpoints", namespace, name); t.endpoints == nil || withSlices {
		t.slices = a.cfg.Slices.Of(namespace, name)
	}
	return t
}

// leading returns the objects that a check depends on. Slices do not matter while Endpoints lead
// to a server that is available.
func (a *Aggregator) leading(to *apiregistrationv1.ServiceReference, available bool) resolvedObjects {
	return a.traces(to.Namespace, to.Name, !available)
}

// serviceOf returns the Service of an APIService that has one.
func serviceOf(s *apiregistrationv1.APIService) webhook.Service {
	ref := s.Spec.Service
	return webhook.Service{Namespace: ref.Namespace, Name: ref.Name, Port: portOf(ref)}
}

// Address returns where the server behind an APIService is at the moment, host:port: one of the
// addresses of its Service. They are computed once for each state of those objects. The error is a
// *ResolveError, and is not cached.
func (a *Aggregator) Address(ctx context.Context, s *apiregistrationv1.APIService) (string, error) {
	to := serviceOf(s)
	by := resolvedObjects{service: a.cfg.Cache.Get("services", to.Namespace, to.Name)}
	if a.cfg.Services.Direct {
		by = a.traces(to.Namespace, to.Name, true)
	}
	a.mu.Lock()
	known := a.routes[to]
	a.mu.Unlock()
	if known == nil || known.by != by {
		addresses, err := a.cfg.Services.Addresses(ctx, to)
		if err != nil {
			return "", &ResolveError{err}
		}
		known = &route{by, addresses}
		if by.service != nil {
			a.mu.Lock()
			a.routes[to] = known
			a.mu.Unlock()
		}
	}
	return known.addresses[rand.IntN(len(known.addresses))], nil
}
