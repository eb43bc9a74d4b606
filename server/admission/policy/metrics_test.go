package policy_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
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
