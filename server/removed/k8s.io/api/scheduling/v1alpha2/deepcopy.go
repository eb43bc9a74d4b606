package v1alpha2

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/removed/deepcopy"
)

// DeepCopyInto copies all of m into out.
func (m *Workload) DeepCopyInto(out *Workload) {
	*out = *m
	m.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	m.Spec.DeepCopyInto(&out.Spec)
}

// DeepCopyObject is a copy of m.
func (m *Workload) DeepCopyObject() runtime.Object { return deepcopy.Object(m) }

// DeepCopyInto copies all of m into out.
func (m *WorkloadList) DeepCopyInto(out *WorkloadList) {
	*out = *m
	m.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = deepcopy.List(m.Items)
}

// DeepCopyObject is a copy of m.
func (m *WorkloadList) DeepCopyObject() runtime.Object { return deepcopy.Object(m) }

// DeepCopyInto copies all of m into out.
func (m *WorkloadSpec) DeepCopyInto(out *WorkloadSpec) {
	*out = *m
	out.ControllerRef = deepcopy.Pointer(m.ControllerRef)
	out.PodGroupTemplates = deepcopy.List(m.PodGroupTemplates)
}

// DeepCopyInto copies all of m into out.
func (m *TypedLocalObjectReference) DeepCopyInto(out *TypedLocalObjectReference) {
	*out = *m
}

// DeepCopyInto copies all of m into out.
func (m *PodGroupTemplate) DeepCopyInto(out *PodGroupTemplate) {
	*out = *m
	m.SchedulingPolicy.DeepCopyInto(&out.SchedulingPolicy)
	out.SchedulingConstraints = deepcopy.Pointer(m.SchedulingConstraints)
	out.ResourceClaims = deepcopy.List(m.ResourceClaims)
	out.DisruptionMode = deepcopy.Value(m.DisruptionMode)
	out.Priority = deepcopy.Value(m.Priority)
}

// DeepCopyInto copies all of m into out.
func (m *PodGroupSchedulingPolicy) DeepCopyInto(out *PodGroupSchedulingPolicy) {
	*out = *m
	out.Basic = deepcopy.Pointer(m.Basic)
	out.Gang = deepcopy.Pointer(m.Gang)
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
	out.ResourceClaimName = deepcopy.Value(m.ResourceClaimName)
	out.ResourceClaimTemplateName = deepcopy.Value(m.ResourceClaimTemplateName)
}

// DeepCopyInto copies all of m into out.
func (m *PodGroup) DeepCopyInto(out *PodGroup) {
	*out = *m
	m.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	m.Spec.DeepCopyInto(&out.Spec)
	m.Status.DeepCopyInto(&out.Status)
}

// DeepCopyObject is a copy of m.
func (m *PodGroup) DeepCopyObject() runtime.Object { return deepcopy.Object(m) }

// DeepCopyInto copies all of m into out.
func (m *PodGroupList) DeepCopyInto(out *PodGroupList) {
	*out = *m
	m.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = deepcopy.List(m.Items)
}

// DeepCopyObject is a copy of m.
func (m *PodGroupList) DeepCopyObject() runtime.Object { return deepcopy.Object(m) }

// DeepCopyInto copies all of m into out.
func (m *PodGroupSpec) DeepCopyInto(out *PodGroupSpec) {
	*out = *m
	out.PodGroupTemplateRef = deepcopy.Pointer(m.PodGroupTemplateRef)
	m.SchedulingPolicy.DeepCopyInto(&out.SchedulingPolicy)
	out.SchedulingConstraints = deepcopy.Pointer(m.SchedulingConstraints)
	out.ResourceClaims = deepcopy.List(m.ResourceClaims)
	out.DisruptionMode = deepcopy.Value(m.DisruptionMode)
	out.Priority = deepcopy.Value(m.Priority)
}

// DeepCopyInto copies all of m into out.
func (m *PodGroupStatus) DeepCopyInto(out *PodGroupStatus) {
	*out = *m
	out.Conditions = deepcopy.List(m.Conditions)
	out.ResourceClaimStatuses = deepcopy.List(m.ResourceClaimStatuses)
}

// DeepCopyInto copies all of m into out.
func (m *PodGroupResourceClaimStatus) DeepCopyInto(out *PodGroupResourceClaimStatus) {
	*out = *m
	out.ResourceClaimName = deepcopy.Value(m.ResourceClaimName)
}

// DeepCopyInto copies all of m into out.
func (m *PodGroupTemplateReference) DeepCopyInto(out *PodGroupTemplateReference) {
	*out = *m
	out.Workload = deepcopy.Pointer(m.Workload)
}

// DeepCopyInto copies all of m into out.
func (m *WorkloadPodGroupTemplateReference) DeepCopyInto(out *WorkloadPodGroupTemplateReference) {
	*out = *m
}

// DeepCopyInto copies all of m into out.
func (m *PodGroupSchedulingConstraints) DeepCopyInto(out *PodGroupSchedulingConstraints) {
	*out = *m
	out.Topology = deepcopy.List(m.Topology)
}

// DeepCopyInto copies all of m into out.
func (m *TopologyConstraint) DeepCopyInto(out *TopologyConstraint) {
	*out = *m
}
