package resource

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// ResourceSlice is how ResourceSlices are written.
var ResourceSlice = kinds.Typed[*resourcev1beta1.ResourceSlice]{
	ValidateName: apivalidation.NameIsDNSSubdomain,
	Counted:      func(s *resourcev1beta1.ResourceSlice) []any { return []any{s.Spec} },
	Validate:     func(s *resourcev1beta1.ResourceSlice) field.ErrorList { return validateSlice(&s.Spec, nil) },
	ValidateUpdate: func(s, old *resourcev1beta1.ResourceSlice) field.ErrorList {
		return validateSlice(&s.Spec, &old.Spec)
	},
	UnconditionalUpdate: true,
	ReturnDeletedObject: true,
}.Strategy()

// ResourceSliceFields are what they are selected by.
var ResourceSliceFields = []kinds.SelectableField{
	{Label: resourcev1beta1.ResourceSliceSelectorNodeName, Path: []string{"spec", "nodeName"}},
	{Label: resourcev1beta1.ResourceSliceSelectorDriver, Path: []string{"spec", "driver"}},
}

// ResourceSliceColumns is their Table form.
var ResourceSliceColumns = columns.Of(
	func(s *resourcev1beta1.ResourceSlice, now time.Time) []any {
		return []any{s.Name, s.Spec.NodeName, s.Spec.Driver, s.Spec.Pool.Name, columns.Since(s.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Text("Node", resourcev1beta1.ResourceSliceSpec{}.SwaggerDoc()["nodeName"]),
	columns.Text("Driver", resourcev1beta1.ResourceSliceSpec{}.SwaggerDoc()["driver"]),
	columns.Text("Pool", resourcev1beta1.ResourcePool{}.SwaggerDoc()["name"]),
	columns.Age(),
)

// validateSlice checks a slice that replaces old, which is nil for a new one.
func validateSlice(s, old *resourcev1beta1.ResourceSliceSpec) field.ErrorList {
	pool := specPath.Child("pool")
	errs := rules.DriverName(s.Driver, specPath.Child("driver"))
	errs = append(errs, poolName(s.Pool.Name, pool.Child("name"))...)
	errs = rules.InvalidIf(errs, s.Pool.ResourceSliceCount <= 0, pool.Child("resourceSliceCount"), s.Pool.ResourceSliceCount, "must be greater than zero")
	errs = rules.InvalidIf(errs, s.Pool.Generation < 0, pool.Child("generation"), s.Pool.Generation, "must be greater than or equal to zero")
	if old != nil {
		errs = append(errs, rules.Immutable(s.Pool.Name, old.Pool.Name, pool.Child("name"))...)
		errs = append(errs, rules.Immutable(s.Driver, old.Driver, specPath.Child("driver"))...)
		errs = append(errs, rules.Immutable(s.NodeName, old.NodeName, specPath.Child("nodeName"))...)
	}
	errs = append(errs, validateNodes(s)...)
	devices := specPath.Child("devices")
	errs = append(errs, each(s.Devices, resourcev1beta1.ResourceSliceMaxDevices, devices, validateDevice)...)
	return append(errs, repeated(s.Devices, func(d *resourcev1beta1.Device) string { return d.Name }, devices, "name")...)
}

// validateNodes checks which nodes have the devices; one of three fields declares it.
func validateNodes(s *resourcev1beta1.ResourceSliceSpec) field.ErrorList {
	const one = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required"
	var errs field.ErrorList
	ways := 0
	if s.NodeName != "" {
		ways++
		errs = append(errs, rules.Subdomain(s.NodeName, specPath.Child("nodeName"))...)
	}
	if s.NodeSelector != nil {
		ways++
		p := specPath.Child("nodeSelector")
		errs = append(errs, podspec.ValidateNodeSelector(s.NodeSelector, p)...)
		if len(s.NodeSelector.NodeSelectorTerms) != 1 {
			errs = append(errs, field.Invalid(p.Child("nodeSelectorTerms"), rules.Shown(s.NodeSelector.NodeSelectorTerms), "must have exactly one node selector term"))
		}
	}
	if s.AllNodes {
		ways++
	}
	switch ways {
	case 0:
		return append(errs, field.Required(specPath, one))
	case 1:
		return errs
	}
	return append(errs, field.Invalid(specPath, nil, one))
}

func validateDevice(d *resourcev1beta1.Device, p *field.Path) field.ErrorList {
	errs := rules.Label(d.Name, p.Child("name"))
	p = p.Child("basic")
	if d.Basic == nil {
		return append(errs, field.Required(p, ""))
	}
	attributes, capacity := d.Basic.Attributes, d.Basic.Capacity
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		at := p.Child("attributes").Key(shortened(string(name)))
		errs = append(errs, qualifiedName(string(name), at)...)
		value := attributes[name]
		errs = append(errs, validateAttribute(&value, at)...)
	}
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		errs = append(errs, qualifiedName(string(name), p.Child("capacity").Key(shortened(string(name))))...)
	}
	const most = resourcev1beta1.ResourceSliceMaxAttributesAndCapacitiesPerDevice
	if n := len(attributes) + len(capacity); n > most {
		errs = append(errs, field.Invalid(p, n, fmt.Sprintf("the total number of attributes and capacities must not exceed %d", most)))
	}
	return errs
}

// shortened cuts the middle out of a name that is longer than names may be.
func shortened(name string) string {
	const most, gap = resourcev1beta1.DeviceMaxDomainLength + 1 + resourcev1beta1.DeviceMaxIDLength, "..."
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

func validateAttribute(a *resourcev1beta1.DeviceAttribute, p *field.Path) field.ErrorList {
	const longest = resourcev1beta1.DeviceAttributeMaxValueLength
	var errs field.ErrorList
	values := 0
	for _, given := range []bool{a.BoolValue != nil, a.IntValue != nil, a.StringValue != nil, a.VersionValue != nil} {
		if given {
			values++
		}
	}
	if v := a.StringValue; v != nil && len(*v) > longest {
		errs = append(errs, field.TooLong(p.Child("string"), "", longest))
	}
	if v := a.VersionValue; v != nil {
		errs = rules.InvalidIf(errs, !versions.MatchString(*v), p.Child("version"), v, "must be a string compatible with semver.org spec 2.0.0")
		if len(*v) > longest {
			errs = append(errs, field.TooLong(p.Child("version"), "", longest))
		}
	}
	switch values {
	case 0:
		return append(errs, field.Required(p, "exactly one value must be specified"))
	case 1:
		return errs
	}
	return append(errs, field.Invalid(p, rules.Shown(*a), "exactly one value must be specified"))
}
