package resource

import (
	"cmp"
	"context"
	"strings"
	"time"

	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// The gates of fields.
const (
	adminAccessGate  = "DRAAdminAccess"
	deviceStatusGate = "DRAResourceClaimDeviceStatus"
)

// ResourceClaim is how ResourceClaims are written: once, as their spec may not change.
func ResourceClaim(on kinds.Feature) kinds.Strategy {
	gates := gatesOf(on)
	return kinds.Typed[*resourcev1beta1.ResourceClaim]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         &kinds.WholeMeta,
		Default:      func(c *resourcev1beta1.ResourceClaim) { defaultRequests(&c.Spec) },
		Keep:         gates.drop,
		ValidateIn: func(ctx context.Context, c *resourcev1beta1.ResourceClaim) field.ErrorList {
			return newChecker(ctx).claim(&c.Spec.Devices, specPath.Child("devices"), false)
		},
		ValidateUpdateIn: func(ctx context.Context, c, old *resourcev1beta1.ResourceClaim) field.ErrorList {
			if rules.Same(c.Spec, old.Spec) {
				return nil // it was checked when it was made
			}
			check, devices := newChecker(ctx), specPath.Child("devices")
			errs := append(check.claim(&c.Spec.Devices, devices, false), rules.Immutable(c.Spec, old.Spec, specPath)...)
			return append(errs, check.claim(&c.Spec.Devices, devices, true)...)
		},
		UnconditionalUpdate: true,
		ReturnDeletedObject: true,
		// The scheduler allocates devices in the status, and drivers say there how their devices are.
		Status: &kinds.Status[*resourcev1beta1.ResourceClaim]{
			Prepare: func(c, old *resourcev1beta1.ResourceClaim) {
				metav1.ResetObjectMetaForStatus(&c.ObjectMeta, &old.ObjectMeta)
				if gates.deviceStatus || len(old.Status.Devices) > 0 {
					dropDeallocated(&c.Status, old.Status.Allocation)
				}
				gates.drop(c, old)
			},
			Validate: validateStatus,
			Rights:   claimRights(on),
		},
	}.Strategy()
}

// ResourceClaimColumns is their Table form.
var ResourceClaimColumns = columns.Of(func(c *resourcev1beta1.ResourceClaim, now time.Time) []any {
	return []any{c.Name, stateOf(c), columns.Since(c.CreationTimestamp, now)}
}, columns.Name(), columns.Text("State", "A summary of the current state (allocated, pending, reserved, etc.)."), columns.Age())

func stateOf(c *resourcev1beta1.ResourceClaim) string {
	var states []string
	if c.DeletionTimestamp != nil {
		states = append(states, "deleted")
	}
	switch {
	case c.Status.Allocation == nil && c.DeletionTimestamp == nil:
		states = append(states, "pending")
	case c.Status.Allocation == nil:
	case len(c.Status.ReservedFor) > 0:
		states = append(states, "allocated", "reserved")
	case c.DeletionTimestamp != nil:
		states = append(states, "allocated", "deallocating")
	default:
		states = append(states, "allocated")
	}
	return strings.Join(states, ",")
}

// defaultRequests fills in the number of requested devices.
func defaultRequests(s *resourcev1beta1.ResourceClaimSpec) {
	for i := range s.Devices.Requests {
		r := &s.Devices.Requests[i]
		r.AllocationMode = cmp.Or(r.AllocationMode, resourcev1beta1.DeviceAllocationModeExactCount)
		if r.AllocationMode == resourcev1beta1.DeviceAllocationModeExactCount && r.Count == 0 {
			r.Count = 1
		}
	}
}

// claimGates are the gates that fields of claims depend on.
type claimGates struct{ adminAccess, deviceStatus bool }

func gatesOf(on kinds.Feature) claimGates {
	return claimGates{adminAccess: on(adminAccessGate), deviceStatus: on(deviceStatusGate)}
}

// drop removes fields whose gates are off, unless the old claim has them.
func (g claimGates) drop(c, old *resourcev1beta1.ResourceClaim) {
	if !g.adminAccess && !asksForAdmin(&old.Spec) && !hasAdmin(old.Status.Allocation) {
		dropAdminAccess(&c.Spec)
		if a := c.Status.Allocation; a != nil {
			for i := range a.Devices.Results {
				a.Devices.Results[i].AdminAccess = nil
			}
		}
	}
	if !g.deviceStatus && len(old.Status.Devices) == 0 {
		c.Status.Devices = nil
	}
}

func asksForAdmin(s *resourcev1beta1.ResourceClaimSpec) bool {
	for i := range s.Devices.Requests {
		if s.Devices.Requests[i].AdminAccess != nil {
			return true
		}
	}
	return false
}

func hasAdmin(a *resourcev1beta1.AllocationResult) bool {
	if a == nil {
		return false
	}
	for i := range a.Devices.Results {
		if a.Devices.Results[i].AdminAccess != nil {
			return true
		}
	}
	return false
}

func dropAdminAccess(s *resourcev1beta1.ResourceClaimSpec) {
	for i := range s.Devices.Requests {
		s.Devices.Requests[i].AdminAccess = nil
	}
}

// claim checks the requests of a claim. stored says that it was accepted before.
func (c *checker) claim(d *resourcev1beta1.DeviceClaim, p *field.Path, stored bool) field.ErrorList {
	names := requestNames(d)
	at := p.Child("requests")
	errs := each(d.Requests, resourcev1beta1.DeviceRequestsMaxSize, at, func(r *resourcev1beta1.DeviceRequest, p *field.Path) field.ErrorList {
		return c.request(r, p, stored)
	})
	errs = append(errs, repeated(d.Requests, func(r *resourcev1beta1.DeviceRequest) string { return r.Name }, at, "name")...)
	errs = append(errs, each(d.Constraints, resourcev1beta1.DeviceConstraintsMaxSize, p.Child("constraints"), func(v *resourcev1beta1.DeviceConstraint, p *field.Path) field.ErrorList {
		return constraint(v, names, p)
	})...)
	return append(errs, each(d.Config, resourcev1beta1.DeviceConfigMaxSize, p.Child("config"), func(v *resourcev1beta1.DeviceClaimConfiguration, p *field.Path) field.ErrorList {
		return append(requestRefs(v.Requests, names, p.Child("requests")), configuration(&v.DeviceConfiguration, p, stored)...)
	})...)
}

func (c *checker) request(r *resourcev1beta1.DeviceRequest, p *field.Path, stored bool) field.ErrorList {
	errs := rules.Label(r.Name, p.Child("name"))
	if r.DeviceClassName == "" {
		errs = append(errs, field.Required(p.Child("deviceClassName"), ""))
	} else {
		errs = append(errs, rules.Subdomain(r.DeviceClassName, p.Child("deviceClassName"))...)
	}
	errs = append(errs, c.selectors(r.Selectors, p.Child("selectors"), stored)...)
	const all, exact = resourcev1beta1.DeviceAllocationModeAll, resourcev1beta1.DeviceAllocationModeExactCount
	switch {
	case r.AllocationMode == all && r.Count != 0:
		errs = append(errs, field.Invalid(p.Child("count"), r.Count, "must not be specified when allocationMode is 'All'"))
	case r.AllocationMode == exact && r.Count <= 0:
		errs = append(errs, field.Invalid(p.Child("count"), r.Count, "must be greater than zero"))
	case r.AllocationMode != all && r.AllocationMode != exact:
		errs = append(errs, field.NotSupported(p.Child("allocationMode"), r.AllocationMode, []resourcev1beta1.DeviceAllocationMode{all, exact}))
	}
	return errs
}

func constraint(v *resourcev1beta1.DeviceConstraint, names map[string]bool, p *field.Path) field.ErrorList {
	errs := requestRefs(v.Requests, names, p.Child("requests"))
	at := p.Child("matchAttribute")
	if v.MatchAttribute == nil {
		return append(errs, field.Required(at, ""))
	}
	errs = append(errs, qualifiedName(string(*v.MatchAttribute), at)...)
	return rules.InvalidIf(errs, *v.MatchAttribute != "" && !strings.Contains(string(*v.MatchAttribute), "/"), at, v.MatchAttribute, "must include a domain")
}

func requestNames(d *resourcev1beta1.DeviceClaim) map[string]bool {
	names := make(map[string]bool, len(d.Requests))
	for i := range d.Requests {
		names[d.Requests[i].Name] = true
	}
	return names
}

// requestRefs checks a list of names of requests.
func requestRefs(list []string, names map[string]bool, p *field.Path) field.ErrorList {
	errs := each(list, resourcev1beta1.DeviceRequestsMaxSize, p, func(name *string, p *field.Path) field.ErrorList {
		return requestRef(*name, names, p)
	})
	return append(errs, repeated(list, func(name *string) string { return *name }, p, "")...)
}

func requestRef(name string, names map[string]bool, p *field.Path) field.ErrorList {
	errs := rules.Label(name, p)
	return rules.InvalidIf(errs, !names[name], p, name, "must be the name of a request in the claim")
}
