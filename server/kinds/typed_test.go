package kinds_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds"
)

// TestTyped tries what Keep and Counted promise, and the order of the steps.
func TestTyped(t *testing.T) {
	var steps []string
	s := kinds.Typed[*appsv1.Deployment]{
		Keep:             func(d, old *appsv1.Deployment) { steps = append(steps, "keep"); d.Status = old.Status },
		PrepareForCreate: func(d *appsv1.Deployment) { steps = append(steps, "create"); d.Spec.MinReadySeconds = 3 },
		PrepareForUpdate: func(d, _ *appsv1.Deployment) { steps = append(steps, "update"); d.Spec.MinReadySeconds = 3 },
		Counted:          func(d *appsv1.Deployment) []any { return []any{d.Spec} },
		Warnings: func(_, old *appsv1.Deployment) []string {
			if old == nil {
				return []string{"new"}
			}
			return nil
		},
	}.Strategy()
	ctx := context.Background()
	old := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 9}, Status: appsv1.DeploymentStatus{Replicas: 7}}
	s.PrepareForCreate(ctx, old)
	if old.Generation != 1 || old.Status.Replicas != 0 || old.Spec.MinReadySeconds != 3 {
		t.Errorf("a new object: %+v", old)
	}
	old.Status.Replicas = 2
	for _, c := range []struct {
		name   string
		change func(*appsv1.Deployment)
		want   int64
	}{
		{"the status", func(d *appsv1.Deployment) { d.Status.Replicas = 8 }, 1},
		{"the generation", func(d *appsv1.Deployment) { d.Generation = 8 }, 1},
		{"what is prepared", func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 8 }, 1},
		{"an empty list for none", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Tolerations = d.Spec.Template.Spec.Tolerations[:0:0] }, 1},
		{"the spec", func(d *appsv1.Deployment) { d.Spec.Paused = true }, 2},
	} {
		d := old.DeepCopy()
		c.change(d)
		s.PrepareForUpdate(ctx, d, old)
		if d.Generation != c.want || d.Status.Replicas != 2 {
			t.Errorf("%s changes: generation %d, status %+v", c.name, d.Generation, d.Status)
		}
	}
	if steps[0] != "keep" || steps[1] != "create" || steps[2] != "keep" || steps[3] != "update" {
		t.Errorf("steps: %v", steps)
	}
	if len(s.Warnings(ctx, old, nil)) != 1 || len(s.Warnings(ctx, old, old)) != 0 {
		t.Error("warnings of a new object and of an update")
	}
	if none := (kinds.Typed[*appsv1.Deployment]{}).Strategy(); none.PrepareForCreate != nil || none.PrepareForUpdate != nil || none.Validate != nil || none.Default != nil {
		t.Error("functions that do nothing are there")
	}
}

// TestStatusIsDerived: an object and its status are written apart, but for clients that may write both.
func TestStatusIsDerived(t *testing.T) {
	ctx := context.Background()
	old := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d", Labels: map[string]string{"a": "1"}},
		Spec:       appsv1.DeploymentSpec{MinReadySeconds: 1}, Status: appsv1.DeploymentStatus{Replicas: 1},
	}
	sent := func() *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "d", Labels: map[string]string{"a": "2"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
			Spec:       appsv1.DeploymentSpec{MinReadySeconds: 2}, Status: appsv1.DeploymentStatus{Replicas: 2},
		}
	}
	type written struct {
		Spec, Status int32
		Label        string
	}
	of := func(d *appsv1.Deployment) written {
		return written{d.Spec.MinReadySeconds, d.Status.Replicas, d.Labels["a"]}
	}
	for name, c := range map[string]struct {
		status               kinds.Status[*appsv1.Deployment]
		create, update, part written
		reset, resetStatus   []string
	}{
		"usual": {kinds.Status[*appsv1.Deployment]{}, written{2, 0, "2"}, written{2, 1, "2"}, written{1, 2, "2"}, []string{"status", "x"}, []string{"spec"}},
		"all metadata stays": {kinds.Status[*appsv1.Deployment]{KeepsMetadata: true, ResetFields: []string{"metadata"}},
			written{2, 0, "2"}, written{2, 1, "2"}, written{1, 2, "1"}, []string{"status", "x"}, []string{"spec", "metadata"}},
		"some stays": {kinds.Status[*appsv1.Deployment]{Prepare: func(d, old *appsv1.Deployment) { d.Labels = old.Labels; d.Status.Replicas += d.Spec.MinReadySeconds }},
			written{2, 0, "2"}, written{2, 1, "2"}, written{1, 3, "1"}, []string{"status", "x"}, []string{"spec"}},
		"by creates": {kinds.Status[*appsv1.Deployment]{ByCreate: true}, written{2, 2, "2"}, written{2, 1, "2"}, written{1, 2, "2"}, []string{"status", "x"}, []string{"spec"}},
		"by updates": {kinds.Status[*appsv1.Deployment]{ByCreate: true, ByUpdate: true}, written{2, 2, "2"}, written{2, 2, "2"}, written{1, 2, "2"}, []string{"x"}, nil},
	} {
		s := kinds.Typed[*appsv1.Deployment]{Status: &c.status, UnconditionalUpdate: true, ResetFields: []string{"x"}}.Strategy()
		created, updated, part := sent(), sent(), sent()
		if s.PrepareForCreate != nil {
			s.PrepareForCreate(ctx, created)
		}
		if s.PrepareForUpdate != nil {
			s.PrepareForUpdate(ctx, updated, old)
		}
		s.Status.PrepareForUpdate(ctx, part, old)
		if got, want := []written{of(created), of(updated), of(part)}, []written{c.create, c.update, c.part}; !cmp.Equal(got, want) {
			t.Errorf("%s: a create, an update and a write of the status: %s", name, cmp.Diff(want, got))
		}
		if len(part.ManagedFields) != 1 || !s.Status.UnconditionalUpdate {
			t.Errorf("%s: owners %v, unconditional %v", name, part.ManagedFields, s.Status.UnconditionalUpdate)
		}
		if !cmp.Equal(s.ResetFields, c.reset) || !cmp.Equal(s.Status.ResetFields, c.resetStatus) {
			t.Errorf("%s: nobody owns %q and %q, want %q and %q", name, s.ResetFields, s.Status.ResetFields, c.reset, c.resetStatus)
		}
		if old.Labels["a"] != "1" || old.Spec.MinReadySeconds != 1 || old.Status.Replicas != 1 {
			t.Fatalf("%s: the old object has changed: %+v", name, old)
		}
	}
}
