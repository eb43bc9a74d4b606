package resource

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	resourceapi "k8s.io/api/resource/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
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

// device names a device, or a share of one, in messages.
type device struct{ Driver, Pool, Device, ShareID string }

func (d device) String() string {
	return d.Driver + "/" + d.Pool + "/" + d.Device
}

func allocated(a *resourceapi.AllocationResult) map[device]bool {
	found := map[device]bool{}
	if a != nil {
		for i := range a.Devices.Results {
			r := &a.Devices.Results[i]
			found[device{r.Driver, r.Pool, r.Device, string(rules.Value(r.ShareID))}] = true
		}
	}
	return found
}

func statusOf(s *resourceapi.AllocatedDeviceStatus) device {
	return device{s.Driver, s.Pool, s.Device, rules.Value(s.ShareID)}
}

// dropDeallocated forgets how devices are that the claim does not have any more.
func dropDeallocated(s *resourceapi.ResourceClaimStatus, old *resourceapi.AllocationResult) {
	had, has := allocated(old), allocated(s.Allocation)
	s.Devices = slices.DeleteFunc(s.Devices, func(d resourceapi.AllocatedDeviceStatus) bool {
		name := statusOf(&d)
		return had[name] && !has[name]
	})
	if len(s.Devices) == 0 {
		s.Devices = nil
	}
}

func (b *validator) validateStatus(c, old *resourceapi.ResourceClaim) field.ErrorList {
	s, was, p := &c.Status, &old.Status, statusPath
	errs := set(b, s.ReservedFor, resourceapi.ResourceClaimReservedForMaxSize, func(r *resourceapi.ResourceClaimConsumerReference) types.UID { return r.UID }, p.Child("reservedFor"), "uid", validateConsumer)
	devices := allocated(s.Allocation)
	errs = append(errs, set(b, s.Devices, -1, statusOf, p.Child("devices"), "deviceID", func(d *resourceapi.AllocatedDeviceStatus, p *field.Path) field.ErrorList {
		return b.deviceStatusOf(d, devices, p)
	})...)
	errs = append(errs, validateReserved(c, old)...)
	switch {
	case s.Allocation == nil:
	case was.Allocation != nil:
		errs = append(errs, rules.Immutable(s.Allocation, was.Allocation, p.Child("allocation"))...)
	default:
		errs = append(errs, b.allocation(s.Allocation, namesOf(&c.Spec.Devices), p.Child("allocation"))...)
	}
	return errs
}

// validateReserved refuses users of a claim that has no devices, and new ones of a claim
// that goes.
func validateReserved(c, old *resourceapi.ResourceClaim) field.ErrorList {
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

func validateConsumer(r *resourceapi.ResourceClaimConsumerReference, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range [...]struct{ name, value string }{{"resource", r.Resource}, {"name", r.Name}, {"uid", string(r.UID)}} {
		if f.value == "" {
			errs = append(errs, field.Required(p.Child(f.name), ""))
		}
	}
	return errs
}

func (b *validator) allocation(a *resourceapi.AllocationResult, names requestNames, p *field.Path) field.ErrorList {
	devices := p.Child("devices")
	errs := each(b, a.Devices.Results, resourceapi.AllocationResultsMaxSize, devices.Child("results"), func(r *resourceapi.DeviceRequestAllocationResult, p *field.Path) field.ErrorList {
		errs := b.requestRef(r.Request, names, p.Child("request"))
		errs = append(errs, b.deviceName(r.Driver, r.Pool, r.Device, p)...)
		errs = append(errs, b.bindingConditions(r.BindingConditions, r.BindingFailureConditions, p)...)
		return append(errs, rules.Optional((*string)(r.ShareID), p.Child("shareID"), validateShare)...)
	})
	// The configuration of the class comes before that of the claim.
	errs = append(errs, each(b, a.Devices.Config, 2*resourceapi.DeviceConfigMaxSize, devices.Child("config"), func(c *resourceapi.DeviceAllocationConfiguration, p *field.Path) field.ErrorList {
		return b.allocatedConfig(c, names, p)
	})...)
	return append(errs, rules.OptionalPtr(a.NodeSelector, p.Child("nodeSelector"), podspec.ValidateNodeSelector)...)
}

func (b *validator) allocatedConfig(c *resourceapi.DeviceAllocationConfiguration, names requestNames, p *field.Path) field.ErrorList {
	errs := rules.RequiredOneOf(c.Source, p.Child("source"), resourceapi.AllocationConfigSourceClaim, resourceapi.AllocationConfigSourceClass)
	errs = append(errs, b.requestRefs(c.Requests, names, p.Child("requests"))...)
	return append(errs, b.configuration(&c.DeviceConfiguration, p, false)...)
}

func (b *validator) deviceName(driver, pool, name string, p *field.Path) field.ErrorList {
	errs := b.driverName(driver, p.Child("driver"))
	errs = append(errs, poolName(pool, p.Child("pool"))...)
	return append(errs, rules.Label(name, p.Child("device"))...)
}

// validateShare checks the UID of a share of a device.
func validateShare(id string, p *field.Path) field.ErrorList {
	if err := uuid.Validate(id); err != nil {
		return field.ErrorList{field.Invalid(p, id, fmt.Sprintf("error validating uid: %v", err))}
	}
	return rules.InvalidIf(nil, len(id) != 36 || id != strings.ToLower(id), p, id, "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters")
}

// bindingConditions checks the conditions that a device waits for before a Pod is bound, and those that end the wait.
func (b *validator) bindingConditions(wanted, failures []string, p *field.Path) field.ErrorList {
	at, failed := p.Child("bindingConditions"), p.Child("bindingFailureConditions")
	label := func(name *string, p *field.Path) field.ErrorList { return metavalidation.ValidateLabelName(*name, p) }
	errs := each(b, wanted, resourceapi.BindingConditionsMaxSize, at, label)
	errs = append(errs, each(b, failures, resourceapi.BindingFailureConditionsMaxSize, failed, label)...)
	key := func(name *string) string { return *name }
	errs = append(errs, repeated(wanted, key, at, "")...)
	seen, among := rules.Seen[string]{}, rules.In(wanted)
	for i, name := range rules.Until(&errs, failures) {
		errs = rules.DuplicateIf(errs, seen.Again(name), failed.Index(i), name)
		errs = rules.InvalidIf(errs, among.Has(name), failed.Index(i), name, "bindingFailureConditions must not overlap with bindingConditions")
	}
	errs = rules.InvalidIf(errs, len(wanted) == 0 && len(failures) > 0, at, wanted, "bindingConditions are required to use bindingFailureConditions")
	return rules.InvalidIf(errs, len(failures) == 0 && len(wanted) > 0, failed, failures, "bindingFailureConditions are required to use bindingConditions")
}

func (b *validator) deviceStatusOf(s *resourceapi.AllocatedDeviceStatus, devices map[device]bool, p *field.Path) field.ErrorList {
	name := statusOf(s)
	errs := b.deviceName(s.Driver, s.Pool, s.Device, p)
	errs = append(errs, rules.Optional(s.ShareID, p.Child("shareID"), validateShare)...)
	errs = rules.InvalidIf(errs, !devices[name], p, name, "must be an allocated device in the claim")
	if len(s.Conditions) > maxConditions {
		errs = append(errs, field.TooMany(p.Child("conditions"), len(s.Conditions), maxConditions))
	}
	errs = append(errs, rules.Conditions(s.Conditions, p.Child("conditions"))...)
	if s.Data != nil && len(s.Data.Raw) > 0 {
		errs = append(errs, b.jsonObject(*s.Data, p.Child("data"), false)...)
	}
	return append(errs, rules.OptionalPtr(s.NetworkData, p.Child("networkData"), b.network)...)
}

func (b *validator) network(n *resourceapi.NetworkDeviceData, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(n.InterfaceName) > maxInterfaceName {
		errs = append(errs, field.TooLong(p.Child("interfaceName"), "", maxInterfaceName))
	}
	if len(n.HardwareAddress) > maxHardware {
		errs = append(errs, field.TooLong(p.Child("hardwareAddress"), "", maxHardware))
	}
	key, check := usualAddress, func(a *string, p *field.Path) field.ErrorList {
		return validation.IsValidCIDRForLegacyField(p, *a, false, nil)
	}
	if b.later {
		key = func(text *string) string { return *text }
		check = func(a *string, p *field.Path) field.ErrorList { return validation.IsValidInterfaceAddress(p, *a) }
	}
	return append(errs, set(b, n.IPs, maxAddresses, key, p.Child("ips"), "", check)...)
}

// usualAddress returns an address with the length of its network as it is usually written, so that two ways
// of writing one are the same; "" if it is not one.
func usualAddress(text *string) string {
	ip, network, err := netutils.ParseCIDRSloppy(*text)
	if err != nil {
		return ""
	}
	ones, _ := network.Mask.Size()
	return fmt.Sprintf("%s/%d", ip, ones)
}
