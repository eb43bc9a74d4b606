// Package scheduling holds the admission plugins of PodGroups, which schedule pods together.
package scheduling

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/admission"
	schedulingv1alpha2 "github.com/rowlock/rowlock/server/removed/k8s.io/api/scheduling/v1alpha2"
)

const (
	group     = "scheduling.k8s.io"
	groups    = "podgroups.scheduling.k8s.io"
	workloads = "workloads.scheduling.k8s.io"
	finalizer = "scheduling.k8s.io/podgroup-protection"
)

// Protection gives new PodGroups a finalizer, so that none goes while pods belong to it.
type Protection struct{}

var _ admission.Mutator = Protection{}

// Name implements admission.Plugin.
func (Protection) Name() string { return "PodGroupProtection" }

// Handles implements admission.Plugin.
func (Protection) Handles(op admission.Operation) bool { return op == admission.Create }

// Admit implements admission.Mutator.
func (Protection) Admit(_ context.Context, a *admission.Attributes) error {
	if m := a.Meta(); a.Is(group, "podgroups", "") && m != nil && !slices.Contains(m.GetFinalizers(), finalizer) {
		m.SetFinalizers(append(slices.Clone(m.GetFinalizers()), finalizer))
	}
	return nil
}

// WorkloadExists refuses PodGroups of a Workload, or of a template in it, that does not exist.
type WorkloadExists struct{ Objects admission.Objects }

var _ admission.Validator = WorkloadExists{}

// Name implements admission.Plugin.
func (WorkloadExists) Name() string { return "PodGroupWorkloadExists" }

// Handles implements admission.Plugin.
func (WorkloadExists) Handles(op admission.Operation) bool { return op == admission.Create }

// Validate implements admission.Validator.
func (p WorkloadExists) Validate(ctx context.Context, a *admission.Attributes) error {
	made, ok := a.Object.(*schedulingv1alpha2.PodGroup)
	if !ok || !a.Is(group, "podgroups", "") || made.Spec.PodGroupTemplateRef == nil || made.Spec.PodGroupTemplateRef.Workload == nil {
		return nil
	}
	ref := made.Spec.PodGroupTemplateRef.Workload
	obj, err := p.Objects.Get(ctx, workloads, a.Namespace, ref.WorkloadName)
	if err != nil {
		return err
	}
	w, ok := obj.(*schedulingv1alpha2.Workload)
	switch {
	case !ok:
		return a.Forbid(fmt.Errorf("PodGroup rejected: Workload %q not found", ref.WorkloadName))
	case w.DeletionTimestamp != nil:
		return a.Forbid(fmt.Errorf("PodGroup rejected: Workload %q is being deleted", ref.WorkloadName))
	case !slices.ContainsFunc(w.Spec.PodGroupTemplates, func(t schedulingv1alpha2.PodGroupTemplate) bool { return t.Name == ref.PodGroupTemplateName }):
		return a.Forbid(fmt.Errorf("PodGroup rejected: PodGroupTemplate %q not found in Workload %q", ref.PodGroupTemplateName, ref.WorkloadName))
	}
	return nil
}

// Jobs keeps the parallelism of Jobs whose pods are scheduled together. Without Objects there are no PodGroups.
type Jobs struct{ Objects admission.Objects }

var _ admission.Validator = Jobs{}

// Name implements admission.Plugin.
func (Jobs) Name() string { return "JobValidation" }

// Handles implements admission.Plugin.
func (Jobs) Handles(op admission.Operation) bool { return op == admission.Update }

// Validate implements admission.Validator.
func (p Jobs) Validate(ctx context.Context, a *admission.Attributes) error {
	if p.Objects == nil || !a.Is("batch", "jobs", "") {
		return nil
	}
	job, ok := a.Object.(*batchv1.Job)
	old, was := a.Old.(*batchv1.Job)
	if !ok || !was || same(job.Spec.Parallelism, old.Spec.Parallelism) {
		return nil
	}
	of, err := p.groupsOf(ctx, old)
	if err != nil {
		return err
	}
	for _, g := range of {
		if g.Spec.SchedulingPolicy.Gang != nil {
			return a.Forbid(fmt.Errorf("cannot change parallelism for a Job referencing gang-scheduled PodGroup %q", g.Name))
		}
	}
	return nil
}

// groupsOf are the PodGroup that the template of a Job names, or else those that the Job controls.
func (p Jobs) groupsOf(ctx context.Context, job *batchv1.Job) ([]*schedulingv1alpha2.PodGroup, error) {
	if ref := job.Spec.Template.Spec.SchedulingGroup; ref != nil && ref.PodGroupName != nil {
		obj, err := p.Objects.Get(ctx, groups, job.Namespace, *ref.PodGroupName)
		if g, ok := obj.(*schedulingv1alpha2.PodGroup); ok {
			return []*schedulingv1alpha2.PodGroup{g}, err
		}
		return nil, err
	}
	uid := []byte(job.UID)
	list, err := admission.ListWhere(ctx, p.Objects, groups, job.Namespace, func(text []byte) bool { return bytes.Contains(text, uid) })
	var of []*schedulingv1alpha2.PodGroup
	for _, obj := range list {
		if g, ok := obj.(*schedulingv1alpha2.PodGroup); ok && metav1.IsControlledBy(g, job) {
			of = append(of, g)
		}
	}
	return of, err
}

func same(a, b *int32) bool { return a == b || a != nil && b != nil && *a == *b }
