package protobuf_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/server/release"
)

// TestAllocationsOfMessages: leaving out the fields that a release lacks needs no look at the tags of the
// types for each object.
func TestAllocationsOfMessages(t *testing.T) {
	c := protobuf.Codec{JSON: json.New(json.Settings{View: release.Oldest.View()})}
	pod := &corev1.Pod{}
	for range 5 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "a"}, {Name: "b"}}})
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "v"})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: "c"})
	}
	if n := testing.AllocsPerRun(10, func() {
		if _, err := c.Message(pod); err != nil {
			t.Fatal(err)
		}
	}); n > 300 {
		t.Errorf("%v allocations", n)
	}
}
