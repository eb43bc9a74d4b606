package verbs

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/kinds"
)

// TestMetaRules counts what clients are shown of bad labels and finalizers.
func TestMetaRules(t *testing.T) {
	bad := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n", ResourceVersion: "1", Labels: map[string]string{"bad key!": ""}, Finalizers: []string{"x"}}}
	old := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n", ResourceVersion: "1"}}
	for _, c := range []struct {
		key, sub           string
		custom             bool
		labels, finalizers int
	}{
		{"deployments.apps", "", false, 3, 1},
		{"configmaps", "", false, 4, 2},
		{"persistentvolumeclaims", "", false, 5, 3},
		{"pods", "", false, 4, 2},
		{"pods", "status", false, 3, 1},
		{"roles.rbac.authorization.k8s.io", "", false, 5, 3},
		{"runtimeclasses.node.k8s.io", "", false, 4, 0},
		{"leases.coordination.k8s.io", "", false, 3, 0},
		{"poddisruptionbudgets.policy", "", false, 2, 0},
		{"cronjobs.batch", "status", false, 2, 0},
		{"widgets.example.com", "", true, 3, 0},
	} {
		call := &Call{Request: answers.Request{Resource: &kinds.Resource{Namespaced: true, Custom: c.custom, Storage: &kinds.Storage{Key: c.key}}}}
		if c.sub != "" {
			call.Sub = &kinds.Subresource{Name: c.sub, Update: &kinds.Strategy{}}
		}
		labels, finalizers := 0, 0
		for _, e := range validateMetaUpdate(call, bad, old) {
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
}
