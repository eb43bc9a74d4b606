package policy_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/conditions"
	"github.com/rowlock/rowlock/server/admission/criteria"
	"github.com/rowlock/rowlock/server/admission/policy"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/schema"
)

// TestMetricsOfFormerPolicies: the series of a policy, and of a binding, go with it.
func TestMetricsOfFormerPolicies(t *testing.T) {
	c := newCluster(t)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(append(c.metrics.Collectors(), c.conditions.Collectors()...)...)
	series := func() (n int) {
		if _, err := c.create(nil); err == nil {
			t.Error("the policies refuse nothing")
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			n += len(f.GetMetric())
		}
		return n
	}
	const spec = `"matchConditions":[{"name":"c","expression":"true"}],"validations":[{"expression":"false"}]`
	c.policy("p", spec, deny)
	one := series()
	c.policy("q", spec, deny)
	if n := series(); one == 0 || n != 2*one {
		t.Errorf("%d series of a policy, and %d of two", one, n)
	}
	c.set("validatingadmissionpolicybindings.admissionregistration.k8s.io", "", "q", "")
	if n := series(); n <= one || n >= 2*one { // those of its conditions stay
		t.Errorf("%d series without one binding", n)
	}
	c.set("validatingadmissionpolicies.admissionregistration.k8s.io", "", "q", "")
	if n := series(); n != one {
		t.Errorf("%d series without one policy, want %d", n, one)
	}
}

// TestMetricsOfOneName: the conditions of a validating and a mutating policy with the same name share series, which the server removes
// with the last of the two policies.
func TestMetricsOfOneName(t *testing.T) {
	const (
		validating = "validatingadmissionpolicies.admissionregistration.k8s.io"
		mutating   = "mutatingadmissionpolicies.admissionregistration.k8s.io"
		spec       = `"matchConditions":[{"name":"c","expression":"true"}],`
	)
	for _, order := range [][]string{{validating, mutating}, {mutating, validating}} {
		m := newMutators(t, true)
		m.conditions = conditions.NewMetrics()
		cfg := policy.Config{
			Cluster: criteria.Cluster{Namespaces: m, Equivalents: criteria.NewEquivalents(m.catalogue)}, Catalogue: m.catalogue,
			Schemas: schema.New(m.catalogue), Cache: m.cache, Objects: objects.New(m.catalogue, nil, m.cache), Authorizer: m, Conditions: m.conditions,
		}
		m.plugin, m.chain = policy.New(cfg), admission.NewChain(policy.NewMutating(cfg))
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(m.conditions.Collectors()...)
		series := func() (n int) {
			_, invalid := m.create(nil)
			_, failed := m.change(t.Context())
			families, err := registry.Gather()
			if invalid != nil || failed != nil || err != nil {
				t.Fatal(invalid, failed, err)
			}
			for _, f := range families {
				n += len(f.GetMetric())
			}
			return n
		}
		m.cluster.policy("p", spec+`"validations":[{"expression":"true"}]`, deny)
		m.policy("p", configMaps+spec+mutations(apply("Object{}")), "")
		both := series()
		m.set(order[0], "", "p", "")
		if n := series(); n == 0 || n != both {
			t.Errorf("%d series without the policy of %s, %d before", n, order[0], both)
		}
		m.set(order[1], "", "p", "")
		if n := series(); n != 0 {
			t.Errorf("%d series without policies", n)
		}
	}
}
