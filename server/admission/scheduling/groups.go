// Package scheduling holds the admission plugins of PodGroups, which schedule pods together: a PodGroup in use is not
// deleted, its Workload exists, and the parallelism of a gang's Job does not change.
package scheduling

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server/admission"
	schedulingv1alpha2 "github.com/rowlock/rowlock/server/removed/k8s.io/api/scheduling/v1alpha2"
)

const (
	groups    = "podgroups.scheduling.k8s.io"
	workloads = "workloads.scheduling.k8s.io"
)

// Protection gives new PodGroups a finalizer, so that none is deleted while pods belong to it.
func Protection() admission.Protection {
	return admission.Protection{Plugin: "PodGroupProtection", Finalizers: map[schema.GroupResource]string{
		{Group: "scheduling.k8s.io", Resource: "podgroups"}: "scheduling.k8s.io/podgroup-protection",
	}}
}

// WorkloadExists refuses PodGroups of a Workload, or of a template in it, that does not exist.
func WorkloadExists(objects admission.Objects) admission.Validator {
	return admission.Check[*schedulingv1alpha2.PodGroup]{
		Writes: admission.Writes{Plugin: "PodGroupWorkloadExists", Operations: []admission.Operation{admission.Create}, Group: "scheduling.k8s.io", Plural: "podgroups"},
		Refuse: func(ctx context.Context, a *admission.Attributes, made, _ *schedulingv1alpha2.PodGroup) error {
			return workloadExists(ctx, objects, a, made)
		},
	}
}

func workloadExists(ctx context.Context, objects admission.Objects, a *admission.Attributes, made *schedulingv1alpha2.PodGroup) error {
	if made.Spec.PodGroupTemplateRef == nil || made.Spec.PodGroupTemplateRef.Workload == nil {
		return nil
	}
	ref := made.Spec.PodGroupTemplateRef.Workload
	obj, err := objects.Get(ctx, workloads, a.Namespace, ref.WorkloadName)
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

// Jobs keeps the parallelism of Jobs whose pods are scheduled together. Without objects there are no PodGroups.
func Jobs(objects admission.Objects) admission.Validator {
	return admission.Check[*batchv1.Job]{
		Writes: admission.Writes{Plugin: "JobValidation", Operations: []admission.Operation{admission.Update}, Group: "batch", Plural: "jobs"},
		Refuse: func(ctx context.Context, a *admission.Attributes, job, old *batchv1.Job) error {
			if objects == nil || old == nil || ptr.Equal(job.Spec.Parallelism, old.Spec.Parallelism) {
				return nil
			}
			of, err := groupsOf(ctx, objects, old)
			if err != nil {
				return err
			}
			for _, g := range of {
				if g.Spec.SchedulingPolicy.Gang != nil {
					return a.Forbid(fmt.Errorf("cannot change parallelism for a Job referencing gang-scheduled PodGroup %q", g.Name))
				}
			}
			return nil
		},
	}
}

// groupsOf returns the PodGroup that the template of a Job names, or else those that the Job controls.
func groupsOf(ctx context.Context, objects admission.Objects, job *batchv1.Job) ([]*schedulingv1alpha2.PodGroup, error) {
	if ref := job.Spec.Template.Spec.SchedulingGroup; ref != nil && ref.PodGroupName != nil {
		obj, err := objects.Get(ctx, groups, job.Namespace, *ref.PodGroupName)
		if g, ok := obj.(*schedulingv1alpha2.PodGroup); ok {
			return []*schedulingv1alpha2.PodGroup{g}, err
		}
		return nil, err
	}
	uid := []byte(job.UID)
	list, err := admission.ListAll(ctx, objects, groups, job.Namespace, func(text []byte) bool { return bytes.Contains(text, uid) })
	var of []*schedulingv1alpha2.PodGroup
	for _, obj := range list {
		if g, ok := obj.(*schedulingv1alpha2.PodGroup); ok && metav1.IsControlledBy(g, job) {
			of = append(of, g)
		}
	}
	return of, err
}
