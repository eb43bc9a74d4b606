package resource

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// resourceSlice is how ResourceSlices are written.
func (b *rulebook) resourceSlice() kinds.Strategy {
	gated := b.fieldsOfDevices()
	return kinds.Typed[*resourceapi.ResourceSlice]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Default: func(s *resourceapi.ResourceSlice) {
			for i := range s.Spec.Devices {
				defaultDevice(&s.Spec.Devices[i])
			}
		},
		Keep:     func(s, old *resourceapi.ResourceSlice) { dropOff(gated, &s.Spec, &old.Spec) },
		Counted:  func(s *resourceapi.ResourceSlice) []any { return []any{s.Spec} },
		Validate: func(s *resourceapi.ResourceSlice) field.ErrorList { return b.validateSlice(&s.Spec, nil) },
		ValidateUpdate: func(s, old *resourceapi.ResourceSlice) field.ErrorList {
			return b.validateSlice(&s.Spec, &old.Spec)
		},
		Warnings: func(s, _ *resourceapi.ResourceSlice) []string {
			if driver := s.Spec.Driver; b.later && driver != strings.ToLower(driver) {
				return []string{fmt.Sprintf("spec.driver: driver names should be lowercase; %q contains uppercase characters", driver)}
			}
			return nil
		},
		UnconditionalUpdate: true,
		ReturnDeletedObject: true,
	}.Strategy()
}

func defaultDevice(d *resourceapi.Device) {
	for i := range d.Taints {
		defaultTaint(&d.Taints[i])
	}
	mappings := mappingsOf(d)
	for name, m := range mappings.all() {
		if m.AllocationMultiplier == nil {
			one := apiresource.MustParse("1")
			m.AllocationMultiplier = &one
			mappings.set(name, m)
		}
	}
}

// fieldsOfDevices are the fields of slices that depend on gates.
func (b *rulebook) fieldsOfDevices() []fields[resourceapi.ResourceSliceSpec] {
	// in are fields of each device.
	in := func(on bool, used func(*resourceapi.Device) bool, drop func(*resourceapi.Device)) fields[resourceapi.ResourceSliceSpec] {
		return fields[resourceapi.ResourceSliceSpec]{on, func(s *resourceapi.ResourceSliceSpec) bool {
			return slices.ContainsFunc(s.Devices, func(d resourceapi.Device) bool { return used(&d) })
		}, func(s *resourceapi.ResourceSliceSpec) {
			for i := range s.Devices {
				drop(&s.Devices[i])
			}
		}}
	}
	partitions := in(b.partitions, func(d *resourceapi.Device) bool {
		return len(d.ConsumesCounters) > 0 || d.NodeName != nil || d.NodeSelector != nil || d.AllNodes != nil
	}, func(d *resourceapi.Device) {
		d.ConsumesCounters, d.NodeName, d.NodeSelector, d.AllNodes = nil, nil, nil, nil
	})
	inDevices, ofDevices := partitions.used, partitions.drop
	partitions.used = func(s *resourceapi.ResourceSliceSpec) bool {
		return len(s.SharedCounters) > 0 || s.PerDeviceNodeSelection != nil || inDevices(s)
	}
	partitions.drop = func(s *resourceapi.ResourceSliceSpec) {
		s.SharedCounters, s.PerDeviceNodeSelection = nil, nil
		ofDevices(s)
	}
	return []fields[resourceapi.ResourceSliceSpec]{
		in(b.taints, func(d *resourceapi.Device) bool { return len(d.Taints) > 0 }, func(d *resourceapi.Device) { d.Taints = nil }),
		partitions,
		in(b.binding && b.deviceStatus, func(d *resourceapi.Device) bool {
			return len(d.BindingConditions) > 0 || len(d.BindingFailureConditions) > 0 || d.BindsToNode != nil
		}, func(d *resourceapi.Device) {
			d.BindingConditions, d.BindingFailureConditions, d.BindsToNode = nil, nil, nil
		}),
		in(b.consumable, func(d *resourceapi.Device) bool {
			for _, c := range d.Capacity {
				if c.RequestPolicy != nil {
					return true
				}
			}
			return d.AllowMultipleAllocations != nil
		}, func(d *resourceapi.Device) {
			d.AllowMultipleAllocations = nil
			for name, c := range d.Capacity {
				c.RequestPolicy = nil
				d.Capacity[name] = c
			}
		}),
		in(b.allocatable, func(d *resourceapi.Device) bool { return !mappingsOf(d).empty() }, func(d *resourceapi.Device) { mappingsOf(d).drop() }),
		in(b.lists, hasLists, func(d *resourceapi.Device) {
			for name, a := range d.Attributes {
				a.BoolValues, a.IntValues, a.StringValues, a.VersionValues = nil, nil, nil, nil
				d.Attributes[name] = a
			}
		}),
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

// ResourceSliceFields are what they are selected by.
var ResourceSliceFields = []kinds.SelectableField{
	{Label: resourceapi.ResourceSliceSelectorNodeName, Path: []string{"spec", "nodeName"}},
	{Label: resourceapi.ResourceSliceSelectorDriver, Path: []string{"spec", "driver"}},
}

// ResourceSliceColumns is their Table form.
var ResourceSliceColumns = columns.Of(
	func(s *resourcev1beta1.ResourceSlice, now time.Time) []any {
		return []any{s.Name, s.Spec.NodeName, s.Spec.Driver, s.Spec.Pool.Name, columns.Since(s.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Text("Node", resourceapi.ResourceSliceSpec{}.SwaggerDoc()["nodeName"]),
	columns.Text("Driver", resourceapi.ResourceSliceSpec{}.SwaggerDoc()["driver"]),
	columns.Text("Pool", resourceapi.ResourcePool{}.SwaggerDoc()["name"]),
	columns.Age(),
)

// validateSlice checks a slice that replaces old, which is nil for a new one.
func (b *rulebook) validateSlice(s, old *resourceapi.ResourceSliceSpec) field.ErrorList {
	pool := specPath.Child("pool")
	errs := b.driverName(s.Driver, specPath.Child("driver"))
	errs = append(errs, poolName(s.Pool.Name, pool.Child("name"))...)
	errs = rules.InvalidIf(errs, s.Pool.ResourceSliceCount <= 0, pool.Child("resourceSliceCount"), s.Pool.ResourceSliceCount, "must be greater than zero")
	errs = rules.InvalidIf(errs, s.Pool.Generation < 0, pool.Child("generation"), s.Pool.Generation, "must be greater than or equal to zero")
	if old != nil {
		errs = append(errs, rules.Immutable(s.Pool.Name, old.Pool.Name, pool.Child("name"))...)
		errs = append(errs, rules.Immutable(s.Driver, old.Driver, specPath.Child("driver"))...)
		if name, was := rules.Value(s.NodeName), rules.Value(old.NodeName); b.later {
			errs = append(errs, rules.Immutable(s.NodeName, old.NodeName, specPath.Child("nodeName"))...)
		} else {
			errs = append(errs, rules.Immutable(name, was, specPath.Child("nodeName"))...)
		}
	}
	n := nodes{path: specPath, errs: errs}
	n.name(s.NodeName, "must be either unset or set to a non-empty string")
	n.selector(s.NodeSelector, true)
	n.flag(s.AllNodes, "allNodes")
	n.flag(s.PerDeviceNodeSelection, "perDeviceNodeSelection")
	if b.later {
		const one = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
		errs = n.one(one, one+", but multiple fields are set")
	} else {
		const one = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required"
		errs = n.oneAlone(one)
	}
	errs = rules.InvalidIf(errs, s.SharedCounters != nil && s.Devices != nil, specPath, "", "only one of `sharedCounters` or `devices` is allowed")
	most := resourceapi.ResourceSliceMaxDevices
	was := map[string]*resourceapi.Device{}
	if old != nil {
		for i := len(old.Devices) - 1; i >= 0; i-- {
			was[old.Devices[i].Name] = &old.Devices[i]
		}
	}
	for i := range s.Devices {
		if d := &s.Devices[i]; len(d.Taints) > 0 || len(d.ConsumesCounters) > 0 || hasLists(d) {
			most = resourceapi.ResourceSliceMaxDevicesWithAdvancedFeatures
		}
	}
	errs = append(errs, set(b, s.Devices, most, func(d *resourceapi.Device) string { return d.Name }, specPath.Child("devices"), "name", func(d *resourceapi.Device, p *field.Path) field.ErrorList {
		return b.device(d, was[d.Name], rules.Value(s.PerDeviceNodeSelection), p)
	})...)
	return append(errs, set(b, s.SharedCounters, resourceapi.ResourceSliceMaxCounterSets, func(c *resourceapi.CounterSet) string { return c.Name }, specPath.Child("sharedCounters"), "", func(c *resourceapi.CounterSet, p *field.Path) field.ErrorList {
		return b.counters(c.Name, c.Counters, resourceapi.ResourceSliceMaxCountersPerCounterSet, p, "name")
	})...)
}

// nodes checks which nodes have a slice or a device: one field of several says so.
type nodes struct {
	path *field.Path
	set  []string
	errs field.ErrorList
}

func (n *nodes) add(name string) { n.set = append(n.set, "`"+name+"`") }

func (n *nodes) name(name *string, empty string) {
	switch p := n.path.Child("nodeName"); {
	case name == nil:
	case *name == "":
		n.errs = append(n.errs, field.Invalid(p, *name, empty))
	default:
		n.add("nodeName")
		n.errs = append(n.errs, rules.Subdomain(*name, p)...)
	}
}

func (n *nodes) selector(s *corev1.NodeSelector, single bool) {
	if s == nil {
		return
	}
	n.add("nodeSelector")
	p := n.path.Child("nodeSelector")
	n.errs = append(n.errs, podspec.ValidateNodeSelector(s, p)...)
	n.errs = rules.InvalidIf(n.errs, single && len(s.NodeSelectorTerms) != 1, p.Child("nodeSelectorTerms"), rules.Shown(s.NodeSelectorTerms), "must have exactly one node selector term")
}

func (n *nodes) flag(set *bool, name string) {
	switch {
	case set == nil:
	case *set:
		n.add(name)
	default:
		n.errs = append(n.errs, field.Invalid(n.path.Child(name), *set, "must be either unset or set to true"))
	}
}

func (n *nodes) one(none, several string) field.ErrorList {
	switch len(n.set) {
	case 0:
		return append(n.errs, field.Required(n.path, none))
	case 1:
		return n.errs
	}
	return append(n.errs, field.Invalid(n.path, "{"+strings.Join(n.set, ", ")+"}", several))
}

// oneAlone is one without the fields that are set, as before release 1.33.
func (n *nodes) oneAlone(text string) field.ErrorList {
	switch len(n.set) {
	case 0:
		return append(n.errs, field.Required(n.path, text))
	case 1:
		return n.errs
	}
	return append(n.errs, field.Invalid(n.path, nil, text))
}

func (b *rulebook) device(d, old *resourceapi.Device, chosen bool, p *field.Path) field.ErrorList {
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

func (b *rulebook) qualifiedNameOf(name resourceapi.QualifiedName, p *field.Path) field.ErrorList {
	return b.qualifiedName(string(name), p)
}

// members checks a map in the order of its keys. Errors of keys name the map, and before release 1.33 the key.
func members[K ~string, V any](b *rulebook, m map[K]V, p *field.Path, key func(K, *field.Path) field.ErrorList, value func(*V, *field.Path) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(m)) {
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
func (b *rulebook) counters(name string, counters map[string]resourceapi.Counter, most int, p *field.Path, child string) field.ErrorList {
	var errs field.ErrorList
	if name == "" {
		errs = append(errs, field.Required(p.Child(child), ""))
	} else {
		errs = append(errs, rules.Label(name, p.Child(child))...)
	}
	switch p := p.Child("counters"); {
	case len(counters) == 0:
		return append(errs, field.Required(p, ""))
	case len(counters) > most:
		return append(errs, field.TooMany(p, len(counters), most))
	default:
		return append(errs, members(b, counters, p, rules.Label, func(*resourceapi.Counter, *field.Path) field.ErrorList { return nil })...)
	}
}

// requestPolicy checks how much of a capacity one claim may have.
func requestPolicy(capacity apiresource.Quantity, r *resourceapi.CapacityRequestPolicy, p *field.Path) field.ErrorList {
	switch values := len(r.ValidValues) > 0; {
	case values && r.ValidRange != nil:
		return field.ErrorList{field.Forbidden(p, `exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time`)}
	case values && r.Default == nil:
		return field.ErrorList{field.Required(p.Child("default"), "required when validValues is defined")}
	case values:
		return validValues(capacity, *r.Default, r.ValidValues, p.Child("validValues"))
	case r.ValidRange != nil && r.Default == nil:
		return field.ErrorList{field.Required(p.Child("default"), "required when validRange is defined")}
	case r.ValidRange != nil:
		return validRange(capacity, *r.Default, r.ValidRange, p.Child("validRange"))
	}
	return nil
}

func validValues(capacity, usual apiresource.Quantity, values []apiresource.Quantity, p *field.Path) field.ErrorList {
	const most = 10 // CapacityRequestPolicyDiscreteMaxOptions of the internal types
	var errs field.ErrorList
	for i := 1; i < len(values); i++ {
		errs = rules.InvalidIf(errs, values[i-1].Cmp(values[i]) > 0, p.Index(i), values[i].String(), "values must be sorted in ascending order")
	}
	found := false
	if len(values) > most {
		errs = append(errs, field.TooMany(p, len(values), most))
	} else {
		for i := range values {
			errs = rules.InvalidIf(errs, values[i].Cmp(capacity) > 0, p.Index(i), values[i].String(), "option is larger than capacity value: "+capacity.String())
			found = found || values[i].Cmp(usual) == 0
		}
		errs = append(errs, repeated(values, func(q *apiresource.Quantity) string { return strconv.FormatInt(q.Value(), 10) }, p, "")...)
	}
	return rules.InvalidIf(errs, !found, p, usual.String(), "default value is not valid according to the requestPolicy")
}

func validRange(capacity, usual apiresource.Quantity, r *resourceapi.CapacityRequestPolicyRange, p *field.Path) field.ErrorList {
	least, most, step := p.Child("min"), p.Child("max"), p.Child("step")
	if r.Min == nil {
		return field.ErrorList{field.Required(least, "required when validRange is defined")}
	}
	var errs field.ErrorList
	more := func(a, b apiresource.Quantity, p *field.Path, shown apiresource.Quantity, format string, than apiresource.Quantity) {
		errs = rules.InvalidIf(errs, a.Cmp(b) > 0, p, shown.String(), fmt.Sprintf(format, than.String()))
	}
	more(*r.Min, capacity, least, *r.Min, "min is larger than capacity value: %s", capacity)
	more(*r.Min, usual, least, usual, "default is less than min: %s", *r.Min)
	if r.Max != nil {
		more(*r.Min, *r.Max, most, *r.Min, "min is larger than max: %s", *r.Max)
		more(*r.Max, capacity, most, *r.Max, "max is larger than capacity value: %s", capacity)
		more(usual, *r.Max, most, usual, "default is more than max: %s", *r.Max)
	}
	if r.Step == nil {
		return errs
	}
	next := r.Min.DeepCopy()
	next.Add(*r.Step)
	more(next, capacity, step, *r.Step, "one step "+next.String()+" is larger than capacity value: %s", capacity)
	multiple := func(q apiresource.Quantity) {
		by := r.Step.Value()
		errs = rules.InvalidIf(errs, by == 0 || (q.Value()-r.Min.Value())%by != 0, step, q.String(), fmt.Sprintf("value is not a multiple of a given step (%s) from (%s)", r.Step, r.Min))
	}
	multiple(usual)
	if r.Max != nil {
		multiple(*r.Max)
	}
	return errs
}

// nodeResources checks which resources of its node a device takes.
func nodeResources(d *resourceapi.Device, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	mappings := mappingsOf(d).all()
	for _, name := range slices.Sorted(maps.Keys(mappings)) {
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

func (b *rulebook) attribute(a *resourceapi.DeviceAttribute, p *field.Path) field.ErrorList {
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
