package resource

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// poolRequest has the rules for ResourcePoolStatusRequests: a client asks for the state of a driver's pools,
// and a controller answers once.
var poolRequest = kinds.Typed[*resourcev1alpha3.ResourcePoolStatusRequest]{
	ValidateName: apivalidation.NameIsDNSSubdomain,
	Default: func(r *resourcev1alpha3.ResourcePoolStatusRequest) {
		rules.DefaultTo(&r.Spec.Limit, resourcev1alpha3.ResourcePoolStatusRequestLimitDefault)
	},
	Validate: func(r *resourcev1alpha3.ResourcePoolStatusRequest) field.ErrorList {
		errs := driverOfPools(r.Spec.Driver, specPath.Child("driver"))
		errs = append(errs, rules.Optional(r.Spec.PoolName, specPath.Child("poolName"), segments)...)
		return append(errs, within(r.Spec.Limit, 1, 1000, specPath.Child("limit"))...)
	},
	ValidateUpdate: func(r, old *resourcev1alpha3.ResourcePoolStatusRequest) field.ErrorList {
		return rules.InvalidIf[any](nil, !rules.Same(r.Spec, old.Spec), specPath, nil, apivalidation.FieldImmutableErrorMsg)
	},
	ReturnDeletedObject: true,
	Status: &kinds.Status[*resourcev1alpha3.ResourcePoolStatusRequest]{
		Prepare: func(r, old *resourcev1alpha3.ResourcePoolStatusRequest) {
			metav1.ResetObjectMetaForStatus(&r.ObjectMeta, &old.ObjectMeta)
		},
		Validate: func(r, old *resourcev1alpha3.ResourcePoolStatusRequest) field.ErrorList {
			switch {
			case old.Status != nil:
				return rules.Immutable(r.Status, old.Status, statusPath)
			case r.Status == nil:
				return nil
			}
			errs := rules.Conditions(r.Status.Conditions, statusPath.Child("conditions"))
			return append(errs, validatePools(r.Status)...)
		},
		ResetFields: []string{"metadata"},
	},
}.Strategy()

func validatePools(s *resourcev1alpha3.ResourcePoolStatusRequestStatus) field.ErrorList {
	var errs field.ErrorList
	if s.PoolCount == nil {
		errs = append(errs, field.Required(statusPath.Child("poolCount"), ""))
	}
	errs = append(errs, within(s.PoolCount, 0, -1, statusPath.Child("poolCount"))...)
	if pools := statusPath.Child("pools"); len(s.Pools) > 1000 {
		errs = append(errs, field.TooMany(pools, len(s.Pools), 1000))
	} else {
		errs = append(errs, rules.EachPtr(s.Pools, pools, validatePool)...)
	}
	conditions := statusPath.Child("conditions")
	if len(s.Conditions) > 10 {
		return append(errs, field.TooMany(conditions, len(s.Conditions), 10))
	}
	return append(errs, validate.Unique(context.Background(), operation.Operation{}, conditions, s.Conditions, nil, func(a, b metav1.Condition) bool { return a.Type == b.Type })...)
}

func validatePool(s *resourcev1alpha3.PoolStatus, p *field.Path) field.ErrorList {
	errs := driverOfPools(s.Driver, p.Child("driver"))
	errs = append(errs, rules.RequiredThen(s.PoolName, p.Child("poolName"), "", segments)...)
	errs = rules.RequiredIf(errs, s.Generation == 0, p.Child("generation"), "")
	errs = append(errs, within(&s.Generation, 0, -1, p.Child("generation"))...)
	errs = append(errs, within(s.ResourceSliceCount, 1, -1, p.Child("resourceSliceCount"))...)
	for _, count := range []struct {
		name string
		n    *int32
	}{{"totalDevices", s.TotalDevices}, {"allocatedDevices", s.AllocatedDevices}, {"availableDevices", s.AvailableDevices}, {"unavailableDevices", s.UnavailableDevices}} {
		errs = append(errs, within(count.n, 0, -1, p.Child(count.name))...)
	}
	errs = append(errs, rules.Optional(s.NodeName, p.Child("nodeName"), rules.Subdomain)...)
	if v := s.ValidationError; v != nil && len(*v) > 256 {
		errs = append(errs, field.TooLong(p.Child("validationError"), "", 256))
	}
	return errs
}

func driverOfPools(name string, p *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	return rules.Messages(p, name, content.IsDNS1123SubdomainCaseless(name))
}

// segments checks the parts of the name of a pool.
func segments(name string, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(name) > resourceapi.PoolNameMaxLength {
		errs = append(errs, field.TooLong(p, "", resourceapi.PoolNameMaxLength))
	}
	if len(name) > 2*resourceapi.PoolNameMaxLength { // each error about a segment would show the whole name
		return errs
	}
	for i, part := range rules.Until(&errs, strings.Split(name, "/")) {
		if part == "" {
			errs = append(errs, field.Invalid(p, name, fmt.Sprintf("segment %d: must not be empty", i)))
			continue
		}
		for _, message := range validation.IsDNS1123Subdomain(part) {
			errs = append(errs, field.Invalid(p, part, fmt.Sprintf("segment %d: %s", i, message)))
		}
	}
	return errs
}

// within checks a number that may be absent; a negative most is no bound.
func within[T int32 | int64](n *T, least, most T, p *field.Path) field.ErrorList {
	if n == nil {
		return nil
	}
	errs := rules.InvalidIf(nil, *n < least, p, *n, fmt.Sprintf("must be greater than or equal to %d", least))
	return rules.InvalidIf(errs, most >= 0 && *n > most, p, *n, fmt.Sprintf("must be less than or equal to %d", most))
}

// PoolRequestColumns is their Table form.
var PoolRequestColumns = columns.Of(func(r *resourcev1alpha3.ResourcePoolStatusRequest, now time.Time) []any {
	state, completed, pools := "Pending", "<none>", int32(0)
	total, available, allocated, unavailable, faults := "-", "-", "-", "-", "-"
	if s := r.Status; s != nil {
		pools = rules.Value(s.PoolCount)
	conditions:
		for _, c := range s.Conditions {
			switch {
			case c.Status != metav1.ConditionTrue:
			case c.Type == resourcev1alpha3.ResourcePoolStatusRequestConditionComplete:
				state, completed = "Complete", columns.Since(c.LastTransitionTime, now)
				if int(pools) > len(s.Pools) {
					state = fmt.Sprintf("Complete (%d/%d pools)", len(s.Pools), pools)
				}
				break conditions
			case c.Type == resourcev1alpha3.ResourcePoolStatusRequestConditionFailed:
				state = "Failed"
				break conditions
			}
		}
		if state != "Failed" {
			var sums [5]int
			for _, p := range s.Pools {
				for i, n := range []*int32{p.TotalDevices, p.AvailableDevices, p.AllocatedDevices, p.UnavailableDevices} {
					sums[i] += int(rules.Value(n))
				}
				if p.ValidationError != nil {
					sums[4]++
				}
			}
			for i, text := range []*string{&total, &available, &allocated, &unavailable, &faults} {
				*text = strconv.Itoa(sums[i])
			}
		}
	}
	return []any{r.Name, r.Spec.Driver, total, available, allocated, unavailable, faults, int64(pools), state, completed}
},
	columns.Name(),
	columns.Text("Driver", "The driver to query pools for."),
	columns.Text("Total", "Total number of devices across all pools."),
	columns.Text("Available", "Number of available devices across all pools."),
	columns.Text("Allocated", "Number of allocated devices across all pools."),
	columns.Text("Unavailable", "Number of unavailable devices across all pools."),
	columns.Text("Errors", "Number of pools with validation errors."),
	columns.Number("Pools", "Total number of matching pools."),
	columns.Text("Status", "Processing status."),
	columns.Text("Completed", "Time since the observation completed."),
)
