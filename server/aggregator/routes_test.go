package aggregator_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/aggregator/endpoints"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/webhook"
)

// routed is a world that finds Services in its cache, and counts how
// often one is read.
type routed struct {
	*world
	resolver *webhook.Resolver
	reads    int
}

func newRouted(t testing.TB, direct bool) *routed {
	r := &routed{resolver: &webhook.Resolver{Direct: direct}}
	w := newWorld(t, aggregator.Config{Services: r.resolver})
	r.world = w
	index := endpoints.New(w.cache)
	r.resolver.Service = func(_ context.Context, namespace, name string) (*corev1.Service, error) {
		r.reads++
		return read[corev1.Service](w.cache, w.cache.Get("services", namespace, name))
	}
	r.resolver.Endpoints = func(_ context.Context, namespace, name string) (*corev1.Endpoints, error) {
		return read[corev1.Endpoints](w.cache, w.cache.Get("endpoints", namespace, name))
	}
	r.resolver.Slices = func(_ context.Context, namespace, name string) (list []*discoveryv1.EndpointSlice, err error) {
		if found := index.Of(namespace, name); found != nil {
			for _, item := range found.Items {
				s, err := read[discoveryv1.EndpointSlice](w.cache, item)
				if err != nil {
					return nil, err
				}
				list = append(list, s)
			}
		}
		return list, nil
	}
	return r
}

func read[T any, P interface {
	*T
	kinds.Object
}](c *cache.Cache, item *cache.Item) (*T, error) {
	if item == nil {
		return nil, nil
	}
	obj := P(new(T))
	_, err := c.JSON().Decode(item.JSON(), obj, codecs.Ignore)
	return obj, err
}

func serviceAt(ip string, ports ...int32) *corev1.Service {
	s := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: ip},
	}
	for _, p := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", p), Port: p})
	}
	return s
}

func sliceOf(service, name string, port int32, addresses ...string) *discoveryv1.EndpointSlice {
	portName := "p443"
	s := &discoveryv1.EndpointSlice{
		TypeMeta:    metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta:  metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &portName, Port: &port}},
	}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	return s
}

// TestRoutes: where a Service is, is worked out once, and anew as soon as it is elsewhere.
func TestRoutes(t *testing.T) {
	for _, direct := range []bool{false, true} {
		t.Run(fmt.Sprint("direct ", direct), func(t *testing.T) {
			w := newRouted(t, direct)
			one := w.put("v1.g.example", apiregistrationv1.APIServiceSpec{Group: "g.example", Version: "v1", Service: to("ns", "s", 443)})
			at := func(want string, reads int) {
				t.Helper()
				before := w.reads
				got, err := w.Address(t.Context(), one)
				if err != nil {
					got = err.Error()
				}
				if got != want || w.reads-before != reads {
					t.Errorf("%q after %d reads, want %q after %d", got, w.reads-before, want, reads)
				}
			}
			at(`service "s" not found`, 1)
			at(`service "s" not found`, 1) // a missing Service is not cached
			w.cacheService(serviceAt("10.0.0.1", 443))
			if !direct {
				at("10.0.0.1:443", 1)
				at("10.0.0.1:443", 0)
				w.write(endpoints.Storage, "ns", "s-1", sliceOf("s", "s-1", 8443, "10.1.0.1"))
				at("10.0.0.1:443", 0) // endpoints do not matter
				w.cacheService(serviceAt("10.0.0.2", 443, 444))
				at("10.0.0.2:443", 1)
				other := w.put("v2.g.example", apiregistrationv1.APIServiceSpec{Group: "g.example", Version: "v2", Service: to("ns", "s", 444)})
				if got, err := w.Address(t.Context(), other); got != "10.0.0.2:444" || err != nil {
					t.Errorf("another port: %q, %v", got, err)
				}
				at("10.0.0.2:443", 0)
				w.cacheService(serviceAt("10.0.0.2", 444))
				at(`no service port 443 found for service "s"`, 1)
				return
			}
			at(`no endpoints available for service "s"`, 1)
			w.write(endpoints.Storage, "ns", "s-1", sliceOf("s", "s-1", 8443, "10.1.0.1"))
			at("10.1.0.1:8443", 1)
			at("10.1.0.1:8443", 0)
			w.write(endpoints.Storage, "ns", "t-1", sliceOf("t", "t-1", 8443, "10.2.0.1"))
			at("10.1.0.1:8443", 0) // those of another Service do not matter
			w.write(endpoints.Storage, "ns", "s-1", sliceOf("s", "s-1", 8443, "10.1.0.2"))
			at("10.1.0.2:8443", 1)
			w.write(endpoints.Storage, "ns", "s-2", sliceOf("s", "s-2", 8443, "10.1.0.3"))
			seen := map[string]bool{}
			for range 200 {
				got, err := w.Address(t.Context(), one)
				if err != nil {
					t.Fatal(err)
				}
				seen[got] = true
			}
			if !seen["10.1.0.2:8443"] || !seen["10.1.0.3:8443"] || len(seen) != 2 {
				t.Errorf("of two endpoints were taken %v", seen)
			}
			w.write("endpoints", "ns", "s", &corev1.Endpoints{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Endpoints"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"},
				Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "10.3.0.1"}}, Ports: []corev1.EndpointPort{{Name: "p443", Port: 9443}}}},
			})
			at("10.3.0.1:9443", 1)
			w.cacheService(serviceAt("10.0.0.1", 444))
			at(`no service port 443 found for service "s"`, 1)
		})
	}
}

func (r *routed) cacheService(s *corev1.Service) { r.write("services", "ns", s.Name, s) }

// BenchmarkAddress measures how the address of a proxied request is found, with a Service computed
// each time and with a cached one, among 1000 slices of others.
func BenchmarkAddress(b *testing.B) {
	w := newRouted(b, true)
	one := w.put("v1.g.example", apiregistrationv1.APIServiceSpec{Group: "g.example", Version: "v1", Service: to("ns", "s", 443)})
	w.cacheService(serviceAt("10.0.0.1", 443))
	w.write(endpoints.Storage, "ns", "s-1", sliceOf("s", "s-1", 8443, "10.1.0.1", "10.1.0.2"))
	for i := range 1000 {
		name := fmt.Sprint("t-", i)
		w.write(endpoints.Storage, "ns", name, sliceOf("t", name, 8443, "10.2.0.1"))
	}
	want := []string{"10.1.0.1:8443", "10.1.0.2:8443"}
	for name, find := range map[string]func() (string, error){
		"anew": func() (string, error) {
			return w.resolver.Resolve(b.Context(), webhook.Service{Namespace: "ns", Name: "s", Port: 443})
		},
		"kept": func() (string, error) { return w.Address(b.Context(), one) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got, err := find(); err != nil || !slices.Contains(want, got) {
					b.Fatal(got, err)
				}
			}
		})
	}
}
