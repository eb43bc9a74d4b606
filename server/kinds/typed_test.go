package kinds_test

import (
	"context"
	"testing"

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
