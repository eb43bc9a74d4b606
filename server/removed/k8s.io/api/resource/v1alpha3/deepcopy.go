package v1alpha3

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
	if from == nil {
		return nil
	}
	out := make([]T, len(from))
	for i := range from {
		P(&from[i]).DeepCopyInto(&out[i])
	}
	return out
}

// eachOf copies the values of a map.
func eachOf[K comparable, T any, P copier[T]](from map[K]T) map[K]T {
	if from == nil {
		return nil
	}
	out := make(map[K]T, len(from))
	for k, v := range from {
		var c T
		P(&v).DeepCopyInto(&c)
		out[k] = c
	}
	return out
}

// one copies what a pointer points to.
func one[T any, P copier[T]](from *T) *T {
	if from == nil {
		return nil
	}
	out := new(T)
	P(from).DeepCopyInto(out)
	return out
}

// value copies what a pointer points to, which has no pointers itself.
func value[T any](from *T) *T {
	if from == nil {
		return nil
	}
	out := *from
	return &out
}

// object is one for what is a runtime.Object.
func object[T any, P interface {
	copier[T]
	runtime.Object
}](from *T) runtime.Object {
	if from == nil {
		return nil
	}
	return P(one[T, P](from))
}

// DeepCopyInto copies all of c into out.
func (c *DeviceClass) DeepCopyInto(out *DeviceClass) {
	*out = *c
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	c.Spec.DeepCopyInto(&out.Spec)
}

// DeepCopyObject copies all of c.
func (c *DeviceClass) DeepCopyObject() runtime.Object { return object(c) }

// DeepCopyInto copies all of l into out.
func (l *DeviceClassList) DeepCopyInto(out *DeviceClassList) {
	*out = *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = each(l.Items)
}

// DeepCopyObject copies all of l.
func (l *DeviceClassList) DeepCopyObject() runtime.Object { return object(l) }

// DeepCopyInto copies all of s into out.
func (s *DeviceClassSpec) DeepCopyInto(out *DeviceClassSpec) {
	out.Selectors = each(s.Selectors)
	out.Config = each(s.Config)
}

// DeepCopyInto copies all of c into out.
func (c *DeviceClassConfiguration) DeepCopyInto(out *DeviceClassConfiguration) {
	c.DeviceConfiguration.DeepCopyInto(&out.DeviceConfiguration)
}

// DeepCopyInto copies all of c into out.
func (c *DeviceConfiguration) DeepCopyInto(out *DeviceConfiguration) {
	out.Opaque = one(c.Opaque)
}

// DeepCopyInto copies all of c into out.
func (c *OpaqueDeviceConfiguration) DeepCopyInto(out *OpaqueDeviceConfiguration) {
	*out = *c
	c.Parameters.DeepCopyInto(&out.Parameters)
}

// DeepCopyInto copies all of s into out.
func (s *DeviceSelector) DeepCopyInto(out *DeviceSelector) {
	out.CEL = value(s.CEL)
}

// DeepCopyInto copies all of c into out.
func (c *ResourceClaim) DeepCopyInto(out *ResourceClaim) {
	*out = *c
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	c.Spec.DeepCopyInto(&out.Spec)
	c.Status.DeepCopyInto(&out.Status)
}

// DeepCopyObject copies all of c.
func (c *ResourceClaim) DeepCopyObject() runtime.Object { return object(c) }

// DeepCopyInto copies all of l into out.
func (l *ResourceClaimList) DeepCopyInto(out *ResourceClaimList) {
	*out = *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = each(l.Items)
}

// DeepCopyObject copies all of l.
func (l *ResourceClaimList) DeepCopyObject() runtime.Object { return object(l) }

// DeepCopyInto copies all of s into out.
func (s *ResourceClaimSpec) DeepCopyInto(out *ResourceClaimSpec) {
	s.Devices.DeepCopyInto(&out.Devices)
}

// DeepCopyInto copies all of c into out.
func (c *DeviceClaim) DeepCopyInto(out *DeviceClaim) {
	out.Requests = each(c.Requests)
	out.Constraints = each(c.Constraints)
	out.Config = each(c.Config)
}

// DeepCopyInto copies all of r into out.
func (r *DeviceRequest) DeepCopyInto(out *DeviceRequest) {
	*out = *r
	out.Selectors = each(r.Selectors)
	out.AdminAccess = value(r.AdminAccess)
}

// DeepCopyInto copies all of c into out.
func (c *DeviceConstraint) DeepCopyInto(out *DeviceConstraint) {
	out.Requests = slices.Clone(c.Requests)
	out.MatchAttribute = value(c.MatchAttribute)
}

// DeepCopyInto copies all of c into out.
func (c *DeviceClaimConfiguration) DeepCopyInto(out *DeviceClaimConfiguration) {
	out.Requests = slices.Clone(c.Requests)
	c.DeviceConfiguration.DeepCopyInto(&out.DeviceConfiguration)
}

// DeepCopyInto copies all of s into out.
func (s *ResourceClaimStatus) DeepCopyInto(out *ResourceClaimStatus) {
	out.Allocation = one(s.Allocation)
	out.ReservedFor = slices.Clone(s.ReservedFor)
	out.Devices = each(s.Devices)
}

// DeepCopyInto copies all of r into out.
func (r *AllocationResult) DeepCopyInto(out *AllocationResult) {
	r.Devices.DeepCopyInto(&out.Devices)
	out.NodeSelector = one(r.NodeSelector)
}

// DeepCopyInto copies all of r into out.
func (r *DeviceAllocationResult) DeepCopyInto(out *DeviceAllocationResult) {
	out.Results = each(r.Results)
	out.Config = each(r.Config)
}

// DeepCopyInto copies all of r into out.
func (r *DeviceRequestAllocationResult) DeepCopyInto(out *DeviceRequestAllocationResult) {
	*out = *r
	out.AdminAccess = value(r.AdminAccess)
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
	out.Conditions = each(s.Conditions)
	out.Data = s.Data.DeepCopy()
	out.NetworkData = one(s.NetworkData)
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
func (t *ResourceClaimTemplate) DeepCopyObject() runtime.Object { return object(t) }

// DeepCopyInto copies all of l into out.
func (l *ResourceClaimTemplateList) DeepCopyInto(out *ResourceClaimTemplateList) {
	*out = *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = each(l.Items)
}

// DeepCopyObject copies all of l.
func (l *ResourceClaimTemplateList) DeepCopyObject() runtime.Object { return object(l) }

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
func (s *ResourceSlice) DeepCopyObject() runtime.Object { return object(s) }

// DeepCopyInto copies all of l into out.
func (l *ResourceSliceList) DeepCopyInto(out *ResourceSliceList) {
	*out = *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = each(l.Items)
}

// DeepCopyObject copies all of l.
func (l *ResourceSliceList) DeepCopyObject() runtime.Object { return object(l) }

// DeepCopyInto copies all of s into out.
func (s *ResourceSliceSpec) DeepCopyInto(out *ResourceSliceSpec) {
	*out = *s
	out.NodeSelector = one(s.NodeSelector)
	out.Devices = each(s.Devices)
}

// DeepCopyInto copies all of d into out.
func (d *Device) DeepCopyInto(out *Device) {
	*out = *d
	out.Basic = one(d.Basic)
}

// DeepCopyInto copies all of d into out.
func (d *BasicDevice) DeepCopyInto(out *BasicDevice) {
	out.Attributes = eachOf(d.Attributes)
	out.Capacity = eachOf(d.Capacity)
}

// DeepCopyInto copies all of a into out.
func (a *DeviceAttribute) DeepCopyInto(out *DeviceAttribute) {
	out.IntValue = value(a.IntValue)
	out.BoolValue = value(a.BoolValue)
	out.StringValue = value(a.StringValue)
	out.VersionValue = value(a.VersionValue)
}
