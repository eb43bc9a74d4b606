package limits_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/limits"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// ranges are the limit ranges of every namespace.
type ranges []corev1.LimitRangeItem

func (ranges) Get(context.Context, string, string, string) (kinds.Object, error) { return nil, nil }

func (r ranges) List(context.Context, string, string, func([]byte) bool) ([]kinds.Object, error) {
	return []kinds.Object{&corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: r}}}, nil
}

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func container(name string, requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func creating(pod *corev1.Pod) *admission.Attributes {
	return &admission.Attributes{Operation: admission.Create, Resource: &kinds.Resource{Plural: "pods"}, Namespace: "n", Object: pod}
}

func TestDefaults(t *testing.T) {
	p := limits.Ranger{Objects: ranges{{Type: corev1.LimitTypeContainer, Default: list("cpu", "1", "memory", "1Gi"), DefaultRequest: list("cpu", "100m")}}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Containers:     []corev1.Container{container("a", nil, list("cpu", "2"))},
		InitContainers: []corev1.Container{container("i", list("cpu", "1m"), nil)},
	}}
	if err := p.Admit(t.Context(), creating(pod)); err != nil {
		t.Fatal(err)
	}
	want := "LimitRanger plugin set: cpu request for container a; memory limit for container a; cpu, memory limit for init container i"
	if got := pod.Annotations["kubernetes.io/limit-ranger"]; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if q := pod.Spec.Containers[0].Resources.Limits["cpu"]; q.String() != "2" {
		t.Errorf("a limit that was given became %s", q.String())
	}
}

func TestBounds(t *testing.T) {
	for name, tt := range map[string]struct {
		item       corev1.LimitRangeItem
		containers []corev1.Container
		init       []corev1.Container
		want       string // "" if the pod passes
	}{
		"enough":     {corev1.LimitRangeItem{Type: "Container", Min: list("cpu", "1"), Max: list("cpu", "2")}, []corev1.Container{container("a", list("cpu", "1"), list("cpu", "2"))}, nil, ""},
		"no limit":   {corev1.LimitRangeItem{Type: "Container", Max: list("cpu", "2")}, []corev1.Container{container("a", nil, nil)}, nil, "maximum cpu usage per Container is 2.  No limit is specified"},
		"no request": {corev1.LimitRangeItem{Type: "Container", Min: list("cpu", "2")}, []corev1.Container{container("a", nil, nil)}, nil, "minimum cpu usage per Container is 2.  No request is specified"},
		"ratio": {corev1.LimitRangeItem{Type: "Container", MaxLimitRequestRatio: list("cpu", "2")}, []corev1.Container{container("a", list("cpu", "1"), list("cpu", "3"))}, nil,
			"cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000"},
		"sum": {corev1.LimitRangeItem{Type: "Pod", Max: list("cpu", "2")}, []corev1.Container{container("a", nil, list("cpu", "1")), container("b", nil, list("cpu", "1500m"))}, nil,
			"maximum cpu usage per Pod is 2, but limit is 2500m"},
		"init containers run one after another": {corev1.LimitRangeItem{Type: "Pod", Max: list("cpu", "2")}, []corev1.Container{container("a", nil, list("cpu", "2"))},
			[]corev1.Container{container("i", nil, list("cpu", "2")), container("j", nil, list("cpu", "1"))}, ""},
		"all reasons": {corev1.LimitRangeItem{Type: "Container", Min: list("cpu", "1", "memory", "1")}, []corev1.Container{container("a", nil, nil)}, nil,
			"[minimum cpu usage per Container is 1.  No request is specified, minimum memory usage per Container is 1.  No request is specified]"},
	} {
		t.Run(name, func(t *testing.T) {
			p := limits.Ranger{Objects: ranges{tt.item}}
			err := p.Validate(t.Context(), creating(&corev1.Pod{Spec: corev1.PodSpec{Containers: tt.containers, InitContainers: tt.init}}))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasSuffix(err.Error(), "is forbidden: "+tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestResize: a resize of containers does not circumvent the limits of a namespace.
func TestResize(t *testing.T) {
	p := limits.Ranger{Objects: ranges{{Type: corev1.LimitTypeContainer, Max: list("cpu", "1")}}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container("a", nil, list("cpu", "2"))}}}
	for subresource, refused := range map[string]bool{"": false, "status": false, "resize": true} {
		a := creating(pod)
		a.Operation, a.Subresource = admission.Update, subresource
		err := p.Validate(context.Background(), a)
		if got := err != nil && strings.Contains(err.Error(), "maximum cpu usage per Container is 1, but limit is 2"); got != refused || err != nil && !refused {
			t.Errorf("update of %q: %v", subresource, err)
		}
	}
}

// TestDeleting: an object that is being deleted can still lose its finalizers after its namespace got stricter limits.
func TestDeleting(t *testing.T) {
	p := limits.Ranger{Objects: ranges{{Type: corev1.LimitTypePersistentVolumeClaim, Max: list("storage", "1Gi")}}}
	claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
		Resources: corev1.VolumeResourceRequirements{Requests: list("storage", "2Gi")},
	}}
	for _, deleting := range []bool{false, true} {
		old := claim.DeepCopy()
		if deleting {
			old.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		a := &admission.Attributes{Operation: admission.Update, Resource: &kinds.Resource{Plural: "persistentvolumeclaims"}, Namespace: "n", Object: claim, Old: old}
		if err := p.Validate(t.Context(), a); (err == nil) != deleting {
			t.Errorf("update of a claim, being deleted %t: %v", deleting, err)
		}
	}
}

// TestLimitErrors: the plugin stops at a bounded number of errors for a pod whose containers all break all limits
// of one item.
func TestLimitErrors(t *testing.T) {
	least := corev1.ResourceList{}
	for i := range 50 {
		least[corev1.ResourceName(fmt.Sprintf("example.com/r%d", i))] = resource.MustParse("1k")
	}
	pod := &corev1.Pod{}
	for i := range 300 {
		requests := corev1.ResourceList{}
		for name := range least {
			requests[name] = *resource.NewQuantity(int64(i), resource.DecimalSI) // each error has another text, as equal ones are merged
		}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", i), Resources: corev1.ResourceRequirements{Requests: requests}})
	}
	err := limits.Ranger{Objects: ranges{{Type: corev1.LimitTypeContainer, Min: least}}}.Validate(t.Context(), creating(pod))
	if err == nil {
		t.Fatal("the pod is allowed")
	}
	text := err.Error()
	listed, more := strings.Count(text, "minimum example.com/"), 0
	if at := strings.LastIndex(text, ", "); at >= 0 {
		if _, err := fmt.Sscanf(text[at:], ", %d more errors]", &more); err != nil {
			t.Fatalf("%v: %s", err, text[at:])
		}
	}
	if n := listed + more; n < rules.MaxErrors || n > rules.MaxErrors+2*len(least) || len(text) > 300<<10 {
		t.Errorf("%d errors are made, and %d of them listed in %d bytes", n, listed, len(text))
	}
}

// TestLimitsTimesContainers: each item of a limit range is compared with each container, and each
// default filled into each: two clients choose how many that are, and the steps of the write end it.
func TestLimitsTimesContainers(t *testing.T) {
	pod := &corev1.Pod{}
	for range 8000 {
		pod.Spec.Containers = append(pod.Spec.Containers, container("c", nil, nil))
	}
	// Both together are just more than all steps of a write.
	short, long := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range budget.Work/8000 - 1 {
		long[corev1.ResourceName(fmt.Sprintf("example.com/r%d", i))] = resource.MustParse("1")
	}
	short["example.com/r0"] = resource.MustParse("1")
	items := ranges{{Type: corev1.LimitTypeContainer, Max: short}, {Type: corev1.LimitTypeContainer, Min: long}}
	defaults := corev1.ResourceList{}
	for i := range 100 {
		defaults[corev1.ResourceName(fmt.Sprintf("example.com/r%d", i))] = resource.MustParse("1")
	}
	ctx := kinds.WithRequested(t.Context(), &kinds.Resource{})
	const want = "Request entity too large: the write needs too much work"
	if err := (limits.Ranger{Objects: items}).Validate(ctx, creating(pod)); err == nil || err.Error() != want {
		t.Errorf("checked: %v", err)
	}
	ctx = kinds.WithRequested(t.Context(), &kinds.Resource{})
	if err := (limits.Ranger{Objects: items[1:]}).Validate(ctx, creating(pod)); err == nil || !strings.Contains(err.Error(), "minimum example.com/r0 usage") {
		t.Errorf("checked against the longer one alone: %.300v", err)
	}
	ctx = kinds.WithRequested(t.Context(), &kinds.Resource{})
	err := limits.Ranger{Objects: ranges{{Type: corev1.LimitTypeContainer, Default: defaults}}}.Admit(ctx, creating(pod))
	if err == nil || err.Error() != want || len(pod.Spec.Containers[0].Resources.Limits) != 0 {
		t.Errorf("filled in: %v", err)
	}
}

// TestPodResources: with the gate, the pod-level resources count for a pod; other
// resources are those of its containers.
func TestPodResources(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Containers: []corev1.Container{container("a", list("cpu", "1", "memory", "1"), list("cpu", "1", "memory", "1"))},
		Resources:  &corev1.ResourceRequirements{Requests: list("cpu", "2"), Limits: list("cpu", "3")},
	}}
	for name, c := range map[string]struct {
		item    corev1.LimitRangeItem
		off, on string
	}{
		"limit":   {corev1.LimitRangeItem{Type: "Pod", Max: list("cpu", "2")}, "", "maximum cpu usage per Pod is 2, but limit is 3"},
		"request": {corev1.LimitRangeItem{Type: "Pod", Min: list("cpu", "2")}, "minimum cpu usage per Pod is 2, but request is 1", ""},
		"memory":  {corev1.LimitRangeItem{Type: "Pod", Min: list("memory", "2")}, "minimum memory usage per Pod is 2, but request is 1", "minimum memory usage per Pod is 2, but request is 1"},
	} {
		for gate, want := range map[bool]string{false: c.off, true: c.on} {
			err := limits.Ranger{Objects: ranges{c.item}, PodResources: gate}.Validate(t.Context(), creating(pod))
			if (err == nil) != (want == "") || err != nil && !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s, with the gate %t: %v, want %q", name, gate, err, want)
			}
		}
	}
}
