package resource

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

func defaultDevice(d *resourceapi.Device) {
	for i := range d.Taints {
		defaultTaint(&d.Taints[i])
	}
	mappings := mappingsOf(d)
	for name, m := range mappings.all() {
		if m.AllocationMultiplier == nil {
			m.AllocationMultiplier = new(apiresource.MustParse("1"))
			mappings.set(name, m)
		}
	}
}

// hasLists reports whether an attribute of a device is a list.
func hasLists(d *resourceapi.Device) bool {
	for _, a := range d.Attributes {
		if a.BoolValues != nil || a.IntValues != nil || a.StringValues != nil || a.VersionValues != nil {
			return true
		}
	}
	return false
}

func (b *validator) device(d, old *resourceapi.Device, chosen bool, p *field.Path) field.ErrorList {
	errs := rules.Label(d.Name, p.Child("name"))
	count := func() {
		const most = resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice
		n := len(d.Attributes) + len(d.Capacity)
		errs = rules.InvalidIf(errs, n > most, p, n, fmt.Sprintf("the total number of attributes and capacities must not exceed %d", most))
	}
	if b.later {
		count()
		const most = resourceapi.ResourceSliceMaxAttributeValuesPerDevice
		n := valuesOf(d)
		errs = rules.InvalidIf(errs, n > most, p, n, fmt.Sprintf("the total number of attribute values must not exceed %d", most))
	} else {
		p = p.Child("basic")
		if d.NodeName != nil { // see bare
			return append(errs, field.Required(p, ""))
		}
	}
	errs = append(errs, members(b, d.Attributes, p.Child("attributes"), b.qualifiedNameOf, b.attribute)...)
	errs = append(errs, members(b, d.Capacity, p.Child("capacity"), b.qualifiedNameOf, func(c *resourceapi.DeviceCapacity, p *field.Path) field.ErrorList {
		p = p.Child("requestPolicy")
		switch {
		case c.RequestPolicy == nil:
			return nil
		case !rules.Value(d.AllowMultipleAllocations):
			return field.ErrorList{field.Forbidden(p, "allowMultipleAllocations must be true")}
		}
		return requestPolicy(c.Value, c.RequestPolicy, p)
	})...)
	if !b.later {
		count()
		return errs
	}
	if old == nil || !rules.Same(old.Taints, d.Taints) {
		errs = append(errs, each(b, d.Taints, resourceapi.DeviceTaintsMaxLength, p.Child("taints"), func(t *resourceapi.DeviceTaint, p *field.Path) field.ErrorList {
			return validateTaint(t, "", p)
		})...)
	}
	errs = append(errs, set(b, d.ConsumesCounters, resourceapi.ResourceSliceMaxDeviceCounterConsumptionsPerDevice, func(c *resourceapi.DeviceCounterConsumption) string { return c.CounterSet }, p.Child("consumesCounters"), "", func(c *resourceapi.DeviceCounterConsumption, p *field.Path) field.ErrorList {
		return b.counters(c.CounterSet, c.Counters, resourceapi.ResourceSliceMaxCountersPerDeviceCounterConsumption, p, "counterSet")
	})...)
	if chosen {
		const one = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
		n := nodes{path: p, errs: errs}
		n.name(d.NodeName, "must not be empty")
		n.selector(d.NodeSelector, false)
		n.flag(d.AllNodes, "allNodes")
		errs = n.one(one, one)
	} else if d.NodeName != nil || d.NodeSelector != nil || d.AllNodes != nil {
		errs = append(errs, field.Invalid(p, nil, "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"))
	}
	errs = append(errs, b.bindingConditions(d.BindingConditions, d.BindingFailureConditions, p)...)
	return append(errs, nodeResources(d, p.Child("nodeAllocatableResourceMappings"))...)
}

// valuesOf counts the values of the attributes of a device, of which a list has several.
func valuesOf(d *resourceapi.Device) int {
	n := 0
	for _, a := range d.Attributes {
		n += max(1, len(a.BoolValues)+len(a.IntValues)+len(a.StringValues)+len(a.VersionValues))
	}
	return n
}

func (b *validator) qualifiedNameOf(name resourceapi.QualifiedName, p *field.Path) field.ErrorList {
	return b.qualifiedName(string(name), p)
}

// members checks a map in the order of its keys. Errors of keys name the map, and before release 1.33 the key.
func members[K ~string, V any](b *validator, m map[K]V, p *field.Path, key func(K, *field.Path) field.ErrorList, value func(*V, *field.Path) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	for _, name := range rules.Until(&errs, slices.Sorted(maps.Keys(m))) {
		at, v := p.Key(shortened(string(name))), m[name]
		if b.later {
			errs = append(errs, key(name, p)...)
		} else {
			errs = append(errs, key(name, at)...)
		}
		errs = append(errs, value(&v, at)...)
	}
	return errs
}

// counters checks a set of counters.
func (b *validator) counters(name string, counters map[string]resourceapi.Counter, most int, p *field.Path, child string) field.ErrorList {
	errs := rules.RequiredThen(name, p.Child(child), "", rules.Label)
	switch p := p.Child("counters"); {
	case len(counters) == 0:
		return append(errs, field.Required(p, ""))
	case len(counters) > most:
		return append(errs, field.TooMany(p, len(counters), most))
	default:
		return append(errs, members(b, counters, p, rules.Label, func(*resourceapi.Counter, *field.Path) field.ErrorList { return nil })...)
	}
}

// nodeResources checks which resources of its node a device takes.
func nodeResources(d *resourceapi.Device, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	mappings := mappingsOf(d).all()
	for _, name := range rules.Until(&errs, slices.Sorted(maps.Keys(mappings))) {
		mapping, at := mappings[name], p.Key(string(name))
		errs = rules.InvalidIf(errs, !podspec.IsNativeResource(name), at, name, "must be a node allocatable resource name")
		if q := mapping.AllocationMultiplier; q != nil {
			errs = rules.InvalidIf(errs, q.Sign() <= 0, at.Child("allocationMultiplier"), q.String(), "must be positive")
		}
		key := mapping.CapacityKey
		switch {
		case key == nil && mapping.AllocationMultiplier == nil:
			errs = append(errs, field.Invalid(at, "", "at least one of allocationMultiplier or capacityKey must be set"))
		case key == nil:
		case *key == "":
			errs = append(errs, field.Invalid(at.Child("capacityKey"), "", "capacityKey must not be an empty string"))
		default:
			if _, has := d.Capacity[*key]; !has {
				errs = append(errs, field.NotFound(at.Child("capacityKey"), *key))
			}
		}
	}
	return errs
}

// shortened cuts the middle out of a name that is longer than names may be.
func shortened(name string) string {
	const most, gap = resourceapi.DeviceMaxDomainLength + 1 + resourceapi.DeviceMaxIDLength, "..."
	if len(name) <= most {
		return name
	}
	rest := most - len(gap)
	return name[:(rest+1)/2] + gap + name[len(name)-rest/2:]
}

// versions is the grammar of semantic versions.
var versions = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
	`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)

func (b *validator) attribute(a *resourceapi.DeviceAttribute, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	values := 0
	for _, given := range []bool{a.BoolValue != nil, a.IntValue != nil, a.StringValue != nil, a.VersionValue != nil} {
		if given {
			values++
		}
	}
	if a.StringValue != nil {
		errs = append(errs, stringValue(a.StringValue, p.Child("string"))...)
	}
	if a.VersionValue != nil {
		errs = append(errs, versionValue(a.VersionValue, p.Child("version"))...)
	}
	// A list is a value too, which must not be empty.
	list := func(name string, given bool, n int, shown any) {
		if given {
			values++
			errs = rules.InvalidIf(errs, n == 0, p.Child(name), shown, "must not be empty if specified")
		}
	}
	list("bools", a.BoolValues != nil, len(a.BoolValues), a.BoolValues)
	list("ints", a.IntValues != nil, len(a.IntValues), a.IntValues)
	list("strings", a.StringValues != nil, len(a.StringValues), a.StringValues)
	errs = append(errs, rules.EachPtr(a.StringValues, p.Child("strings"), stringValue)...)
	list("versions", a.VersionValues != nil, len(a.VersionValues), a.VersionValues)
	errs = append(errs, rules.EachPtr(a.VersionValues, p.Child("versions"), versionValue)...)
	const one = "exactly one value must be specified"
	switch {
	case values == 1:
		return errs
	case values == 0:
		return append(errs, b.missing(p, one))
	}
	return append(errs, field.Invalid(p, rules.Shown(*a), one))
}

func stringValue(v *string, p *field.Path) field.ErrorList {
	if len(*v) > resourceapi.DeviceAttributeMaxValueLength {
		return field.ErrorList{field.TooLong(p, "", resourceapi.DeviceAttributeMaxValueLength)}
	}
	return nil
}

func versionValue(v *string, p *field.Path) field.ErrorList {
	errs := rules.InvalidIf(nil, !versions.MatchString(*v), p, v, "must be a string compatible with semver.org spec 2.0.0")
	return append(errs, stringValue(v, p)...)
}
