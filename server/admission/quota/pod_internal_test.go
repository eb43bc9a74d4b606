package quota

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestMandatoryNames: however many names quotas count, each container is held against a few.
func TestMandatoryNames(t *testing.T) {
	names := []corev1.ResourceName{corev1.ResourceLimitsCPU, corev1.ResourceRequestsMemory, corev1.ResourcePods}
	for i := range 10_000 {
		names = append(names, corev1.ResourceName(fmt.Sprint("requests.example.com/r", i)))
	}
	if got := mandatory(names); len(got) != 2 {
		t.Errorf("%d names are mandatory", len(got))
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}, {Name: "b"}}}}
	if err := (meters{}).requirePod(names, pod); err == nil || !strings.HasSuffix(err.Error(), "must specify limits.cpu for: a,b; requests.memory for: a,b") {
		t.Error(err)
	}
	if len(names) != 10_003 || names[0] != corev1.ResourceLimitsCPU || names[2] != corev1.ResourcePods {
		t.Error("the names of the caller have changed")
	}
}
