package podsecurity_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/podsecurity"
	"github.com/rowlock/rowlock/server/release"
)

// TestMetrics: each decision on a pod, exemption and error is counted as on a stock server, whose metrics the
// documentation of Kubernetes recommends before a standard is enforced.
func TestMetrics(t *testing.T) {
	m := podsecurity.NewMetrics(release.V132)
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.Collectors()...)
	config := podsecurity.Config{Exemptions: podsecurity.Exemptions{RuntimeClasses: []string{"kata"}}}
	class := "kata"
	fast := privileged("x")
	fast.Spec.RuntimeClassName = &class
	deployment := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: privileged("x").Spec}}}
	debugged := privileged("x")
	debugged.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "e", Image: "i"}}}
	all := labels("enforce", "baseline", "audit", "restricted", "audit-version", "v1.99", "warn", "baseline", "warn-version", "v1.30")
	for _, c := range []struct {
		labels   map[string]string
		op       admission.Operation
		plural   string
		sub      string
		obj, old runtime.Object
	}{
		{nil, admission.Create, "pods", "", privileged("x"), nil},
		{all, admission.Create, "pods", "", plain("x"), nil},
		{all, admission.Create, "pods", "", privileged("x"), nil},
		{all, admission.Update, "pods", "ephemeralcontainers", debugged, privileged("x")},
		{all, admission.Update, "pods", "", privileged("x"), privileged("x")}, // changes nothing that counts
		{all, admission.Update, "pods", "status", privileged("x"), plain("x")},
		{all, admission.Create, "deployments", "", deployment, nil},
		{all, admission.Create, "pods", "", fast, nil},
		{labels("enforce", "none"), admission.Create, "pods", "", plain("x"), nil},
	} {
		p, err := podsecurity.New(cluster{labels: c.labels}, config, release.V132, false, m)
		if err != nil {
			t.Fatal(err)
		}
		a := (&call{}).of(c.op, c.plural, c.sub, c.obj, c.old)
		_ = p.Validate(context.Background(), a) // the other tests look at the answer
	}
	lost, err := podsecurity.New(cluster{}, config, release.V132, false, m)
	if err != nil {
		t.Fatal(err)
	}
	a := (&call{}).of(admission.Create, "pods", "", plain("x"), nil)
	a.Namespace = "missing"
	if lost.Validate(context.Background(), a) == nil {
		t.Fatal("a pod in a namespace that is not there is admitted")
	}

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		for _, s := range f.Metric {
			line := f.GetName()
			for _, l := range s.Label {
				line += fmt.Sprintf(" %s=%s", l.GetName(), l.GetValue())
			}
			got = append(got, fmt.Sprintf("%s: %v", line, s.Counter.GetValue()))
		}
	}
	want := []string{
		"pod_security_errors_total fatal=false request_operation=create resource=pod subresource=: 1",
		"pod_security_errors_total fatal=true request_operation=create resource=pod subresource=: 1",
		"pod_security_evaluations_total decision=allow mode=enforce policy_level=baseline policy_version=latest request_operation=create resource=pod subresource=: 1",
		"pod_security_evaluations_total decision=allow mode=enforce policy_level=privileged policy_version=latest request_operation=create resource=pod subresource=: 1",
		"pod_security_evaluations_total decision=allow mode=enforce policy_level=privileged policy_version=latest request_operation=update resource=pod subresource=: 0",
		"pod_security_evaluations_total decision=deny mode=audit policy_level=restricted policy_version=future request_operation=create resource=controller subresource=: 1",
		"pod_security_evaluations_total decision=deny mode=audit policy_level=restricted policy_version=future request_operation=create resource=pod subresource=: 2",
		"pod_security_evaluations_total decision=deny mode=audit policy_level=restricted policy_version=future request_operation=update resource=pod subresource=ephemeralcontainers: 1",
		"pod_security_evaluations_total decision=deny mode=enforce policy_level=baseline policy_version=latest request_operation=create resource=pod subresource=: 1",
		"pod_security_evaluations_total decision=deny mode=enforce policy_level=baseline policy_version=latest request_operation=update resource=pod subresource=ephemeralcontainers: 1",
		"pod_security_evaluations_total decision=deny mode=enforce policy_level=restricted policy_version=latest request_operation=create resource=pod subresource=: 1",
		"pod_security_evaluations_total decision=deny mode=warn policy_level=baseline policy_version=v1.30 request_operation=create resource=controller subresource=: 1",
		"pod_security_exemptions_total request_operation=create resource=controller subresource=: 0",
		"pod_security_exemptions_total request_operation=create resource=pod subresource=: 1",
		"pod_security_exemptions_total request_operation=update resource=controller subresource=: 0",
		"pod_security_exemptions_total request_operation=update resource=pod subresource=: 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
