package builtin_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
)

// TestMetaRules counts what clients are shown of bad labels and finalizers.
func TestMetaRules(t *testing.T) {
	bad := metav1.ObjectMeta{Name: "a", Namespace: "n", ResourceVersion: "1", Labels: map[string]string{"bad key!": ""}, Finalizers: []string{"x"}}
	good := metav1.ObjectMeta{Name: "a", Namespace: "n", ResourceVersion: "1"}
	catalogue := kinds.NewCatalogue(builtin.Resources())
	for _, c := range []struct {
		key, sub           string
		labels, finalizers int
	}{
		{"deployments.apps", "", 3, 1},
		{"configmaps", "", 4, 2},
		{"persistentvolumeclaims", "", 5, 3},
		{"pods", "", 4, 2},
		{"pods", "status", 3, 1},
		{"roles.rbac.authorization.k8s.io", "", 5, 3},
		{"runtimeclasses.node.k8s.io", "", 4, 0},
		{"leases.coordination.k8s.io", "", 3, 0},
		{"poddisruptionbudgets.policy", "", 2, 0},
		{"poddisruptionbudgets.policy", "status", 2, 0},
		{"cronjobs.batch", "", 3, 1},
		{"cronjobs.batch", "status", 2, 0},
		{"certificatesigningrequests.certificates.k8s.io", "approval", 4, 2},
		{"limitranges", "", 3, 1},
		{"persistentvolumes", "", 4, 2},
		{"endpointslices.discovery.k8s.io", "", 3, 1},
		{"flowschemas.flowcontrol.apiserver.k8s.io", "", 3, 1},
		{"prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", "", 3, 1},
		{"ipaddresses.networking.k8s.io", "", 4, 2},
		{"mutatingadmissionpolicybindings.admissionregistration.k8s.io", "", 3, 0},
		{"validatingwebhookconfigurations.admissionregistration.k8s.io", "", 3, 0},
		{"pods", "ephemeralcontainers", 4, 2},
	} {
		r := catalogue.ByStorage(c.key)
		obj, old := &corev1.ConfigMap{ObjectMeta: bad}, &corev1.ConfigMap{ObjectMeta: good}
		if !r.Namespaced {
			obj.Namespace, old.Namespace = "", ""
		}
		var sub *kinds.Subresource
		if c.sub != "" {
			sub = r.Sub(c.sub)
		}
		labels, finalizers := 0, 0
		for _, e := range r.ValidateMeta(sub, obj, old) {
			switch e.Field {
			case "metadata.labels":
				labels++
			case "metadata.finalizers[0]":
				finalizers++
			}
		}
		if labels != c.labels || finalizers != c.finalizers {
			t.Errorf("%s %s: labels %d times, finalizers %d times, want %d and %d", c.key, c.sub, labels, finalizers, c.labels, c.finalizers)
		}
	}
	capacities := catalogue.ByStorage("csistoragecapacities.storage.k8s.io")
	if errs := capacities.ValidateNewMeta(nil, &corev1.ConfigMap{ObjectMeta: bad}); len(errs) != 2 {
		t.Errorf("a new capacity has %d faults: %v", len(errs), errs)
	}
}

// TestRegistryKeys pins the names that messages about conflicts have.
func TestRegistryKeys(t *testing.T) {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	for key, want := range map[string]string{
		"pods": "pods", "services": "services/specs", "endpoints": "services/endpoints", "nodes": "minions", "deployments.apps": "deployments",
		"replicationcontrollers": "controllers", "ingresses.networking.k8s.io": "ingress", "events": "events",
		"customresourcedefinitions.apiextensions.k8s.io": "apiextensions.k8s.io/customresourcedefinitions",
		"apiservices.apiregistration.k8s.io":             "apiregistration.k8s.io/apiservices",
	} {
		if got := catalogue.ByStorage(key).RegistryKey("a", "b"); got != "/registry/"+want+"/a/b" {
			t.Errorf("%s: %s", key, got)
		}
	}
}
