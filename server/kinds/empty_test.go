package kinds_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/rowlock/rowlock/server/kinds"
)

func TestDropEmpty(t *testing.T) {
	role := &rbacv1.Role{Rules: []rbacv1.PolicyRule{}}
	deep := &rbacv1.Role{Rules: []rbacv1.PolicyRule{{Verbs: []string{}, APIGroups: []string{}}}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}, Affinity: &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{}}}}}}
	for want, obj := range map[string]kinds.Object{
		`{"metadata":{},"rules":null}`:             role,
		`{"metadata":{},"rules":[{"verbs":null}]}`: deep,
		`{"metadata":{},"spec":{"containers":[{"name":"c","resources":{}}],"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":null}}}},"status":{}}`: pod,
	} {
		kinds.DropEmpty(obj)
		got, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

func BenchmarkDropEmpty(b *testing.B) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 2), Volumes: make([]corev1.Volume, 2)}}
	b.ReportAllocs()
	for b.Loop() {
		kinds.DropEmpty(pod)
	}
}
