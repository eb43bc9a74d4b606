package resource

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// resourceClaim returns the rules for ResourceClaims: their spec may not change.
func (b *validator) resourceClaim() kinds.Strategy {
	var reset []string
	if b.later {
		reset = []string{"metadata"}
	}
	s := kinds.Typed[*resourceapi.ResourceClaim]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         &kinds.WholeMeta,
		Default: func(c *resourceapi.ResourceClaim) {
			b.defaultRequests(&c.Spec)
			if a := c.Status.Allocation; a != nil {
				for i := range a.Devices.Results {
					defaultTolerations(a.Devices.Results[i].Tolerations)
				}
			}
		},
		Keep: func(c, old *resourceapi.ResourceClaim) { dropOff(b.fieldsOfRequests(), &c.Spec, &old.Spec) },
		ValidateIn: func(ctx context.Context, c *resourceapi.ResourceClaim) field.ErrorList {
			return b.checker(ctx).claim(&c.Spec.Devices, specPath.Child("devices"), false)
		},
		ValidateUpdateIn: func(ctx context.Context, c, old *resourceapi.ResourceClaim) field.ErrorList {
			check := b.checker(ctx)
			return b.immutable(c.Spec, old.Spec, resourcev1beta1.ResourceClaimSpec{}, func(stored bool) field.ErrorList {
				return check.claim(&c.Spec.Devices, specPath.Child("devices"), stored)
			})
		},
		UnconditionalUpdate: true,
		ReturnDeletedObject: true,
		// The scheduler allocates devices in the status, and drivers report the state of their devices there.
		Status: &kinds.Status[*resourceapi.ResourceClaim]{
			Prepare: func(c, old *resourceapi.ResourceClaim) {
				metav1.ResetObjectMetaForStatus(&c.ObjectMeta, &old.ObjectMeta)
				dropOff(b.fieldsOfStatuses(), c, old)
				if b.deviceStatus || len(old.Status.Devices) > 0 {
					dropDeallocated(&c.Status, old.Status.Allocation)
				}
			},
			Validate:    b.validateStatus,
			Rights:      b.rights,
			ResetFields: reset,
		},
	}.Strategy()
	if b.later {
		s.NeedsLabel = func(obj, old kinds.Object) (p *field.Path, label, detail string) {
			if old == nil {
				p = adminRequest(&obj.(*resourceapi.ResourceClaim).Spec)
			}
			return p, resourceapi.DRAAdminNamespaceLabelKey, adminDetail
		}
		s.Status.NeedsLabel = func(obj, old kinds.Object) (p *field.Path, label, detail string) {
			if adminResult(old.(*resourceapi.ResourceClaim)) == nil {
				p = adminResult(obj.(*resourceapi.ResourceClaim))
			}
			return p, resourceapi.DRAAdminNamespaceLabelKey, adminDetail
		}
	}
	return s
}

const adminDetail = "admin access to devices requires the `" + resourceapi.DRAAdminNamespaceLabelKey + ": true` label on the containing namespace"

// adminRequest returns the first request that asks for the access of an administrator, or nil.
func adminRequest(s *resourceapi.ResourceClaimSpec) *field.Path {
	for i, r := range s.Devices.Requests {
		if r.Exactly != nil && rules.Value(r.Exactly.AdminAccess) {
			return specPath.Child("devices", "requests").Index(i).Child("adminAccess")
		}
	}
	return nil
}

// adminResult returns the first device that a claim has with the access of an administrator, or nil.
func adminResult(c *resourceapi.ResourceClaim) *field.Path {
	if c.Status.Allocation == nil {
		return nil
	}
	for i, r := range c.Status.Allocation.Devices.Results {
		if rules.Value(r.AdminAccess) {
			return statusPath.Child("allocation", "devices", "results").Index(i).Child("adminAccess")
		}
	}
	return nil
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
	default:
		states = append(states, "allocated")
	}
	return strings.Join(states, ",")
}

// defaultRequests fills in the number of requested devices. Before release 1.33 each request is an exact one.
func (b *validator) defaultRequests(s *resourceapi.ResourceClaimSpec) {
	for i := range s.Devices.Requests {
		r := &s.Devices.Requests[i]
		if r.Exactly != nil {
			defaultTolerations(r.Exactly.Tolerations)
		}
		switch {
		case !b.later && r.Exactly == nil:
			r.Exactly = &resourceapi.ExactDeviceRequest{}
			fallthrough
		case r.Exactly != nil && (!b.later || r.Exactly.DeviceClassName != ""):
			defaultMode(&r.Exactly.AllocationMode, &r.Exactly.Count)
		}
		for j := range r.FirstAvailable {
			defaultMode(&r.FirstAvailable[j].AllocationMode, &r.FirstAvailable[j].Count)
			defaultTolerations(r.FirstAvailable[j].Tolerations)
		}
	}
}

func defaultTolerations(list []resourceapi.DeviceToleration) {
	for i := range list {
		list[i].Operator = cmp.Or(list[i].Operator, resourceapi.DeviceTolerationOpEqual)
	}
}

func defaultMode[T ~string](mode *T, count *int64) {
	exact := T(resourceapi.DeviceAllocationModeExactCount)
	*mode = cmp.Or(*mode, exact)
	if *mode == exact && *count == 0 {
		*count = 1
	}
}

// fieldsOfRequests returns the fields of requests that depend on gates.
func (b *validator) fieldsOfRequests() []fields[resourceapi.ResourceClaimSpec] {
	return []fields[resourceapi.ResourceClaimSpec]{
		inRequests(b.prioritized, func(r *resourceapi.DeviceRequest) bool { return len(r.FirstAvailable) > 0 }, func(r *resourceapi.DeviceRequest) { r.FirstAvailable = nil }),
		inRequests(b.taints, func(r *resourceapi.DeviceRequest) bool {
			return r.Exactly != nil && len(r.Exactly.Tolerations) > 0 ||
				slices.ContainsFunc(r.FirstAvailable, func(s resourceapi.DeviceSubRequest) bool { return len(s.Tolerations) > 0 })
		}, func(r *resourceapi.DeviceRequest) {
			if r.Exactly != nil {
				r.Exactly.Tolerations = nil
			}
			for i := range r.FirstAvailable {
				r.FirstAvailable[i].Tolerations = nil
			}
		}),
		inRequests(b.adminAccess, func(r *resourceapi.DeviceRequest) bool { return r.Exactly != nil && r.Exactly.AdminAccess != nil }, func(r *resourceapi.DeviceRequest) {
			if r.Exactly != nil {
				r.Exactly.AdminAccess = nil
			}
		}),
		{b.consumable, func(s *resourceapi.ResourceClaimSpec) bool {
			return slices.ContainsFunc(s.Devices.Constraints, func(c resourceapi.DeviceConstraint) bool { return c.DistinctAttribute != nil }) ||
				slices.ContainsFunc(s.Devices.Requests, func(r resourceapi.DeviceRequest) bool {
					return r.Exactly != nil && r.Exactly.Capacity != nil ||
						slices.ContainsFunc(r.FirstAvailable, func(s resourceapi.DeviceSubRequest) bool { return s.Capacity != nil })
				})
		}, func(s *resourceapi.ResourceClaimSpec) {
			for i := range s.Devices.Constraints {
				s.Devices.Constraints[i].DistinctAttribute = nil
			}
			for i := range s.Devices.Requests {
				r := &s.Devices.Requests[i]
				if r.Exactly != nil {
					r.Exactly.Capacity = nil
				}
				for j := range r.FirstAvailable {
					r.FirstAvailable[j].Capacity = nil
				}
			}
		}},
	}
}

// inRequests returns fields of each request.
func inRequests(on bool, used func(*resourceapi.DeviceRequest) bool, drop func(*resourceapi.DeviceRequest)) fields[resourceapi.ResourceClaimSpec] {
	return fields[resourceapi.ResourceClaimSpec]{on, func(s *resourceapi.ResourceClaimSpec) bool {
		return slices.ContainsFunc(s.Devices.Requests, func(r resourceapi.DeviceRequest) bool { return used(&r) })
	}, func(s *resourceapi.ResourceClaimSpec) {
		for i := range s.Devices.Requests {
			drop(&s.Devices.Requests[i])
		}
	}}
}

// fieldsOfStatuses returns the fields of the status of a claim that depend on gates.
func (b *validator) fieldsOfStatuses() []fields[resourceapi.ResourceClaim] {
	type result = resourceapi.DeviceRequestAllocationResult
	results := func(c *resourceapi.ResourceClaim) []result {
		if c.Status.Allocation == nil {
			return nil
		}
		return c.Status.Allocation.Devices.Results
	}
	// in are fields of the results; more means that the claim has such a field elsewhere.
	in := func(on bool, used func(result) bool, drop func(*result), more func(*resourceapi.ResourceClaim) bool) fields[resourceapi.ResourceClaim] {
		return fields[resourceapi.ResourceClaim]{on, func(c *resourceapi.ResourceClaim) bool {
			return slices.ContainsFunc(results(c), used) || more(c)
		}, func(c *resourceapi.ResourceClaim) {
			list := results(c)
			for i := range list {
				drop(&list[i])
			}
		}}
	}
	requests := b.fieldsOfRequests()
	shared := func(d resourceapi.AllocatedDeviceStatus) bool { return d.ShareID != nil }
	consumed := in(b.consumable, func(r result) bool { return r.ShareID != nil || r.ConsumedCapacity != nil }, func(r *result) { r.ShareID, r.ConsumedCapacity = nil, nil },
		func(c *resourceapi.ResourceClaim) bool {
			return requests[3].used(&c.Spec) || slices.ContainsFunc(c.Status.Devices, shared)
		})
	inResults := consumed.drop
	consumed.drop = func(c *resourceapi.ResourceClaim) {
		inResults(c)
		for i := range c.Status.Devices {
			c.Status.Devices[i].ShareID = nil
		}
	}
	return []fields[resourceapi.ResourceClaim]{
		{b.deviceStatus, func(c *resourceapi.ResourceClaim) bool { return len(c.Status.Devices) > 0 }, func(c *resourceapi.ResourceClaim) { c.Status.Devices = nil }},
		in(b.adminAccess, func(r result) bool { return r.AdminAccess != nil }, func(r *result) { r.AdminAccess = nil },
			func(c *resourceapi.ResourceClaim) bool { return requests[2].used(&c.Spec) }),
		consumed,
		in(b.binding, func(r result) bool { return r.BindingConditions != nil || r.BindingFailureConditions != nil }, func(r *result) { r.BindingConditions, r.BindingFailureConditions = nil, nil },
			func(*resourceapi.ResourceClaim) bool { return false }),
	}
}

// claim checks the requests of a claim. stored means that it was accepted before.
func (c *checker) claim(d *resourceapi.DeviceClaim, p *field.Path, stored bool) field.ErrorList {
	names := namesOf(d)
	errs := set(c.validator, d.Requests, resourceapi.DeviceRequestsMaxSize, func(r *resourceapi.DeviceRequest) string { return r.Name }, p.Child("requests"), "name", func(r *resourceapi.DeviceRequest, p *field.Path) field.ErrorList {
		return c.request(r, p, stored)
	})
	errs = append(errs, each(c.validator, d.Constraints, resourceapi.DeviceConstraintsMaxSize, p.Child("constraints"), func(v *resourceapi.DeviceConstraint, p *field.Path) field.ErrorList {
		return c.constraint(v, names, p)
	})...)
	return append(errs, each(c.validator, d.Config, resourceapi.DeviceConfigMaxSize, p.Child("config"), func(v *resourceapi.DeviceClaimConfiguration, p *field.Path) field.ErrorList {
		return append(c.requestRefs(v.Requests, names, p.Child("requests")), c.configuration(&v.DeviceConfiguration, p, stored)...)
	})...)
}

func (c *checker) request(r *resourceapi.DeviceRequest, p *field.Path, stored bool) field.ErrorList {
	const one = "exactly one of `exactly` or `firstAvailable` is required"
	errs := rules.Label(r.Name, p.Child("name"))
	alternatives := len(r.FirstAvailable) > 0
	switch {
	case alternatives && r.Exactly != nil:
		return append(errs, field.Invalid(p, nil, one+", but multiple fields are set"))
	case alternatives:
		return append(errs, set(c.validator, r.FirstAvailable, resourceapi.FirstAvailableDeviceRequestMaxSize, func(s *resourceapi.DeviceSubRequest) string { return s.Name }, p.Child("firstAvailable"), "", func(s *resourceapi.DeviceSubRequest, p *field.Path) field.ErrorList {
			errs := rules.Label(s.Name, p.Child("name"))
			return append(errs, c.exactly(&resourceapi.ExactDeviceRequest{
				DeviceClassName: s.DeviceClassName, Selectors: s.Selectors, AllocationMode: s.AllocationMode, Count: s.Count, Tolerations: s.Tolerations,
			}, p, stored)...)
		})...)
	case r.Exactly == nil:
		return append(errs, field.Required(p, one))
	}
	if c.later {
		p = p.Child("exactly")
	}
	return append(errs, c.exactly(r.Exactly, p, stored)...)
}

func (c *checker) exactly(r *resourceapi.ExactDeviceRequest, p *field.Path, stored bool) field.ErrorList {
	errs := rules.RequiredThen(r.DeviceClassName, p.Child("deviceClassName"), "", rules.Subdomain)
	errs = append(errs, c.selectors(r.Selectors, p.Child("selectors"), stored)...)
	const all, exact = resourceapi.DeviceAllocationModeAll, resourceapi.DeviceAllocationModeExactCount
	switch {
	case r.AllocationMode == all && r.Count != 0:
		errs = append(errs, field.Invalid(p.Child("count"), r.Count, "must not be specified when allocationMode is 'All'"))
	case r.AllocationMode == exact && r.Count <= 0:
		errs = append(errs, field.Invalid(p.Child("count"), r.Count, "must be greater than zero"))
	case r.AllocationMode != all && r.AllocationMode != exact:
		errs = append(errs, field.NotSupported(p.Child("allocationMode"), r.AllocationMode, []resourceapi.DeviceAllocationMode{all, exact}))
	}
	return append(errs, rules.EachPtr(r.Tolerations, p.Child("tolerations"), validateToleration)...)
}

func (c *checker) constraint(v *resourceapi.DeviceConstraint, names requestNames, p *field.Path) field.ErrorList {
	errs := c.requestRefs(v.Requests, names, p.Child("requests"))
	attribute, at := v.MatchAttribute, p.Child("matchAttribute")
	switch {
	case attribute != nil:
	case v.DistinctAttribute != nil:
		attribute, at = v.DistinctAttribute, p.Child("distinctAttribute")
	case c.consumable:
		return append(errs, field.Required(p, `exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set`))
	default:
		return append(errs, field.Required(at, ""))
	}
	errs = append(errs, c.qualifiedName(string(*attribute), at)...)
	return rules.InvalidIf(errs, (c.later || *attribute != "") && !strings.Contains(string(*attribute), "/"), at, attribute,
		c.either("a fully qualified name must be a domain and a name separated by a slash", "must include a domain"))
}

// requestNames are the names of the requests of a claim, and of the alternatives of each.
type requestNames map[string]map[string]bool

func namesOf(d *resourceapi.DeviceClaim) requestNames {
	names := make(requestNames, len(d.Requests))
	for i := range d.Requests {
		r := &d.Requests[i]
		names[r.Name] = make(map[string]bool, len(r.FirstAvailable))
		for j := range r.FirstAvailable {
			names[r.Name][r.FirstAvailable[j].Name] = true
		}
	}
	return names
}

// requestRefs checks a list of names of requests.
func (b *validator) requestRefs(list []string, names requestNames, p *field.Path) field.ErrorList {
	return set(b, list, resourceapi.DeviceRequestsMaxSize, func(name *string) string { return *name }, p, "", func(name *string, p *field.Path) field.ErrorList {
		return b.requestRef(*name, names, p)
	})
}

// requestRef checks a name of a request, which may have the name of a subrequest after a slash.
func (b *validator) requestRef(name string, names requestNames, p *field.Path) field.ErrorList {
	request, alternative, has := strings.Cut(name, "/")
	if !b.later {
		errs := rules.Label(name, p)
		return rules.InvalidIf(errs, names[name] == nil, p, name, "must be the name of a request in the claim")
	}
	const unknown = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
	if strings.Contains(alternative, "/") {
		return field.ErrorList{field.Invalid(p, name, unknown)}
	}
	errs := rules.Label(request, p)
	if has {
		errs = append(errs, rules.Label(alternative, p)...)
	}
	return rules.InvalidIf(errs, names[request] == nil || has && !names[request][alternative], p, name, unknown)
}
