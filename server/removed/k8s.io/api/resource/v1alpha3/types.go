// Package v1alpha3 has the types of the group resource.k8s.io/v1alpha3 that k8s.io/api has up to
// v0.33: the same JSON, the same Protobuf messages. They are those of v1beta1 in Kubernetes 1.32, but
// for the capacity of a device. The descriptions of v1beta1's types and fields apply to these too.
package v1alpha3

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// SchemeGroupVersion is the group and the version of the types.
var SchemeGroupVersion = schema.GroupVersion{Group: "resource.k8s.io", Version: "v1alpha3"}

// AddToScheme registers the types.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(SchemeGroupVersion,
		&DeviceClass{}, &DeviceClassList{}, &ResourceClaim{}, &ResourceClaimList{},
		&ResourceClaimTemplate{}, &ResourceClaimTemplateList{}, &ResourceSlice{}, &ResourceSliceList{})
	metav1.AddToGroupVersion(s, SchemeGroupVersion)
	return nil
}

// ResourceSlice lists the devices that a driver offers in a part of one of its pools.
type ResourceSlice struct {
	metav1.TypeMeta `json:",inline"`
	// The metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// What the driver offers.
	Spec ResourceSliceSpec `json:"spec" protobuf:"bytes,2,name=spec"`
}

// ResourceSliceSpec is the content of a ResourceSlice, published by a driver.
type ResourceSliceSpec struct {
	// The name of the driver.
	// +required
	Driver string `json:"driver" protobuf:"bytes,1,name=driver"`
	// The pool of which this is a part.
	// +required
	Pool ResourcePool `json:"pool" protobuf:"bytes,2,name=pool"`
	// The one node that can use the devices.
	// +optional
	NodeName string `json:"nodeName,omitempty" protobuf:"bytes,3,opt,name=nodeName"`
	// The nodes that can use the devices, where it is not one.
	// +optional
	NodeSelector *corev1.NodeSelector `json:"nodeSelector,omitempty" protobuf:"bytes,4,opt,name=nodeSelector"`
	// Whether every node can use the devices.
	// +optional
	AllNodes bool `json:"allNodes,omitempty" protobuf:"bytes,5,opt,name=allNodes"`
	// The devices.
	// +optional
	// +listType=atomic
	Devices []Device `json:"devices" protobuf:"bytes,6,name=devices"`
}

// ResourcePool is the pool that a ResourceSlice belongs to.
type ResourcePool struct {
	// The name of the pool.
	// +required
	Name string `json:"name" protobuf:"bytes,1,name=name"`
	// The number of the pool's state; only slices with the highest count.
	// +required
	Generation int64 `json:"generation" protobuf:"bytes,2,name=generation"`
	// How many slices there are in that state.
	// +required
	ResourceSliceCount int64 `json:"resourceSliceCount" protobuf:"bytes,3,name=resourceSliceCount"`
}

// Device is one device.
type Device struct {
	// Its name, unique among those of the driver in the pool.
	// +required
	Name string `json:"name" protobuf:"bytes,1,name=name"`
	// What the device is.
	// +optional
	Basic *BasicDevice `json:"basic,omitempty" protobuf:"bytes,2,opt,name=basic"`
}

// BasicDevice has the properties of a device.
type BasicDevice struct {
	// Attributes by their names.
	// +optional
	Attributes map[QualifiedName]DeviceAttribute `json:"attributes,omitempty" protobuf:"bytes,1,rep,name=attributes"`
	// Capacities by their names.
	// +optional
	Capacity map[QualifiedName]resource.Quantity `json:"capacity,omitempty" protobuf:"bytes,2,rep,name=capacity"`
}

// QualifiedName is the name of an attribute or a capacity: a C identifier, with or without a domain.
type QualifiedName string

// FullyQualifiedName is a QualifiedName with a domain.
type FullyQualifiedName string

// DeviceAttribute is a value of one of several types.
type DeviceAttribute struct {
	// A number.
	// +optional
	IntValue *int64 `json:"int,omitempty" protobuf:"varint,2,opt,name=int"`
	// True or false.
	// +optional
	BoolValue *bool `json:"bool,omitempty" protobuf:"varint,3,opt,name=bool"`
	// A text.
	// +optional
	StringValue *string `json:"string,omitempty" protobuf:"bytes,4,opt,name=string"`
	// A semantic version.
	// +optional
	VersionValue *string `json:"version,omitempty" protobuf:"bytes,5,opt,name=version"`
}

// ResourceSliceList is a list of slices.
type ResourceSliceList struct {
	metav1.TypeMeta `json:",inline"`
	// The metadata of the list.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// The slices.
	Items []ResourceSlice `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// ResourceClaim asks for devices.
type ResourceClaim struct {
	metav1.TypeMeta `json:",inline"`
	// The metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// What is asked for.
	Spec ResourceClaimSpec `json:"spec" protobuf:"bytes,2,name=spec"`
	// What was allocated.
	// +optional
	Status ResourceClaimStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// ResourceClaimSpec is what a claim asks for.
type ResourceClaimSpec struct {
	// The devices.
	// +optional
	Devices DeviceClaim `json:"devices" protobuf:"bytes,1,name=devices"`
}

// DeviceClaim describes the devices that a claim requests.
type DeviceClaim struct {
	// Each of these needs a device of its own.
	// +optional
	// +listType=atomic
	Requests []DeviceRequest `json:"requests" protobuf:"bytes,1,name=requests"`
	// What the devices must have in common.
	// +optional
	// +listType=atomic
	Constraints []DeviceConstraint `json:"constraints,omitempty" protobuf:"bytes,2,opt,name=constraints"`
	// Configuration for drivers.
	// +optional
	// +listType=atomic
	Config []DeviceClaimConfiguration `json:"config,omitempty" protobuf:"bytes,3,opt,name=config"`
}

// DeviceRequest asks for one or several devices of a class.
type DeviceRequest struct {
	// The name of the request.
	// +required
	Name string `json:"name" protobuf:"bytes,1,name=name"`
	// The class of the devices.
	// +required
	DeviceClassName string `json:"deviceClassName" protobuf:"bytes,2,name=deviceClassName"`
	// All of these must choose a device.
	// +optional
	// +listType=atomic
	Selectors []DeviceSelector `json:"selectors,omitempty" protobuf:"bytes,3,name=selectors"`
	// How many devices of those that fit.
	// +optional
	AllocationMode DeviceAllocationMode `json:"allocationMode,omitempty" protobuf:"bytes,4,opt,name=allocationMode"`
	// The number of devices in the mode ExactCount.
	// +optional
	Count int64 `json:"count,omitempty" protobuf:"bytes,5,opt,name=count"`
	// Whether devices that are in use will do.
	// +optional
	AdminAccess *bool `json:"adminAccess,omitempty" protobuf:"bytes,6,opt,name=adminAccess"`
}

// DeviceAllocationMode is ExactCount or All.
type DeviceAllocationMode string

// DeviceSelector chooses devices.
type DeviceSelector struct {
	// By an expression.
	// +optional
	CEL *CELDeviceSelector `json:"cel,omitempty" protobuf:"bytes,1,opt,name=cel"`
}

// CELDeviceSelector chooses devices by an expression.
type CELDeviceSelector struct {
	// The expression.
	// +required
	Expression string `json:"expression" protobuf:"bytes,1,name=expression"`
}

// DeviceConstraint is what devices must have in common.
type DeviceConstraint struct {
	// The names of the requests whose devices are meant; none means all.
	// +optional
	// +listType=atomic
	Requests []string `json:"requests,omitempty" protobuf:"bytes,1,opt,name=requests"`
	// The attribute that must have the same value.
	// +optional
	MatchAttribute *FullyQualifiedName `json:"matchAttribute,omitempty" protobuf:"bytes,2,opt,name=matchAttribute"`
}

// DeviceClaimConfiguration configures the devices of a claim.
type DeviceClaimConfiguration struct {
	// The names of the requests whose devices are meant; none means all.
	// +optional
	// +listType=atomic
	Requests            []string `json:"requests,omitempty" protobuf:"bytes,1,opt,name=requests"`
	DeviceConfiguration `json:",inline" protobuf:"bytes,2,name=deviceConfiguration"`
}

// DeviceConfiguration configures devices.
type DeviceConfiguration struct {
	// In a form that the driver knows.
	// +optional
	Opaque *OpaqueDeviceConfiguration `json:"opaque,omitempty" protobuf:"bytes,1,opt,name=opaque"`
}

// OpaqueDeviceConfiguration is configuration that only its driver understands.
type OpaqueDeviceConfiguration struct {
	// The name of the driver.
	// +required
	Driver string `json:"driver" protobuf:"bytes,1,name=driver"`
	// The configuration.
	// +required
	Parameters runtime.RawExtension `json:"parameters" protobuf:"bytes,2,name=parameters"`
}

// ResourceClaimStatus is the allocation of a claim, and its consumers.
type ResourceClaimStatus struct {
	// What was allocated.
	// +optional
	Allocation *AllocationResult `json:"allocation,omitempty" protobuf:"bytes,1,opt,name=allocation"`
	// Who may use the claim.
	// +optional
	// +listType=map
	// +listMapKey=uid
	// +patchStrategy=merge
	// +patchMergeKey=uid
	ReservedFor []ResourceClaimConsumerReference `json:"reservedFor,omitempty" protobuf:"bytes,2,opt,name=reservedFor" patchStrategy:"merge" patchMergeKey:"uid"`
	// The state of the devices as their drivers report it.
	// +optional
	// +listType=map
	// +listMapKey=driver
	// +listMapKey=device
	// +listMapKey=pool
	Devices []AllocatedDeviceStatus `json:"devices,omitempty" protobuf:"bytes,4,opt,name=devices"`
}

// ResourceClaimConsumerReference names an object that uses a claim, in the namespace of the claim.
type ResourceClaimConsumerReference struct {
	// The API group of the object.
	// +optional
	APIGroup string `json:"apiGroup,omitempty" protobuf:"bytes,1,opt,name=apiGroup"`
	// The resource of the object, such as "pods".
	// +required
	Resource string `json:"resource" protobuf:"bytes,3,name=resource"`
	// The name of the object.
	// +required
	Name string `json:"name" protobuf:"bytes,4,name=name"`
	// The UID of the object.
	// +required
	UID types.UID `json:"uid" protobuf:"bytes,5,name=uid"`
}

// AllocationResult is what a claim was given.
type AllocationResult struct {
	// The devices.
	// +optional
	Devices DeviceAllocationResult `json:"devices,omitempty" protobuf:"bytes,1,opt,name=devices"`
	// The nodes that can use the devices; none means all.
	// +optional
	NodeSelector *corev1.NodeSelector `json:"nodeSelector,omitempty" protobuf:"bytes,3,opt,name=nodeSelector"`
}

// DeviceAllocationResult has the devices that a claim was given.
type DeviceAllocationResult struct {
	// The devices.
	// +optional
	// +listType=atomic
	Results []DeviceRequestAllocationResult `json:"results,omitempty" protobuf:"bytes,1,opt,name=results"`
	// The configuration of claim and classes.
	// +optional
	// +listType=atomic
	Config []DeviceAllocationConfiguration `json:"config,omitempty" protobuf:"bytes,2,opt,name=config"`
}

// DeviceRequestAllocationResult is a device that a request was given.
type DeviceRequestAllocationResult struct {
	// The name of the request.
	// +required
	Request string `json:"request" protobuf:"bytes,1,name=request"`
	// The name of the driver.
	// +required
	Driver string `json:"driver" protobuf:"bytes,2,name=driver"`
	// The name of the pool.
	// +required
	Pool string `json:"pool" protobuf:"bytes,3,name=pool"`
	// The name of the device.
	// +required
	Device string `json:"device" protobuf:"bytes,4,name=device"`
	// Whether others may use the device at the same time.
	// +optional
	AdminAccess *bool `json:"adminAccess" protobuf:"bytes,5,name=adminAccess"`
}

// DeviceAllocationConfiguration is configuration, and where it comes from.
type DeviceAllocationConfiguration struct {
	// Whether it comes from a class or from the claim.
	// +required
	Source AllocationConfigSource `json:"source" protobuf:"bytes,1,name=source"`
	// The names of the requests whose devices are meant; none means all.
	// +optional
	// +listType=atomic
	Requests            []string `json:"requests,omitempty" protobuf:"bytes,2,opt,name=requests"`
	DeviceConfiguration `json:",inline" protobuf:"bytes,3,name=deviceConfiguration"`
}

// AllocationConfigSource is FromClass or FromClaim.
type AllocationConfigSource string

// ResourceClaimList is a list of claims.
type ResourceClaimList struct {
	metav1.TypeMeta `json:",inline"`
	// The metadata of the list.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// The claims.
	Items []ResourceClaim `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// DeviceClass is a class of devices.
type DeviceClass struct {
	metav1.TypeMeta `json:",inline"`
	// The metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// What devices of the class are, and how they are configured.
	Spec DeviceClassSpec `json:"spec" protobuf:"bytes,2,name=spec"`
}

// DeviceClassSpec selects the devices of a class.
type DeviceClassSpec struct {
	// All of these must choose a device.
	// +optional
	// +listType=atomic
	Selectors []DeviceSelector `json:"selectors,omitempty" protobuf:"bytes,1,opt,name=selectors"`
	// Configuration for drivers.
	// +optional
	// +listType=atomic
	Config []DeviceClassConfiguration `json:"config,omitempty" protobuf:"bytes,2,opt,name=config"`
}

// DeviceClassConfiguration configures the devices of a class.
type DeviceClassConfiguration struct {
	DeviceConfiguration `json:",inline" protobuf:"bytes,1,opt,name=deviceConfiguration"`
}

// DeviceClassList is a list of classes.
type DeviceClassList struct {
	metav1.TypeMeta `json:",inline"`
	// The metadata of the list.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// The classes.
	Items []DeviceClass `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// ResourceClaimTemplate is what claims are made of.
type ResourceClaimTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// The metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// The claims.
	Spec ResourceClaimTemplateSpec `json:"spec" protobuf:"bytes,2,name=spec"`
}

// ResourceClaimTemplateSpec is the claim that is made of a template.
type ResourceClaimTemplateSpec struct {
	// Labels and annotations of the claims.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// What the claims ask for.
	Spec ResourceClaimSpec `json:"spec" protobuf:"bytes,2,name=spec"`
}

// ResourceClaimTemplateList is a list of templates.
type ResourceClaimTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	// The metadata of the list.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	// The templates.
	Items []ResourceClaimTemplate `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// AllocatedDeviceStatus is the state of an allocated device as its driver reports it.
type AllocatedDeviceStatus struct {
	// The name of the driver.
	// +required
	Driver string `json:"driver" protobuf:"bytes,1,rep,name=driver"`
	// The name of the pool.
	// +required
	Pool string `json:"pool" protobuf:"bytes,2,rep,name=pool"`
	// The name of the device.
	// +required
	Device string `json:"device" protobuf:"bytes,3,rep,name=device"`
	// The state of the device.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions" protobuf:"bytes,4,opt,name=conditions"`
	// Arbitrary data of the driver.
	// +optional
	Data *runtime.RawExtension `json:"data,omitempty" protobuf:"bytes,5,opt,name=data"`
	// Where the device is in a network.
	// +optional
	NetworkData *NetworkDeviceData `json:"networkData,omitempty" protobuf:"bytes,6,opt,name=networkData"`
}

// NetworkDeviceData is the network configuration of a device.
type NetworkDeviceData struct {
	// The name of the interface.
	// +optional
	InterfaceName string `json:"interfaceName,omitempty" protobuf:"bytes,1,opt,name=interfaceName"`
	// Addresses with their masks.
	// +optional
	// +listType=atomic
	IPs []string `json:"ips,omitempty" protobuf:"bytes,2,opt,name=ips"`
	// The address of the hardware.
	// +optional
	HardwareAddress string `json:"hardwareAddress,omitempty" protobuf:"bytes,3,opt,name=hardwareAddress"`
}
