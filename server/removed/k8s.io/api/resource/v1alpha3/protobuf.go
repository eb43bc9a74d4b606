package v1alpha3

import "github.com/rowlock/rowlock/server/removed/wire"

func (m *DeviceClass) fields() []wire.Field {
	return []wire.Field{wire.Part(1, &m.ObjectMeta), wire.Part(2, &m.Spec)}
}

// Size is the length of m as Protobuf.
func (m *DeviceClass) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *DeviceClass) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *DeviceClass) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *DeviceClass) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "DeviceClass", m.fields())
}

func (m *DeviceClassList) fields() []wire.Field {
	return []wire.Field{wire.Part(1, &m.ListMeta), wire.Parts(2, &m.Items)}
}

// Size is the length of m as Protobuf.
func (m *DeviceClassList) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *DeviceClassList) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *DeviceClassList) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *DeviceClassList) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "DeviceClassList", m.fields())
}

func (m *DeviceClassSpec) fields() []wire.Field {
	return []wire.Field{wire.Parts(1, &m.Selectors), wire.Parts(2, &m.Config)}
}

// Size is the length of m as Protobuf.
func (m *DeviceClassSpec) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *DeviceClassSpec) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *DeviceClassSpec) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "DeviceClassSpec", m.fields())
}

func (m *DeviceClassConfiguration) fields() []wire.Field {
	return []wire.Field{wire.Part(1, &m.DeviceConfiguration)}
}

// Size is the length of m as Protobuf.
func (m *DeviceClassConfiguration) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *DeviceClassConfiguration) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *DeviceClassConfiguration) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "DeviceClassConfiguration", m.fields())
}

func (m *DeviceConfiguration) fields() []wire.Field {
	return []wire.Field{wire.OptionalPart(1, &m.Opaque)}
}

// Size is the length of m as Protobuf.
func (m *DeviceConfiguration) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *DeviceConfiguration) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *DeviceConfiguration) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "DeviceConfiguration", m.fields())
}

func (m *OpaqueDeviceConfiguration) fields() []wire.Field {
	return []wire.Field{wire.String(1, &m.Driver), wire.Part(2, &m.Parameters)}
}

// Size is the length of m as Protobuf.
func (m *OpaqueDeviceConfiguration) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *OpaqueDeviceConfiguration) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *OpaqueDeviceConfiguration) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "OpaqueDeviceConfiguration", m.fields())
}

func (m *DeviceSelector) fields() []wire.Field {
	return []wire.Field{wire.OptionalPart(1, &m.CEL)}
}

// Size is the length of m as Protobuf.
func (m *DeviceSelector) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *DeviceSelector) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *DeviceSelector) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "DeviceSelector", m.fields())
}

func (m *CELDeviceSelector) fields() []wire.Field {
	return []wire.Field{wire.String(1, &m.Expression)}
}

// Size is the length of m as Protobuf.
func (m *CELDeviceSelector) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *CELDeviceSelector) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *CELDeviceSelector) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "CELDeviceSelector", m.fields())
}

func (m *ResourceClaim) fields() []wire.Field {
	return []wire.Field{wire.Part(1, &m.ObjectMeta), wire.Part(2, &m.Spec), wire.Part(3, &m.Status)}
}

// Size is the length of m as Protobuf.
func (m *ResourceClaim) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *ResourceClaim) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *ResourceClaim) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *ResourceClaim) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ResourceClaim", m.fields())
}

func (m *ResourceClaimList) fields() []wire.Field {
	return []wire.Field{wire.Part(1, &m.ListMeta), wire.Parts(2, &m.Items)}
}

// Size is the length of m as Protobuf.
func (m *ResourceClaimList) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *ResourceClaimList) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *ResourceClaimList) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *ResourceClaimList) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ResourceClaimList", m.fields())
}

func (m *ResourceClaimSpec) fields() []wire.Field {
	return []wire.Field{wire.Part(1, &m.Devices)}
}

// Size is the length of m as Protobuf.
func (m *ResourceClaimSpec) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *ResourceClaimSpec) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *ResourceClaimSpec) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ResourceClaimSpec", m.fields())
}

func (m *DeviceClaim) fields() []wire.Field {
	return []wire.Field{wire.Parts(1, &m.Requests), wire.Parts(2, &m.Constraints), wire.Parts(3, &m.Config)}
}

// Size is the length of m as Protobuf.
func (m *DeviceClaim) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *DeviceClaim) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *DeviceClaim) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "DeviceClaim", m.fields())
}

func (m *DeviceRequest) fields() []wire.Field {
	return []wire.Field{
		wire.String(1, &m.Name),
		wire.String(2, &m.DeviceClassName),
		wire.Parts(3, &m.Selectors),
		wire.String(4, &m.AllocationMode),
		wire.Int(5, &m.Count),
		wire.OptionalBool(6, &m.AdminAccess),
	}
}

// Size is the length of m as Protobuf.
func (m *DeviceRequest) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *DeviceRequest) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *DeviceRequest) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "DeviceRequest", m.fields())
}

func (m *DeviceConstraint) fields() []wire.Field {
	return []wire.Field{wire.Strings(1, &m.Requests), wire.OptionalString(2, &m.MatchAttribute)}
}

// Size is the length of m as Protobuf.
func (m *DeviceConstraint) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *DeviceConstraint) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *DeviceConstraint) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "DeviceConstraint", m.fields())
}

func (m *DeviceClaimConfiguration) fields() []wire.Field {
	return []wire.Field{wire.Strings(1, &m.Requests), wire.Part(2, &m.DeviceConfiguration)}
}

// Size is the length of m as Protobuf.
func (m *DeviceClaimConfiguration) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *DeviceClaimConfiguration) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *DeviceClaimConfiguration) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "DeviceClaimConfiguration", m.fields())
}

func (m *ResourceClaimStatus) fields() []wire.Field {
	return []wire.Field{wire.OptionalPart(1, &m.Allocation), wire.Parts(2, &m.ReservedFor), wire.Parts(4, &m.Devices)}
}

// Size is the length of m as Protobuf.
func (m *ResourceClaimStatus) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *ResourceClaimStatus) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *ResourceClaimStatus) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ResourceClaimStatus", m.fields())
}

func (m *ResourceClaimConsumerReference) fields() []wire.Field {
	return []wire.Field{wire.String(1, &m.APIGroup), wire.String(3, &m.Resource), wire.String(4, &m.Name), wire.String(5, &m.UID)}
}

// Size is the length of m as Protobuf.
func (m *ResourceClaimConsumerReference) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *ResourceClaimConsumerReference) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *ResourceClaimConsumerReference) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ResourceClaimConsumerReference", m.fields())
}

func (m *AllocationResult) fields() []wire.Field {
	return []wire.Field{wire.Part(1, &m.Devices), wire.OptionalPart(3, &m.NodeSelector)}
}

// Size is the length of m as Protobuf.
func (m *AllocationResult) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *AllocationResult) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *AllocationResult) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "AllocationResult", m.fields())
}

func (m *DeviceAllocationResult) fields() []wire.Field {
	return []wire.Field{wire.Parts(1, &m.Results), wire.Parts(2, &m.Config)}
}

// Size is the length of m as Protobuf.
func (m *DeviceAllocationResult) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *DeviceAllocationResult) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *DeviceAllocationResult) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "DeviceAllocationResult", m.fields())
}

func (m *DeviceRequestAllocationResult) fields() []wire.Field {
	return []wire.Field{
		wire.String(1, &m.Request),
		wire.String(2, &m.Driver),
		wire.String(3, &m.Pool),
		wire.String(4, &m.Device),
		wire.OptionalBool(5, &m.AdminAccess),
	}
}

// Size is the length of m as Protobuf.
func (m *DeviceRequestAllocationResult) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *DeviceRequestAllocationResult) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *DeviceRequestAllocationResult) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "DeviceRequestAllocationResult", m.fields())
}

func (m *DeviceAllocationConfiguration) fields() []wire.Field {
	return []wire.Field{wire.String(1, &m.Source), wire.Strings(2, &m.Requests), wire.Part(3, &m.DeviceConfiguration)}
}

// Size is the length of m as Protobuf.
func (m *DeviceAllocationConfiguration) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *DeviceAllocationConfiguration) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *DeviceAllocationConfiguration) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "DeviceAllocationConfiguration", m.fields())
}

func (m *AllocatedDeviceStatus) fields() []wire.Field {
	return []wire.Field{
		wire.String(1, &m.Driver),
		wire.String(2, &m.Pool),
		wire.String(3, &m.Device),
		wire.Parts(4, &m.Conditions),
		wire.OptionalPart(5, &m.Data),
		wire.OptionalPart(6, &m.NetworkData),
	}
}

// Size is the length of m as Protobuf.
func (m *AllocatedDeviceStatus) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *AllocatedDeviceStatus) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *AllocatedDeviceStatus) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "AllocatedDeviceStatus", m.fields())
}

func (m *NetworkDeviceData) fields() []wire.Field {
	return []wire.Field{wire.String(1, &m.InterfaceName), wire.Strings(2, &m.IPs), wire.String(3, &m.HardwareAddress)}
}

// Size is the length of m as Protobuf.
func (m *NetworkDeviceData) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *NetworkDeviceData) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *NetworkDeviceData) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "NetworkDeviceData", m.fields())
}

func (m *ResourceClaimTemplate) fields() []wire.Field {
	return []wire.Field{wire.Part(1, &m.ObjectMeta), wire.Part(2, &m.Spec)}
}

// Size is the length of m as Protobuf.
func (m *ResourceClaimTemplate) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *ResourceClaimTemplate) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *ResourceClaimTemplate) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *ResourceClaimTemplate) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ResourceClaimTemplate", m.fields())
}

func (m *ResourceClaimTemplateList) fields() []wire.Field {
	return []wire.Field{wire.Part(1, &m.ListMeta), wire.Parts(2, &m.Items)}
}

// Size is the length of m as Protobuf.
func (m *ResourceClaimTemplateList) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *ResourceClaimTemplateList) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *ResourceClaimTemplateList) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *ResourceClaimTemplateList) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ResourceClaimTemplateList", m.fields())
}

func (m *ResourceClaimTemplateSpec) fields() []wire.Field {
	return []wire.Field{wire.Part(1, &m.ObjectMeta), wire.Part(2, &m.Spec)}
}

// Size is the length of m as Protobuf.
func (m *ResourceClaimTemplateSpec) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *ResourceClaimTemplateSpec) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *ResourceClaimTemplateSpec) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ResourceClaimTemplateSpec", m.fields())
}

func (m *ResourceSlice) fields() []wire.Field {
	return []wire.Field{wire.Part(1, &m.ObjectMeta), wire.Part(2, &m.Spec)}
}

// Size is the length of m as Protobuf.
func (m *ResourceSlice) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *ResourceSlice) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *ResourceSlice) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *ResourceSlice) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ResourceSlice", m.fields())
}

func (m *ResourceSliceList) fields() []wire.Field {
	return []wire.Field{wire.Part(1, &m.ListMeta), wire.Parts(2, &m.Items)}
}

// Size is the length of m as Protobuf.
func (m *ResourceSliceList) Size() int { return wire.Size(m.fields()) }

// Marshal is m as Protobuf.
func (m *ResourceSliceList) Marshal() ([]byte, error) { return wire.Whole(m) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *ResourceSliceList) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *ResourceSliceList) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ResourceSliceList", m.fields())
}

func (m *ResourceSliceSpec) fields() []wire.Field {
	return []wire.Field{
		wire.String(1, &m.Driver),
		wire.Part(2, &m.Pool),
		wire.String(3, &m.NodeName),
		wire.OptionalPart(4, &m.NodeSelector),
		wire.Bool(5, &m.AllNodes),
		wire.Parts(6, &m.Devices),
	}
}

// Size is the length of m as Protobuf.
func (m *ResourceSliceSpec) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *ResourceSliceSpec) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *ResourceSliceSpec) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ResourceSliceSpec", m.fields())
}

func (m *ResourcePool) fields() []wire.Field {
	return []wire.Field{wire.String(1, &m.Name), wire.Int(2, &m.Generation), wire.Int(3, &m.ResourceSliceCount)}
}

// Size is the length of m as Protobuf.
func (m *ResourcePool) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *ResourcePool) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *ResourcePool) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "ResourcePool", m.fields())
}

func (m *Device) fields() []wire.Field {
	return []wire.Field{wire.String(1, &m.Name), wire.OptionalPart(2, &m.Basic)}
}

// Size is the length of m as Protobuf.
func (m *Device) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *Device) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *Device) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "Device", m.fields())
}

func (m *BasicDevice) fields() []wire.Field {
	return []wire.Field{wire.Map(1, &m.Attributes), wire.Map(2, &m.Capacity)}
}

// Size is the length of m as Protobuf.
func (m *BasicDevice) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *BasicDevice) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *BasicDevice) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "BasicDevice", m.fields())
}

func (m *DeviceAttribute) fields() []wire.Field {
	return []wire.Field{
		wire.OptionalInt(2, &m.IntValue),
		wire.OptionalBool(3, &m.BoolValue),
		wire.OptionalString(4, &m.StringValue),
		wire.OptionalString(5, &m.VersionValue),
	}
}

// Size is the length of m as Protobuf.
func (m *DeviceAttribute) Size() int { return wire.Size(m.fields()) }

// MarshalToSizedBuffer writes m to the end of data.
func (m *DeviceAttribute) MarshalToSizedBuffer(data []byte) (int, error) {
	return wire.Marshal(data, m.fields())
}

// Unmarshal reads m from data.
func (m *DeviceAttribute) Unmarshal(data []byte) error {
	return wire.Unmarshal(data, "DeviceAttribute", m.fields())
}
