package networking_test

import (
	"context"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/rowlock/rowlock/server/kinds/networking"
)

func ingress(host, path string, pathType networkingv1.PathType) *networkingv1.Ingress {
	return &networkingv1.Ingress{Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
		Host: host,
		IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
			Path: path, PathType: &pathType,
			Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "s", Port: networkingv1.ServiceBackendPort{Number: 80}}},
		}}}},
	}}}}
}

func TestIngressRules(t *testing.T) {
	for _, c := range []struct {
		host, path string
		pathType   networkingv1.PathType
		fault      string
	}{
		{"a.com", "/", networkingv1.PathTypePrefix, ""},
		{"*.a.com", "/x", networkingv1.PathTypeExact, ""},
		{"", "", networkingv1.PathTypeImplementationSpecific, ""},
		{"10.0.0.1", "/", networkingv1.PathTypePrefix, "must be a DNS name"},
		{"*.*.com", "/", networkingv1.PathTypePrefix, "a wildcard DNS-1123 subdomain"},
		{"a.com", "x", networkingv1.PathTypePrefix, "must be an absolute path"},
		{"a.com", "x", networkingv1.PathTypeImplementationSpecific, "must be an absolute path"},
		{"a.com", "/a//b", networkingv1.PathTypeExact, "must not contain '//'"},
		{"a.com", "/a/..", networkingv1.PathTypeExact, "cannot end with '/..'"},
		{"a.com", "/a%2Fb", networkingv1.PathTypeExact, "must not contain '%2F'"},
		{"a.com", "/", "Regex", `supported values: "Exact", "ImplementationSpecific", "Prefix"`},
	} {
		err := networking.Ingress(off).Validate(context.Background(), ingress(c.host, c.path, c.pathType)).ToAggregate()
		if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s %s %s: %v, want %q", c.host, c.path, c.pathType, err, c.fault)
		}
	}
}

// TestNetworkPolicyGeneration counts an empty list as a change.
func TestNetworkPolicyGeneration(t *testing.T) {
	old := &networkingv1.NetworkPolicy{}
	networking.NetworkPolicy(off).Default(old)
	old.Generation = 1
	next := old.DeepCopy()
	networking.NetworkPolicy(off).PrepareForUpdate(context.Background(), next, old)
	if next.Generation != 1 {
		t.Errorf("generation %d without a change", next.Generation)
	}
	next.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{}
	networking.NetworkPolicy(off).PrepareForUpdate(context.Background(), next, old)
	if next.Generation != 2 {
		t.Errorf("generation %d after an empty list came in", next.Generation)
	}
}

// off enables no gate, in release 1.32.
func off(string) bool { return false }

// TestRelaxedBackends: references of an Ingress to Services and Secrets may stay as they are under the rules of another release.
func TestRelaxedBackends(t *testing.T) {
	named := func(service, secret string) *networkingv1.Ingress {
		i := ingress("a.com", "/", networkingv1.PathTypePrefix)
		i.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name = service
		i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"a.com"}, SecretName: secret}}
		return i
	}
	byDefault := named("web", "tls")
	byDefault.Spec.Rules, byDefault.Spec.DefaultBackend = nil, &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "1web", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	of := func(relaxed bool) func(any) bool {
		return func(what any) bool { return what != "RelaxedServiceNameValidation" || relaxed }
	}
	for _, c := range []struct {
		relaxed  bool
		old, obj *networkingv1.Ingress
		fault    string
	}{
		{true, nil, named("1web", "tls"), ""},
		{false, nil, named("1web", "tls"), "start with an alphabetic character"},
		{false, named("web", "tls"), named("1web", "tls"), "start with an alphabetic character"},
		{false, named("1web", "tls"), named("1web", "tls"), ""},
		{false, byDefault, named("1web", "tls"), ""},
		{true, nil, named("web", "A_b"), "spec.tls[0].secretName"},
		{true, named("web", "tls"), named("web", "A_b"), "spec.tls[0].secretName"},
		{true, named("web", "A_b"), named("web", "A_b"), ""},
	} {
		s := networking.Ingress(func(gate string) bool { return of(c.relaxed)(gate) })
		errs := s.Validate(context.Background(), c.obj)
		if c.old != nil {
			errs = s.ValidateUpdate(context.Background(), c.obj, c.old)
		}
		if got := errs.ToAggregate(); c.fault == "" && got != nil || c.fault != "" && (got == nil || !strings.Contains(got.Error(), c.fault)) {
			t.Errorf("relaxed %v: %v, want %q", c.relaxed, got, c.fault)
		}
	}
}
