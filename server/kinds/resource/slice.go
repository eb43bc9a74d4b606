package resource

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// resourceSlice returns the rules for ResourceSlices.
func (b *validator) resourceSlice() kinds.Strategy {
	gated := b.fieldsOfDevices()
	return kinds.Typed[*resourceapi.ResourceSlice]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Default: func(s *resourceapi.ResourceSlice) {
			for i := range s.Spec.Devices {
				defaultDevice(&s.Spec.Devices[i])
			}
		},
		PrepareForCreate: func(s *resourceapi.ResourceSlice) {
			s.Generation = 1
			dropOff(gated, &s.Spec, &resourceapi.ResourceSliceSpec{})
		},
		// As on a stock server, fields that a gate forbids count before they go.
		PrepareForUpdate: func(s, old *resourceapi.ResourceSlice) {
			s.Generation = old.Generation
			if !rules.Same(s.Spec, old.Spec) {
				s.Generation++
			}
			dropOff(gated, &s.Spec, &old.Spec)
		},
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

// fieldsOfDevices returns the fields of slices that depend on gates.
func (b *validator) fieldsOfDevices() []fields[resourceapi.ResourceSliceSpec] {
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

// ResourceSliceFields are their selectable fields.
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
func (b *validator) validateSlice(s, old *resourceapi.ResourceSliceSpec) field.ErrorList {
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

// nodes checks the fields that select the nodes of a slice or a device, of which one must be set.
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

// oneAlone returns one without the fields that are set, as before release 1.33.
func (n *nodes) oneAlone(text string) field.ErrorList {
	switch len(n.set) {
	case 0:
		return append(n.errs, field.Required(n.path, text))
	case 1:
		return n.errs
	}
	return append(n.errs, field.Invalid(n.path, nil, text))
}
