package pods_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/kinds/pods"
	"github.com/rowlock/rowlock/server/release"
)

// TestResize: of a request only the resources of containers count, by their names.
func TestResize(t *testing.T) {
	g, err := gates.Parse(release.Default, []string{"InPlacePodVerticalScaling=true"})
	if err != nil {
		t.Fatal(err)
	}
	r := pods.Resource(g.Enabled)
	var s = r.Storage.Strategy
	for _, sub := range r.Subresources {
		if sub.Name == "resize" {
			s = *sub.Update
		}
	}
	old := stored(t, `{"metadata": {"name": "p"}, "spec": {"initContainers": [{"name": "s", "image": "i:1", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}], "containers": [
		{"name": "a", "image": "i:1", "resources": {"requests": {"cpu": "1"}}}, {"name": "b", "image": "i:1", "resources": {"requests": {"cpu": "1"}}}]}}`)
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   string // of the errors
		cpu    string // of the containers, by their order
	}{
		"as it was": {func(*corev1.Pod) {}, "", "1 1"},
		"more":      {func(p *corev1.Pod) { p.Spec.Containers[1].Resources.Requests["cpu"] = resource.MustParse("2") }, "", "1 2"},
		"another order": {func(p *corev1.Pod) {
			l := p.Spec.Containers
			l[0], l[1] = l[1], l[0]
			l[0].Resources.Requests["cpu"] = resource.MustParse("3")
		}, "", "1 3"},
		"another image": {func(p *corev1.Pod) { p.Spec.Containers[0].Image, p.Labels = "x", map[string]string{"a": "b"} }, "", "1 1"},
		"one more":      {func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "new"}) }, "", "1 1"},
		"one less":      {func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] }, "", "1 1"},
		"a sidecar":     {func(p *corev1.Pod) { p.Spec.InitContainers[0].Resources.Requests["cpu"] = resource.MustParse("2") }, "", "1 1"},
		"other things": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests["ephemeral-storage"] = resource.MustParse("1")
		}, "only cpu and memory resources are mutable", ""},
		"as a whole": {func(p *corev1.Pod) {
			p.Spec.Containers[1].Resources.Requests["cpu"] = resource.MustParse("2")
		}, "pods with pod-level resources cannot be resized", ""},
		"best effort": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources, p.Spec.Containers[1].Resources = corev1.ResourceRequirements{}, corev1.ResourceRequirements{}
		}, "Pod QOS Class may not change as a result of resizing", ""},
	} {
		old, pod := old.DeepCopy(), old.DeepCopy()
		if name == "best effort" {
			old.Spec.InitContainers, pod.Spec.InitContainers = nil, nil
		}
		if name == "as a whole" {
			old.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("4")}}
		}
		c.change(pod)
		s.PrepareForUpdate(context.Background(), pod, old)
		errs := s.ValidateUpdate(context.Background(), pod, old)
		if c.want != "" {
			if len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), c.want) {
				t.Errorf("%s: %v, want %s", name, errs, c.want)
			}
			continue
		}
		l := pod.Spec.Containers
		got := l[0].Resources.Requests.Cpu().String() + " " + l[1].Resources.Requests.Cpu().String()
		if len(errs) > 0 || got != c.cpu || pod.Spec.InitContainers[0].Resources.Requests.Cpu().String() != "1" || len(pod.Spec.InitContainers[0].ResizePolicy) > 0 || l[0].Name != "a" || l[0].Image != "i:1" || len(pod.Labels) > 0 {
			t.Errorf("%s: %v, %s, %s", name, errs, got, l[0].Image)
		}
	}
}
