package v1alpha3

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/removed/deepcopy"
)

// DeepCopyInto copies all of c into out.
func (c *DeviceClass) DeepCopyInto(out *DeviceClass) {
	*out = *c
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	c.Spec.DeepCopyInto(&out.Spec)
}

// DeepCopyObject copies all of c.
func (c *DeviceClass) DeepCopyObject() runtime.Object { return deepcopy.Object(c) }

// DeepCopyInto copies all of l into out.
func (l *DeviceClassList) DeepCopyInto(out *DeviceClassList) {
	*out = *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = deepcopy.List(l.Items)
}

// DeepCopyObject copies all of l.
func (l *DeviceClassList) DeepCopyObject() runtime.Object { return deepcopy.Object(l) }

// DeepCopyInto copies all of s into out.
func (s *DeviceClassSpec) DeepCopyInto(out *DeviceClassSpec) {
	out.Selectors = deepcopy.List(s.Selectors)
	out.Config = deepcopy.List(s.Config)
}

// DeepCopyInto copies all of c into out.
func (c *DeviceClassConfiguration) DeepCopyInto(out *DeviceClassConfiguration) {
	c.DeviceConfiguration.DeepCopyInto(&out.DeviceConfiguration)
}

// DeepCopyInto copies all of c into out.
func (c *DeviceConfiguration) DeepCopyInto(out *DeviceConfiguration) {
	out.Opaque = deepcopy.Pointer(c.Opaque)
}

// DeepCopyInto copies all of c into out.
func (c *OpaqueDeviceConfiguration) DeepCopyInto(out *OpaqueDeviceConfiguration) {
	*out = *c
	c.Parameters.DeepCopyInto(&out.Parameters)
}

// DeepCopyInto copies all of s into out.
func (s *DeviceSelector) DeepCopyInto(out *DeviceSelector) {
	out.CEL = deepcopy.Value(s.CEL)
}

// DeepCopyInto copies all of c into out.
func (c *ResourceClaim) DeepCopyInto(out *ResourceClaim) {
	*out = *c
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	c.Spec.DeepCopyInto(&out.Spec)
	c.Status.DeepCopyInto(&out.Status)
}

// DeepCopyObject copies all of c.
func (c *ResourceClaim) DeepCopyObject() runtime.Object { return deepcopy.Object(c) }

// DeepCopyInto copies all of l into out.
func (l *ResourceClaimList) DeepCopyInto(out *ResourceClaimList) {
	*out = *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = deepcopy.List(l.Items)
}

// DeepCopyObject copies all of l.
func (l *ResourceClaimList) DeepCopyObject() runtime.Object { return deepcopy.Object(l) }

// DeepCopyInto copies all of s into out.
func (s *ResourceClaimSpec) DeepCopyInto(out *ResourceClaimSpec) {
	s.Devices.DeepCopyInto(&out.Devices)
}

// DeepCopyInto copies all of c into out.
func (c *DeviceClaim) DeepCopyInto(out *DeviceClaim) {
	out.Requests = deepcopy.List(c.Requests)
	out.Constraints = deepcopy.List(c.Constraints)
	out.Config = deepcopy.List(c.Config)
}

// DeepCopyInto copies all of r into out.
func (r *DeviceRequest) DeepCopyInto(out *DeviceRequest) {
	*out = *r
	out.Selectors = deepcopy.List(r.Selectors)
	out.AdminAccess = deepcopy.Value(r.AdminAccess)
}

// DeepCopyInto copies all of c into out.
func (c *DeviceConstraint) DeepCopyInto(out *DeviceConstraint) {
	out.Requests = slices.Clone(c.Requests)
	out.MatchAttribute = deepcopy.Value(c.MatchAttribute)
}

// DeepCopyInto copies all of c into out.
func (c *DeviceClaimConfiguration) DeepCopyInto(out *DeviceClaimConfiguration) {
	out.Requests = slices.Clone(c.Requests)
	c.DeviceConfiguration.DeepCopyInto(&out.DeviceConfiguration)
}

// DeepCopyInto copies all of s into out.
func (s *ResourceClaimStatus) DeepCopyInto(out *ResourceClaimStatus) {
	out.Allocation = deepcopy.Pointer(s.Allocation)
	out.ReservedFor = slices.Clone(s.ReservedFor)
	out.Devices = deepcopy.List(s.Devices)
}

// DeepCopyInto copies all of r into out.
func (r *AllocationResult) DeepCopyInto(out *AllocationResult) {
	r.Devices.DeepCopyInto(&out.Devices)
	out.NodeSelector = deepcopy.Pointer(r.NodeSelector)
}

// DeepCopyInto copies all of r into out.
func (r *DeviceAllocationResult) DeepCopyInto(out *DeviceAllocationResult) {
	out.Results = deepcopy.List(r.Results)
	out.Config = deepcopy.List(r.Config)
}

// DeepCopyInto copies all of r into out.
func (r *DeviceRequestAllocationResult) DeepCopyInto(out *DeviceRequestAllocationResult) {
	*out = *r
	out.AdminAccess = deepcopy.Value(r.AdminAccess)
}

// DeepCopyInto copies all of c into out.
func (c *DeviceAllocationConfiguration) DeepCopyInto(out *DeviceAllocationConfiguration) {
	*out = *c
	out.Requests = slices.Clone(c.Requests)
	c.DeviceConfiguration.DeepCopyInto(&out.DeviceConfiguration)
}

// DeepCopyInto copies all of s into out.
func (s *AllocatedDeviceStatus) DeepCopyInto(out *AllocatedDeviceStatus) {
	*out = *s
	out.Conditions = deepcopy.List(s.Conditions)
	out.Data = s.Data.DeepCopy()
	out.NetworkData = deepcopy.Pointer(s.NetworkData)
}

// DeepCopyInto copies all of d into out.
func (d *NetworkDeviceData) DeepCopyInto(out *NetworkDeviceData) {
	*out = *d
	out.IPs = slices.Clone(d.IPs)
}

// DeepCopyInto copies all of t into out.
func (t *ResourceClaimTemplate) DeepCopyInto(out *ResourceClaimTemplate) {
	*out = *t
	t.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	t.Spec.DeepCopyInto(&out.Spec)
}

// DeepCopyObject copies all of t.
func (t *ResourceClaimTemplate) DeepCopyObject() runtime.Object { return deepcopy.Object(t) }

// DeepCopyInto copies all of l into out.
func (l *ResourceClaimTemplateList) DeepCopyInto(out *ResourceClaimTemplateList) {
	*out = *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = deepcopy.List(l.Items)
}

// DeepCopyObject copies all of l.
func (l *ResourceClaimTemplateList) DeepCopyObject() runtime.Object { return deepcopy.Object(l) }

// DeepCopyInto copies all of s into out.
func (s *ResourceClaimTemplateSpec) DeepCopyInto(out *ResourceClaimTemplateSpec) {
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	s.Spec.DeepCopyInto(&out.Spec)
}

// DeepCopyInto copies all of s into out.
func (s *ResourceSlice) DeepCopyInto(out *ResourceSlice) {
	*out = *s
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	s.Spec.DeepCopyInto(&out.Spec)
}

// DeepCopyObject copies all of s.
func (s *ResourceSlice) DeepCopyObject() runtime.Object { return deepcopy.Object(s) }

// DeepCopyInto copies all of l into out.
func (l *ResourceSliceList) DeepCopyInto(out *ResourceSliceList) {
	*out = *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = deepcopy.List(l.Items)
}

// DeepCopyObject copies all of l.
func (l *ResourceSliceList) DeepCopyObject() runtime.Object { return deepcopy.Object(l) }

// DeepCopyInto copies all of s into out.
func (s *ResourceSliceSpec) DeepCopyInto(out *ResourceSliceSpec) {
	*out = *s
	out.NodeSelector = deepcopy.Pointer(s.NodeSelector)
	out.Devices = deepcopy.List(s.Devices)
}

// DeepCopyInto copies all of d into out.
func (d *Device) DeepCopyInto(out *Device) {
	*out = *d
	out.Basic = deepcopy.Pointer(d.Basic)
}

// DeepCopyInto copies all of d into out.
func (d *BasicDevice) DeepCopyInto(out *BasicDevice) {
	out.Attributes = deepcopy.Map(d.Attributes)
	out.Capacity = deepcopy.Map(d.Capacity)
}

// DeepCopyInto copies all of a into out.
func (a *DeviceAttribute) DeepCopyInto(out *DeviceAttribute) {
	out.IntValue = deepcopy.Value(a.IntValue)
	out.BoolValue = deepcopy.Value(a.BoolValue)
	out.StringValue = deepcopy.Value(a.StringValue)
	out.VersionValue = deepcopy.Value(a.VersionValue)
}
