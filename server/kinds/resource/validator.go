package resource

import (
	"reflect"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// Strategies has the rules for the kinds. Those that have a version v1beta1 are stored in it, and the rules
// see them in v1.
type Strategies struct {
	Class, Claim, Template, Slice, TaintRule, PoolRequest kinds.Strategy
}

// Of makes the strategies of a server of a release with these gates.
func Of(v release.Version, on kinds.Feature) Strategies {
	later := on.Has(release.SharedDevices)
	b := &validator{gates: gatesOf(on), later: later, rights: claimRights(on)}
	b.partitions = b.partitions || !later // no object has the fields, but see bare
	b.environment = sync.OnceValues(func() (*selectors, error) { return newSelectors(v, later, b.consumable, b.lists) })
	return Strategies{
		Class: stored[resourceapi.DeviceClass](b, b.deviceClass()), Claim: stored[resourceapi.ResourceClaim](b, b.resourceClaim()),
		Template: stored[resourceapi.ResourceClaimTemplate](b, b.resourceClaimTemplate()), Slice: stored[resourceapi.ResourceSlice](b, b.resourceSlice()),
		TaintRule: taintRule(), PoolRequest: poolRequest,
	}
}

// validator holds the inputs of the rules.
type validator struct {
	gates
	later       bool                       // the rules are those from release 1.33 on
	environment func() (*selectors, error) // of expressions that select devices
	rights      func(c, old *resourceapi.ResourceClaim, verb, node string) []kinds.Right
}

// gates are the feature gates of fields.
type gates struct {
	adminAccess, deviceStatus, prioritized, taints, partitions, consumable, binding, extended, lists, allocatable bool
}

func gatesOf(on kinds.Feature) gates {
	return gates{
		adminAccess: on("DRAAdminAccess"), deviceStatus: on("DRAResourceClaimDeviceStatus"), prioritized: on("DRAPrioritizedList"),
		taints: on("DRADeviceTaints"), partitions: on("DRAPartitionableDevices"), consumable: on("DRAConsumableCapacity"),
		binding: on("DRADeviceBindingConditions"), extended: on("DRAExtendedResource"), lists: on("DRAListTypeAttributes"),
		allocatable: on("DRANodeAllocatableResources"),
	}
}

// either returns a text from release 1.33 on, or the earlier one.
func (b *validator) either(later, before string) string {
	if b.later {
		return later
	}
	return before
}

// missing returns the error for a part of a name that is empty.
func (b *validator) missing(p *field.Path, detail string) *field.Error {
	if b.later {
		return field.Invalid(p, "", detail)
	}
	return field.Required(p, detail)
}

// immutable refuses changes of a spec. Before release 1.33 a changed spec is also checked twice, as a new one
// and as a stored one, and errors show it in the form of that time.
func (b *validator) immutable(spec, old, before any, check func(stored bool) field.ErrorList) field.ErrorList {
	if rules.Same(spec, old) {
		return nil // it was checked when it was made
	}
	if b.later {
		return rules.Immutable(spec, old, specPath)
	}
	shown := reflect.New(reflect.TypeOf(before)).Elem()
	convert(Different, shown, reflect.ValueOf(spec))
	errs := append(check(false), field.Invalid(specPath, rules.Shown(shown.Interface()), apivalidation.FieldImmutableErrorMsg))
	return append(errs, check(true)...)
}

// fields are fields that depend on a gate: unless it is on or the old object has one of them, they go.
type fields[T any] struct {
	on   bool
	used func(*T) bool
	drop func(*T)
}

func dropOff[T any](list []fields[T], obj, old *T) {
	for _, f := range list {
		if !f.on && f.used(obj) && !f.used(old) {
			f.drop(obj)
		}
	}
}
