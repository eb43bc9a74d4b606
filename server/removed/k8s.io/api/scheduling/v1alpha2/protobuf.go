package v1alpha2

import "github.com/rowlock/rowlock/server/removed/wire"

func (m *Workload) fields() []wire.Field {
	return []wire.Field{wire.Part(1, &m.ObjectMeta), wire.Part(2, &m.Spec)}
}

// Size is the length of m as Protobuf.
func (m *Workload) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *Workload) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *Workload) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *Workload) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "Workload", m.fields())
}

func (m *WorkloadList) fields() []wire.Field {
	return []wire.Field{wire.Part(1, &m.ListMeta), wire.Parts(2, &m.Items)}
}

// Size is the length of m as Protobuf.
func (m *WorkloadList) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *WorkloadList) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *WorkloadList) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *WorkloadList) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "WorkloadList", m.fields())
}

func (m *WorkloadSpec) fields() []wire.Field {
	return []wire.Field{wire.OptionalPart(1, &m.ControllerRef), wire.Parts(2, &m.PodGroupTemplates)}
}

// Size is the length of m as Protobuf.
func (m *WorkloadSpec) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *WorkloadSpec) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *WorkloadSpec) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *WorkloadSpec) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "WorkloadSpec", m.fields())
}

func (m *TypedLocalObjectReference) fields() []wire.Field {
	return []wire.Field{wire.String(1, &m.APIGroup), wire.String(2, &m.Kind), wire.String(3, &m.Name)}
}

// Size is the length of m as Protobuf.
func (m *TypedLocalObjectReference) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *TypedLocalObjectReference) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *TypedLocalObjectReference) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *TypedLocalObjectReference) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "TypedLocalObjectReference", m.fields())
}

func (m *PodGroupTemplate) fields() []wire.Field {
	return []wire.Field{wire.String(1, &m.Name), wire.Part(2, &m.SchedulingPolicy), wire.OptionalPart(3, &m.SchedulingConstraints), wire.Parts(4, &m.ResourceClaims), wire.OptionalString(5, &m.DisruptionMode), wire.String(6, &m.PriorityClassName), wire.OptionalInt(7, &m.Priority)}
}

// Size is the length of m as Protobuf.
func (m *PodGroupTemplate) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *PodGroupTemplate) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *PodGroupTemplate) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *PodGroupTemplate) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "PodGroupTemplate", m.fields())
}

func (m *PodGroupSchedulingPolicy) fields() []wire.Field {
	return []wire.Field{wire.OptionalPart(1, &m.Basic), wire.OptionalPart(2, &m.Gang)}
}

// Size is the length of m as Protobuf.
func (m *PodGroupSchedulingPolicy) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *PodGroupSchedulingPolicy) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *PodGroupSchedulingPolicy) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *PodGroupSchedulingPolicy) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "PodGroupSchedulingPolicy", m.fields())
}

func (m *BasicSchedulingPolicy) fields() []wire.Field {
	return []wire.Field{}
}

// Size is the length of m as Protobuf.
func (m *BasicSchedulingPolicy) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *BasicSchedulingPolicy) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *BasicSchedulingPolicy) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *BasicSchedulingPolicy) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "BasicSchedulingPolicy", m.fields())
}

func (m *GangSchedulingPolicy) fields() []wire.Field {
	return []wire.Field{wire.Int(1, &m.MinCount)}
}

// Size is the length of m as Protobuf.
func (m *GangSchedulingPolicy) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *GangSchedulingPolicy) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *GangSchedulingPolicy) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *GangSchedulingPolicy) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "GangSchedulingPolicy", m.fields())
}

func (m *PodGroupResourceClaim) fields() []wire.Field {
	return []wire.Field{wire.String(1, &m.Name), wire.OptionalString(2, &m.ResourceClaimName), wire.OptionalString(3, &m.ResourceClaimTemplateName)}
}

// Size is the length of m as Protobuf.
func (m *PodGroupResourceClaim) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *PodGroupResourceClaim) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *PodGroupResourceClaim) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *PodGroupResourceClaim) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "PodGroupResourceClaim", m.fields())
}

func (m *PodGroup) fields() []wire.Field {
	return []wire.Field{wire.Part(1, &m.ObjectMeta), wire.Part(2, &m.Spec), wire.Part(3, &m.Status)}
}

// Size is the length of m as Protobuf.
func (m *PodGroup) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *PodGroup) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *PodGroup) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *PodGroup) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "PodGroup", m.fields())
}

func (m *PodGroupList) fields() []wire.Field {
	return []wire.Field{wire.Part(1, &m.ListMeta), wire.Parts(2, &m.Items)}
}

// Size is the length of m as Protobuf.
func (m *PodGroupList) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *PodGroupList) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *PodGroupList) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *PodGroupList) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "PodGroupList", m.fields())
}

func (m *PodGroupSpec) fields() []wire.Field {
	return []wire.Field{wire.OptionalPart(1, &m.PodGroupTemplateRef), wire.Part(2, &m.SchedulingPolicy), wire.OptionalPart(3, &m.SchedulingConstraints), wire.Parts(4, &m.ResourceClaims), wire.OptionalString(5, &m.DisruptionMode), wire.String(6, &m.PriorityClassName), wire.OptionalInt(7, &m.Priority)}
}

// Size is the length of m as Protobuf.
func (m *PodGroupSpec) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *PodGroupSpec) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *PodGroupSpec) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *PodGroupSpec) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "PodGroupSpec", m.fields())
}

func (m *PodGroupStatus) fields() []wire.Field {
	return []wire.Field{wire.Parts(1, &m.Conditions), wire.Parts(2, &m.ResourceClaimStatuses)}
}

// Size is the length of m as Protobuf.
func (m *PodGroupStatus) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *PodGroupStatus) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *PodGroupStatus) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *PodGroupStatus) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "PodGroupStatus", m.fields())
}

func (m *PodGroupResourceClaimStatus) fields() []wire.Field {
	return []wire.Field{wire.String(1, &m.Name), wire.OptionalString(2, &m.ResourceClaimName)}
}

// Size is the length of m as Protobuf.
func (m *PodGroupResourceClaimStatus) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *PodGroupResourceClaimStatus) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *PodGroupResourceClaimStatus) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *PodGroupResourceClaimStatus) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "PodGroupResourceClaimStatus", m.fields())
}

func (m *PodGroupTemplateReference) fields() []wire.Field {
	return []wire.Field{wire.OptionalPart(1, &m.Workload)}
}

// Size is the length of m as Protobuf.
func (m *PodGroupTemplateReference) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *PodGroupTemplateReference) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *PodGroupTemplateReference) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *PodGroupTemplateReference) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "PodGroupTemplateReference", m.fields())
}

func (m *WorkloadPodGroupTemplateReference) fields() []wire.Field {
	return []wire.Field{wire.String(1, &m.WorkloadName), wire.String(2, &m.PodGroupTemplateName)}
}

// Size is the length of m as Protobuf.
func (m *WorkloadPodGroupTemplateReference) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *WorkloadPodGroupTemplateReference) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *WorkloadPodGroupTemplateReference) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *WorkloadPodGroupTemplateReference) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "WorkloadPodGroupTemplateReference", m.fields())
}

func (m *PodGroupSchedulingConstraints) fields() []wire.Field {
	return []wire.Field{wire.Parts(1, &m.Topology)}
}

// Size is the length of m as Protobuf.
func (m *PodGroupSchedulingConstraints) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *PodGroupSchedulingConstraints) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *PodGroupSchedulingConstraints) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *PodGroupSchedulingConstraints) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "PodGroupSchedulingConstraints", m.fields())
}

func (m *TopologyConstraint) fields() []wire.Field {
	return []wire.Field{wire.String(1, &m.Key)}
}

// Size is the length of m as Protobuf.
func (m *TopologyConstraint) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *TopologyConstraint) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *TopologyConstraint) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *TopologyConstraint) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "TopologyConstraint", m.fields())
}
