package aggregator_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/webhook"
)

// TestWithoutEndpoints: the state of a server without endpoints is worded as its release does.
func TestWithoutEndpoints(t *testing.T) {
	name := "https"
	for v, of := range map[release.Version]string{release.V132: "endpoints", release.V136: "endpointslices"} {
		for _, c := range []struct {
			slices       []*discoveryv1.EndpointSlice
			reason, want string
		}{
			{nil, "EndpointsNotFound", "cannot find " + of + ` for service/s in "ns"`},
			{[]*discoveryv1.EndpointSlice{{Ports: []discoveryv1.EndpointPort{{Name: &name}}}}, "MissingEndpoints", of + ` for service/s in "ns" have no addresses with port name "https"`},
		} {
			w := newWorld(t, aggregator.Config{Release: v, Services: &webhook.Resolver{
				Service: func(context.Context, string, string) (*corev1.Service, error) {
					return &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Name: name, Port: 443}}}}, nil
				},
				Endpoints: func(context.Context, string, string) (*corev1.Endpoints, error) { return nil, nil },
				Slices:    func(context.Context, string, string) ([]*discoveryv1.EndpointSlice, error) { return c.slices, nil },
			}})
			s := w.put("v1.g.example", apiregistrationv1.APIServiceSpec{Group: "g.example", Version: "v1", Service: to("ns", "s", 443)})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- w.Run(ctx) }()
			var got aggregator.Availability
			for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
				var known bool
				if got, known = w.Availability(s); known {
					break
				}
			}
			cancel()
			<-ended
			if got.Status != apiregistrationv1.ConditionFalse || got.Reason != c.reason || got.Message != c.want {
				t.Errorf("%v: %+v, want %s: %s", v, got, c.reason, c.want)
			}
		}
	}
}
