package v1alpha2

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// copier copies all of a T into another one.
type copier[T any] interface {
	*T
	DeepCopyInto(*T)
}

// each copies the items of a list.
func each[T any, P copier[T]](from []T) []T {
	out := slices.Clone(from)
	for i := range from {
		P(&from[i]).DeepCopyInto(&out[i])
	}
	return out
}

// deep copies a structure that may be absent.
func deep[T any, P copier[T]](from *T) *T {
	if from == nil {
		return nil
	}
	out := new(T)
	P(from).DeepCopyInto(out)
	return out
}

// value copies a value that may be absent.
func value[T any](from *T) *T {
	if from == nil {
		return nil
	}
	out := *from
	return &out
}

// DeepCopyInto copies all of m into out.
func (m *Workload) DeepCopyInto(out *Workload) {
	*out = *m
	m.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	m.Spec.DeepCopyInto(&out.Spec)
}

// DeepCopyObject is a copy of m.
func (m *Workload) DeepCopyObject() runtime.Object {
	if m == nil {
		return nil
	}
	return deep(m)
}

// DeepCopyInto copies all of m into out.
func (m *WorkloadList) DeepCopyInto(out *WorkloadList) {
	*out = *m
	m.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = each(m.Items)
}

// DeepCopyObject is a copy of m.
func (m *WorkloadList) DeepCopyObject() runtime.Object {
	if m == nil {
		return nil
	}
	return deep(m)
}

// DeepCopyInto copies all of m into out.
func (m *WorkloadSpec) DeepCopyInto(out *WorkloadSpec) {
	*out = *m
	out.ControllerRef = deep(m.ControllerRef)
	out.PodGroupTemplates = each(m.PodGroupTemplates)
}

// DeepCopyInto copies all of m into out.
func (m *TypedLocalObjectReference) DeepCopyInto(out *TypedLocalObjectReference) {
	*out = *m
}

// DeepCopyInto copies all of m into out.
func (m *PodGroupTemplate) DeepCopyInto(out *PodGroupTemplate) {
	*out = *m
	m.SchedulingPolicy.DeepCopyInto(&out.SchedulingPolicy)
	out.SchedulingConstraints = deep(m.SchedulingConstraints)
	out.ResourceClaims = each(m.ResourceClaims)
	out.DisruptionMode = value(m.DisruptionMode)
	out.Priority = value(m.Priority)
}

// DeepCopyInto copies all of m into out.
func (m *PodGroupSchedulingPolicy) DeepCopyInto(out *PodGroupSchedulingPolicy) {
	*out = *m
	out.Basic = deep(m.Basic)
	out.Gang = deep(m.Gang)
}

// DeepCopyInto copies all of m into out.
func (m *BasicSchedulingPolicy) DeepCopyInto(out *BasicSchedulingPolicy) {
	*out = *m
}

// DeepCopyInto copies all of m into out.
func (m *GangSchedulingPolicy) DeepCopyInto(out *GangSchedulingPolicy) {
	*out = *m
}

// DeepCopyInto copies all of m into out.
func (m *PodGroupResourceClaim) DeepCopyInto(out *PodGroupResourceClaim) {
	*out = *m
	out.ResourceClaimName = value(m.ResourceClaimName)
	out.ResourceClaimTemplateName = value(m.ResourceClaimTemplateName)
}

// DeepCopyInto copies all of m into out.
func (m *PodGroup) DeepCopyInto(out *PodGroup) {
	*out = *m
	m.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	m.Spec.DeepCopyInto(&out.Spec)
	m.Status.DeepCopyInto(&out.Status)
}

// DeepCopyObject is a copy of m.
func (m *PodGroup) DeepCopyObject() runtime.Object {
	if m == nil {
		return nil
	}
	return deep(m)
}

// DeepCopyInto copies all of m into out.
func (m *PodGroupList) DeepCopyInto(out *PodGroupList) {
	*out = *m
	m.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = each(m.Items)
}

// DeepCopyObject is a copy of m.
func (m *PodGroupList) DeepCopyObject() runtime.Object {
	if m == nil {
		return nil
	}
	return deep(m)
}

// DeepCopyInto copies all of m into out.
func (m *PodGroupSpec) DeepCopyInto(out *PodGroupSpec) {
	*out = *m
	out.PodGroupTemplateRef = deep(m.PodGroupTemplateRef)
	m.SchedulingPolicy.DeepCopyInto(&out.SchedulingPolicy)
	out.SchedulingConstraints = deep(m.SchedulingConstraints)
	out.ResourceClaims = each(m.ResourceClaims)
	out.DisruptionMode = value(m.DisruptionMode)
	out.Priority = value(m.Priority)
}

// DeepCopyInto copies all of m into out.
func (m *PodGroupStatus) DeepCopyInto(out *PodGroupStatus) {
	*out = *m
	out.Conditions = each(m.Conditions)
	out.ResourceClaimStatuses = each(m.ResourceClaimStatuses)
}

// DeepCopyInto copies all of m into out.
func (m *PodGroupResourceClaimStatus) DeepCopyInto(out *PodGroupResourceClaimStatus) {
	*out = *m
	out.ResourceClaimName = value(m.ResourceClaimName)
}

// DeepCopyInto copies all of m into out.
func (m *PodGroupTemplateReference) DeepCopyInto(out *PodGroupTemplateReference) {
	*out = *m
	out.Workload = deep(m.Workload)
}

// DeepCopyInto copies all of m into out.
func (m *WorkloadPodGroupTemplateReference) DeepCopyInto(out *WorkloadPodGroupTemplateReference) {
	*out = *m
}

// DeepCopyInto copies all of m into out.
func (m *PodGroupSchedulingConstraints) DeepCopyInto(out *PodGroupSchedulingConstraints) {
	*out = *m
	out.Topology = each(m.Topology)
}

// DeepCopyInto copies all of m into out.
func (m *TopologyConstraint) DeepCopyInto(out *TopologyConstraint) {
	*out = *m
}
