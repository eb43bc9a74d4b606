package resource

import (
	"fmt"
	"slices"

	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// Limits of the device data that drivers report.
const (
	maxConditions    = 8
	maxInterfaceName = 256
	maxHardware      = 128
	maxAddresses     = 16
)

// device names a device in messages.
type device struct{ driver, pool, name string }

func (d device) String() string { return d.driver + "/" + d.pool + "/" + d.name }

func allocated(a *resourcev1beta1.AllocationResult) map[device]bool {
	found := map[device]bool{}
	if a != nil {
		for i := range a.Devices.Results {
			r := &a.Devices.Results[i]
			found[device{r.Driver, r.Pool, r.Device}] = true
		}
	}
	return found
}

func statusOf(s *resourcev1beta1.AllocatedDeviceStatus) device {
	return device{s.Driver, s.Pool, s.Device}
}

// dropDeallocated forgets how devices are that the claim does not have any more.
func dropDeallocated(s *resourcev1beta1.ResourceClaimStatus, old *resourcev1beta1.AllocationResult) {
	had, has := allocated(old), allocated(s.Allocation)
	s.Devices = slices.DeleteFunc(s.Devices, func(d resourcev1beta1.AllocatedDeviceStatus) bool {
		name := statusOf(&d)
		return had[name] && !has[name]
	})
	if len(s.Devices) == 0 {
		s.Devices = nil
	}
}

func validateStatus(c, old *resourcev1beta1.ResourceClaim) field.ErrorList {
	s, was, p := &c.Status, &old.Status, statusPath
	errs := each(s.ReservedFor, resourcev1beta1.ResourceClaimReservedForMaxSize, p.Child("reservedFor"), validateConsumer)
	errs = append(errs, repeated(s.ReservedFor, func(r *resourcev1beta1.ResourceClaimConsumerReference) types.UID { return r.UID }, p.Child("reservedFor"), "uid")...)
	devices := allocated(s.Allocation)
	errs = append(errs, each(s.Devices, -1, p.Child("devices"), func(d *resourcev1beta1.AllocatedDeviceStatus, p *field.Path) field.ErrorList {
		return validateDeviceStatus(d, devices, p)
	})...)
	errs = append(errs, repeated(s.Devices, statusOf, p.Child("devices"), "deviceID")...)
	errs = append(errs, validateReserved(c, old)...)
	switch {
	case s.Allocation == nil:
	case was.Allocation != nil:
		errs = append(errs, rules.Immutable(s.Allocation, was.Allocation, p.Child("allocation"))...)
	default:
		errs = append(errs, validateAllocation(s.Allocation, requestNames(&c.Spec.Devices), p.Child("allocation"))...)
	}
	return errs
}

// validateReserved refuses users of a claim that has no devices, and new ones of a claim
// that goes.
func validateReserved(c, old *resourcev1beta1.ResourceClaim) field.ErrorList {
	p := statusPath.Child("reservedFor")
	switch {
	case len(c.Status.ReservedFor) == 0:
		return nil
	case c.Status.Allocation == nil:
		return field.ErrorList{field.Forbidden(p, "may not be specified when `allocated` is not set")}
	case c.DeletionTimestamp == nil:
		return nil
	}
	had := rules.In(old.Status.ReservedFor)
	for _, r := range c.Status.ReservedFor {
		if !had.Has(r) {
			return field.ErrorList{field.Forbidden(p, "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set")}
		}
	}
	return nil
}

func validateConsumer(r *resourcev1beta1.ResourceClaimConsumerReference, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range [...]struct{ name, value string }{{"resource", r.Resource}, {"name", r.Name}, {"uid", string(r.UID)}} {
		if f.value == "" {
			errs = append(errs, field.Required(p.Child(f.name), ""))
		}
	}
	return errs
}

func validateAllocation(a *resourcev1beta1.AllocationResult, names map[string]bool, p *field.Path) field.ErrorList {
	devices := p.Child("devices")
	errs := each(a.Devices.Results, resourcev1beta1.AllocationResultsMaxSize, devices.Child("results"), func(r *resourcev1beta1.DeviceRequestAllocationResult, p *field.Path) field.ErrorList {
		errs := requestRef(r.Request, names, p.Child("request"))
		return append(errs, validateDeviceName(device{r.Driver, r.Pool, r.Device}, p)...)
	})
	// The configuration of the class comes before that of the claim.
	errs = append(errs, each(a.Devices.Config, 2*resourcev1beta1.DeviceConfigMaxSize, devices.Child("config"), func(c *resourcev1beta1.DeviceAllocationConfiguration, p *field.Path) field.ErrorList {
		return validateAllocatedConfig(c, names, p)
	})...)
	return append(errs, rules.OptionalPtr(a.NodeSelector, p.Child("nodeSelector"), podspec.ValidateNodeSelector)...)
}

func validateAllocatedConfig(c *resourcev1beta1.DeviceAllocationConfiguration, names map[string]bool, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Source == "" {
		errs = append(errs, field.Required(p.Child("source"), ""))
	} else {
		errs = append(errs, rules.OneOf(c.Source, p.Child("source"), resourcev1beta1.AllocationConfigSourceClaim, resourcev1beta1.AllocationConfigSourceClass)...)
	}
	errs = append(errs, requestRefs(c.Requests, names, p.Child("requests"))...)
	return append(errs, configuration(&c.DeviceConfiguration, p, false)...)
}

func validateDeviceName(d device, p *field.Path) field.ErrorList {
	errs := rules.DriverName(d.driver, p.Child("driver"))
	errs = append(errs, poolName(d.pool, p.Child("pool"))...)
	return append(errs, rules.Label(d.name, p.Child("device"))...)
}

func validateDeviceStatus(s *resourcev1beta1.AllocatedDeviceStatus, devices map[device]bool, p *field.Path) field.ErrorList {
	name := statusOf(s)
	errs := validateDeviceName(name, p)
	errs = rules.InvalidIf(errs, !devices[name], p, name, "must be an allocated device in the claim")
	if len(s.Conditions) > maxConditions {
		errs = append(errs, field.TooMany(p.Child("conditions"), len(s.Conditions), maxConditions))
	}
	errs = append(errs, metavalidation.ValidateConditions(s.Conditions, p.Child("conditions"))...)
	if data := dataOf(s); len(data.Raw) > 0 {
		errs = append(errs, jsonObject(data, p.Child("data"), false)...)
	}
	return append(errs, rules.OptionalPtr(s.NetworkData, p.Child("networkData"), validateNetwork)...)
}

// dataOf is the data that a driver reports about a device: a struct, or in newer releases of k8s.io/api a pointer to it.
func dataOf(s *resourcev1beta1.AllocatedDeviceStatus) runtime.RawExtension {
	switch data := any(s.Data).(type) {
	case runtime.RawExtension:
		return data
	case *runtime.RawExtension:
		if data != nil {
			return *data
		}
	}
	return runtime.RawExtension{}
}

func validateNetwork(n *resourcev1beta1.NetworkDeviceData, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(n.InterfaceName) > maxInterfaceName {
		errs = append(errs, field.TooLong(p.Child("interfaceName"), "", maxInterfaceName))
	}
	if len(n.HardwareAddress) > maxHardware {
		errs = append(errs, field.TooLong(p.Child("hardwareAddress"), "", maxHardware))
	}
	ips := p.Child("ips")
	errs = append(errs, each(n.IPs, maxAddresses, ips, func(a *string, p *field.Path) field.ErrorList {
		return validation.IsValidCIDRForLegacyField(p, *a, false, nil)
	})...)
	return append(errs, repeated(n.IPs, usualAddress, ips, "")...)
}

// usualAddress is an address with the length of its network as it is usually written, so that two ways
// of writing one are the same; "" for what is none.
func usualAddress(text *string) string {
	ip, network, err := netutils.ParseCIDRSloppy(*text)
	if err != nil {
		return ""
	}
	ones, _ := network.Mask.Size()
	return fmt.Sprintf("%s/%d", ip, ones)
}
