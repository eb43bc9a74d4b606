package v1alpha3

import resourcev1beta1 "k8s.io/api/resource/v1beta1"

// SwaggerDoc describes the type, under "", and its fields.
func (DeviceClass) SwaggerDoc() map[string]string {
	return resourcev1beta1.DeviceClass{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (DeviceClassList) SwaggerDoc() map[string]string {
	return resourcev1beta1.DeviceClassList{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (DeviceClassSpec) SwaggerDoc() map[string]string {
	return resourcev1beta1.DeviceClassSpec{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (DeviceClassConfiguration) SwaggerDoc() map[string]string {
	return resourcev1beta1.DeviceClassConfiguration{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (DeviceConfiguration) SwaggerDoc() map[string]string {
	return resourcev1beta1.DeviceConfiguration{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (OpaqueDeviceConfiguration) SwaggerDoc() map[string]string {
	return resourcev1beta1.OpaqueDeviceConfiguration{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (DeviceSelector) SwaggerDoc() map[string]string {
	return resourcev1beta1.DeviceSelector{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (CELDeviceSelector) SwaggerDoc() map[string]string {
	return resourcev1beta1.CELDeviceSelector{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (ResourceClaim) SwaggerDoc() map[string]string {
	return resourcev1beta1.ResourceClaim{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (ResourceClaimList) SwaggerDoc() map[string]string {
	return resourcev1beta1.ResourceClaimList{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (ResourceClaimSpec) SwaggerDoc() map[string]string {
	return resourcev1beta1.ResourceClaimSpec{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (DeviceClaim) SwaggerDoc() map[string]string {
	return resourcev1beta1.DeviceClaim{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (DeviceRequest) SwaggerDoc() map[string]string {
	return resourcev1beta1.DeviceRequest{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (DeviceConstraint) SwaggerDoc() map[string]string {
	return resourcev1beta1.DeviceConstraint{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (DeviceClaimConfiguration) SwaggerDoc() map[string]string {
	return resourcev1beta1.DeviceClaimConfiguration{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (ResourceClaimStatus) SwaggerDoc() map[string]string {
	return resourcev1beta1.ResourceClaimStatus{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (ResourceClaimConsumerReference) SwaggerDoc() map[string]string {
	return resourcev1beta1.ResourceClaimConsumerReference{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (AllocationResult) SwaggerDoc() map[string]string {
	return resourcev1beta1.AllocationResult{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (DeviceAllocationResult) SwaggerDoc() map[string]string {
	return resourcev1beta1.DeviceAllocationResult{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (DeviceRequestAllocationResult) SwaggerDoc() map[string]string {
	return resourcev1beta1.DeviceRequestAllocationResult{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (DeviceAllocationConfiguration) SwaggerDoc() map[string]string {
	return resourcev1beta1.DeviceAllocationConfiguration{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (AllocatedDeviceStatus) SwaggerDoc() map[string]string {
	return resourcev1beta1.AllocatedDeviceStatus{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (NetworkDeviceData) SwaggerDoc() map[string]string {
	return resourcev1beta1.NetworkDeviceData{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (ResourceClaimTemplate) SwaggerDoc() map[string]string {
	return resourcev1beta1.ResourceClaimTemplate{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (ResourceClaimTemplateList) SwaggerDoc() map[string]string {
	return resourcev1beta1.ResourceClaimTemplateList{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (ResourceClaimTemplateSpec) SwaggerDoc() map[string]string {
	return resourcev1beta1.ResourceClaimTemplateSpec{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (ResourceSlice) SwaggerDoc() map[string]string {
	return resourcev1beta1.ResourceSlice{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (ResourceSliceList) SwaggerDoc() map[string]string {
	return resourcev1beta1.ResourceSliceList{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (ResourceSliceSpec) SwaggerDoc() map[string]string {
	return resourcev1beta1.ResourceSliceSpec{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (ResourcePool) SwaggerDoc() map[string]string {
	return resourcev1beta1.ResourcePool{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (Device) SwaggerDoc() map[string]string {
	return resourcev1beta1.Device{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (BasicDevice) SwaggerDoc() map[string]string {
	return resourcev1beta1.BasicDevice{}.SwaggerDoc()
}

// SwaggerDoc describes the type, under "", and its fields.
func (DeviceAttribute) SwaggerDoc() map[string]string {
	return resourcev1beta1.DeviceAttribute{}.SwaggerDoc()
}
