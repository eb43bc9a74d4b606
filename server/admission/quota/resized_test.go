package quota_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/quota"
)

// TestResizedPods: until a resize has ended, a pod counts as large as it is or will be, and only as large as it is if its node
// cannot resize it.
func TestResizedPods(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	reported := func(name, cpu, allocated, limit string) corev1.ContainerStatus {
		return corev1.ContainerStatus{
			Name: name, AllocatedResources: list("cpu", allocated),
			Resources: &corev1.ResourceRequirements{Requests: list("cpu", cpu), Limits: list("cpu", limit)},
		}
	}
	for name, c := range map[string]struct {
		change           func(*corev1.Pod)
		requests, limits string
	}{
		"not resized":     {change: func(*corev1.Pod) {}, requests: "200m", limits: "400m"},
		"to become small": {change: func(p *corev1.Pod) { p.Status.ContainerStatuses[0] = reported("c", "900m", "200m", "1") }, requests: "900m", limits: "1"},
		"allocated":       {change: func(p *corev1.Pod) { p.Status.ContainerStatuses[0] = reported("c", "100m", "500m", "200m") }, requests: "500m", limits: "400m"},
		"infeasible": {requests: "100m", limits: "300m", change: func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0] = reported("c", "100m", "50m", "300m")
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}}
		}},
		"deferred": {requests: "200m", limits: "400m", change: func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0] = reported("c", "100m", "50m", "300m")
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred}}
		}},
		"a sidecar": {requests: "800m", limits: "1100m", change: func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{container("s", list("cpu", "300m"), list("cpu", "300m"))}
			p.Spec.InitContainers[0].RestartPolicy = &always
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{reported("s", "600m", "600m", "700m")}
		}},
		"an init container": {requests: "300m", limits: "400m", change: func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{container("s", list("cpu", "300m"), list("cpu", "300m"))}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{reported("s", "600m", "600m", "700m")}
		}},
		"as a whole": {requests: "3", limits: "4", change: func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu", "1"), Limits: list("cpu", "2")}
			p.Status.Resources = &corev1.ResourceRequirements{Requests: list("cpu", "2"), Limits: list("cpu", "4")}
			p.Status.AllocatedResources = list("cpu", "3")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod(container("c", list("cpu", "200m"), list("cpu", "400m")))
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c"}}
			c.change(p)
			before := p.DeepCopy()
			q := limit("q", "requests.cpu", "9", "limits.cpu", "9")
			got := quota.Recount([]*corev1.ResourceQuota{q}, held{"pods": {p}}, time.Now())[0]
			want := corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: list("requests.cpu", c.requests, "limits.cpu", c.limits)}
			if !quota.Same(&got, &want) {
				t.Errorf("used %v, want %v", got.Used, want.Used)
			}
			if !equality.Semantic.DeepEqual(p, before) {
				t.Error("the pod was changed")
			}
		})
	}
}

// TestResizeOfPods: a resize is charged with what it adds to what the pod has or may have already.
func TestResizeOfPods(t *testing.T) {
	old := pod(container("c", list("cpu", "1"), nil))
	old.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Resources: &corev1.ResourceRequirements{Requests: list("cpu", "4")}}}
	larger := old.DeepCopy()
	larger.Spec.Containers[0].Resources.Requests = list("cpu", "5")
	for resize, want := range map[bool]string{false: "4", true: "1"} {
		s := storeOf(limit("q", "requests.cpu", "9"))
		a := write(admission.Update, "", "pods", larger, old)
		a.Subresource = "resize"
		if err := quota.New(s, nil, quota.Rules{Resize: resize}, time.Now).Validate(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if got := s.used("q", "requests.cpu"); got != want {
			t.Errorf("with the gate %t: charged with %s, want %s", resize, got, want)
		}
	}
}
