package aggregator

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/status"
)

// Availability is the state of an APIService that leads to another server; it becomes the condition Available.
type Availability struct {
	Status          apiregistrationv1.ConditionStatus
	Reason, Message string
}

// passed is the Availability of a server that answers.
var passed = Availability{apiregistrationv1.ConditionTrue, "Passed", "all checks passed"}

func (v Availability) available() bool { return v.Status == apiregistrationv1.ConditionTrue }

// Bounds of a check.
const (
	attempts    = 5                // addresses that are tried, one after another
	nextAttempt = time.Second      // how long one may keep the next waiting
	attemptTime = 5 * time.Second  // of one
	checkTime   = 6 * time.Second  // of all
	maxMessage  = 1024             // bytes of the message about a failure
	maxIgnored  = 64 << 10         // bytes of an answer that are read to use its connection again
	recheck     = 30 * time.Second // after which a server is checked again
)

// self is the user of availability checks.
var self = &authx.Identity{Name: "system:kube-aggregator", Groups: []string{authx.GroupMasters}}

// check finds out whether a server can be used. It stops at the first reason against it.
func (a *Aggregator) check(ctx context.Context, s *apiregistrationv1.APIService) Availability {
	if v, ok := a.checkObjects(ctx, s.Spec.Service); !ok {
		return v
	}
	if err := a.probe(ctx, s); err != nil {
		return Availability{apiregistrationv1.ConditionFalse, "FailedDiscoveryCheck", status.Brief(err.Error(), maxMessage)}
	}
	return passed
}

// checkObjects looks whether the Service and its endpoints lead anywhere.
func (a *Aggregator) checkObjects(ctx context.Context, to *apiregistrationv1.ServiceReference) (_ Availability, ok bool) {
	is := func(value apiregistrationv1.ConditionStatus, reason, format string, args ...any) (Availability, bool) {
		return Availability{value, reason, status.Brief(fmt.Sprintf(format, args...), maxMessage)}, false
	}
	const no, unknown = apiregistrationv1.ConditionFalse, apiregistrationv1.ConditionUnknown
	service, err := a.cfg.Services.Service(ctx, to.Namespace, to.Name)
	switch {
	case err != nil:
		return is(unknown, "ServiceAccessError", "service/%s in %q cannot be checked due to: %v", to.Name, to.Namespace, err)
	case service == nil:
		return is(no, "ServiceNotFound", "service/%s in %q is not present", to.Name, to.Namespace)
	case service.Spec.Type != corev1.ServiceTypeClusterIP:
		return passed, true
	}
	port := portOf(to)
	at := -1
	for i := range service.Spec.Ports {
		if service.Spec.Ports[i].Port == port {
			at = i
			break
		}
	}
	if at < 0 {
		return is(no, "ServicePortError", "service/%s in %q is not listening on port %d", to.Name, to.Namespace, port)
	}
	name, endpoints := service.Spec.Ports[at].Name, "endpoints"
	if a.cfg.Release.Has(release.SlicesOfServers) {
		endpoints = "endpointslices"
	}
	switch known, addresses, err := a.cfg.Services.Ready(ctx, to.Namespace, to.Name, name); {
	case err != nil:
		return is(unknown, "EndpointsAccessError", "service/%s in %q cannot be checked due to: %v", to.Name, to.Namespace, err)
	case !known:
		return is(no, "EndpointsNotFound", "cannot find %s for service/%s in %q", endpoints, to.Name, to.Namespace)
	case len(addresses) == 0:
		return is(no, "MissingEndpoints", "%s for service/%s in %q have no addresses with port name %q", endpoints, to.Name, to.Namespace, name)
	}
	return passed, true
}

// probe fetches the document of the group version from a server. One valid answer of a few addresses
// suffices. It does not verify certificates: an untrusted server answers nevertheless, and requests fail with
// the reason.
func (a *Aggregator) probe(ctx context.Context, s *apiregistrationv1.APIService) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	results := make(chan error, attempts)
	begin := func() { go func() { results <- a.attempt(ctx, s) }() }
	begun, ended := 1, 0
	begin()
	defer func() { // they end with ctx
		cancel()
		for ; ended < begun; ended++ {
			<-results
		}
	}()
	tick := time.NewTicker(nextAttempt)
	defer tick.Stop()
	for {
		select {
		case err := <-results:
			ended++
			if err == nil || begun == attempts && ended == begun {
				return err
			}
		case <-tick.C:
		}
		if begun < attempts {
			begun++
			begin()
		}
	}
}

// attempt makes one request.
func (a *Aggregator) attempt(ctx context.Context, s *apiregistrationv1.APIService) error {
	address, err := a.Address(ctx, s)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+documentPath(s), nil)
	if err != nil {
		return err
	}
	where := r.URL.String()
	b := a.backend(unchecked(s))
	client := http.Client{
		Transport: a.transport(b, s.Spec.Service, false), Timeout: attemptTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	a.Introduce(r.Header, self)
	resp, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("failing or missing response from %v: %w", where, withoutSource(err))
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxIgnored) // a longer answer costs its connection
	if resp.StatusCode < http.StatusOK || resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("failing or missing response from %v: bad status from %v: %d", where, where, resp.StatusCode)
	}
	return nil
}

// documentPath returns the path at which a server must list its resources.
func documentPath(s *apiregistrationv1.APIService) string {
	if s.Spec.Group == "" {
		return "/api/" + s.Spec.Version
	}
	return "/apis/" + s.Spec.Group + "/" + s.Spec.Version
}

func portOf(to *apiregistrationv1.ServiceReference) int32 {
	if to.Port == nil {
		return 443
	}
	return *to.Port
}

// Available reports whether requests are passed on to the server behind an APIService, as far
// as this server knows; before its first check, it returns the status of the condition.
func (a *Aggregator) Available(s *apiregistrationv1.APIService) bool {
	if v, ok := a.Availability(s); ok {
		return v.available()
	}
	return helper.IsAPIServiceConditionTrue(s, apiregistrationv1.Available)
}

// Availability returns this server's own on an APIService; ok is false where it has none yet.
func (a *Aggregator) Availability(s *apiregistrationv1.APIService) (v Availability, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.verdicts[s.Name]
	if known == nil || known.uid != s.UID || known.Status == "" {
		return Availability{}, false
	}
	return known.Availability, true
}
