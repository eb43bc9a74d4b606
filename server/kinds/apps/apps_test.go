package apps_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/kinds/apps"
	"github.com/rowlock/rowlock/server/release"
)

var (
	labels   = map[string]string{"app": "x"}
	template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
)

func deployment() *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d"},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: *template.DeepCopy()},
	}
	apps.Deployment(gates.New(release.Default).Enabled).Default(d)
	return d
}

func TestDeploymentGeneration(t *testing.T) {
	ctx := context.Background()
	old := deployment()
	apps.Deployment(gates.New(release.Default).Enabled).PrepareForCreate(ctx, old)
	if old.Generation != 1 {
		t.Fatalf("generation %d after create", old.Generation)
	}
	for _, c := range []struct {
		name   string
		change func(*appsv1.Deployment)
		want   int64
	}{
		{"nothing", func(*appsv1.Deployment) {}, 1},
		{"labels", func(d *appsv1.Deployment) { d.Labels = labels }, 1},
		{"annotations", func(d *appsv1.Deployment) { d.Annotations = labels }, 2},
		{"replicas", func(d *appsv1.Deployment) { *d.Spec.Replicas = 7 }, 2},
		{"status", func(d *appsv1.Deployment) { d.Status.Replicas = 7 }, 1},
		{"generation", func(d *appsv1.Deployment) { d.Generation = 7 }, 1},
	} {
		d := old.DeepCopy()
		c.change(d)
		apps.Deployment(gates.New(release.Default).Enabled).PrepareForUpdate(ctx, d, old)
		if d.Generation != c.want || d.Status.Replicas != 0 {
			t.Errorf("%s: generation %d, want %d; status %v", c.name, d.Generation, c.want, d.Status)
		}
	}
}

func TestDeploymentStatusWrite(t *testing.T) {
	old := deployment()
	d := old.DeepCopy()
	d.Labels, d.Annotations = labels, labels
	*d.Spec.Replicas = 9
	d.Status.Replicas = 2
	apps.Deployment(gates.New(release.Default).Enabled).Status.PrepareForUpdate(context.Background(), d, old)
	if d.Labels != nil || d.Annotations == nil || *d.Spec.Replicas != 1 || d.Status.Replicas != 2 {
		t.Errorf("a status write left labels %v, annotations %v, replicas %d, status %v", d.Labels, d.Annotations, *d.Spec.Replicas, d.Status)
	}
}

func TestTemplateGeneration(t *testing.T) {
	ctx := context.Background()
	old := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: *template.DeepCopy()}}
	apps.DaemonSet(gates.New(release.Default).Enabled).Default(old)
	apps.DaemonSet(gates.New(release.Default).Enabled).PrepareForCreate(ctx, old)
	const key = appsv1.DeprecatedTemplateGeneration
	if old.Annotations[key] != "1" {
		t.Fatalf("template generation %q after create", old.Annotations[key])
	}
	d := old.DeepCopy()
	d.Spec.Template.Spec.HostNetwork = true
	d.Annotations = nil
	apps.DaemonSet(gates.New(release.Default).Enabled).Default(d)
	apps.DaemonSet(gates.New(release.Default).Enabled).PrepareForUpdate(ctx, d, old)
	if d.Annotations[key] != "2" || d.Generation != 2 {
		t.Errorf("template generation %q, generation %d after a change of the template", d.Annotations[key], d.Generation)
	}
	d = old.DeepCopy()
	d.Spec.MinReadySeconds = 3
	apps.DaemonSet(gates.New(release.Default).Enabled).PrepareForUpdate(ctx, d, old)
	if d.Annotations[key] != "1" || d.Generation != 2 {
		t.Errorf("template generation %q, generation %d after another change", d.Annotations[key], d.Generation)
	}
}

func TestStatefulSetUpdate(t *testing.T) {
	ctx := context.Background()
	old := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: *template.DeepCopy(), ServiceName: "s"}}
	apps.StatefulSet(gates.New(release.Default).Enabled).Default(old)
	for _, c := range []struct {
		name   string
		change func(*appsv1.StatefulSetSpec)
		faults int
	}{
		{"replicas", func(s *appsv1.StatefulSetSpec) { *s.Replicas = 4 }, 0},
		{"ordinals", func(s *appsv1.StatefulSetSpec) { s.Ordinals = &appsv1.StatefulSetOrdinals{Start: 2} }, 0},
		{"service name", func(s *appsv1.StatefulSetSpec) { s.ServiceName = "other" }, 1},
		{"history", func(s *appsv1.StatefulSetSpec) { *s.RevisionHistoryLimit = 2 }, 1},
	} {
		s := old.DeepCopy()
		c.change(&s.Spec)
		if errs := apps.StatefulSet(gates.New(release.Default).Enabled).ValidateUpdate(ctx, s, old); len(errs) != c.faults {
			t.Errorf("%s: %v", c.name, errs)
		}
	}
}

// The bytes of data may not change, except for line breaks.
func TestRevisionSpelling(t *testing.T) {
	ctx := context.Background()
	revision := func(raw string) *appsv1.ControllerRevision {
		r := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(raw)}}
		apps.ControllerRevision.PrepareForCreate(ctx, r)
		return r
	}
	for _, c := range []struct {
		old, now string
		faults   int
	}{
		{`{"a": 1}`, `{"a": 1}`, 0},
		{`{"a": 1}`, `{"a":1}`, 1},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, 1},
		{"{\"a\":\n\t1}", `{"a":  1}`, 0},
		{`{"a":1}`, `{"a":2}`, 1},
	} {
		if errs := apps.ControllerRevision.ValidateUpdate(ctx, revision(c.now), revision(c.old)); len(errs) != c.faults {
			t.Errorf("%s to %s: %v", c.old, c.now, errs)
		}
	}
}
