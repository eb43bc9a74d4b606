package storage

import (
	"fmt"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

const maxNodeID = 256

// CSINode returns the strategy of CSINodes.
func CSINode(on kinds.Feature) kinds.Strategy {
	now, countChanges := on.Has(release.KindRules133), on("MutableCSINodeAllocatableCount")
	meta := &kinds.WholeMeta
	if now {
		meta = &kinds.MetaRules{Wholes: 1}
	}
	return kinds.Typed[*storagev1.CSINode]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         meta,
		Validate: func(obj *storagev1.CSINode) field.ErrorList {
			return validateNode(&obj.Spec, now)
		},
		ValidateUpdate: func(n, old *storagev1.CSINode) field.ErrorList {
			return validateNodeUpdate(n, old, now, countChanges)
		},
		Canonicalize: func(n *storagev1.CSINode) {
			if len(n.Spec.Drivers) == 0 {
				n.Spec.Drivers = nil // an empty list is stored as none
			}
			for i := range n.Spec.Drivers {
				if d := &n.Spec.Drivers[i]; len(d.TopologyKeys) == 0 {
					d.TopologyKeys = nil
				}
			}
		},
		ReturnDeletedObject: true,
	}.Strategy()
}

// CSINodeColumns is their Table form.
var CSINodeColumns = columns.Of(
	func(n *storagev1.CSINode, now time.Time) []any {
		return []any{n.Name, int64(len(n.Spec.Drivers)), columns.Since(n.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Number("Drivers", "Drivers indicates the number of CSI drivers registered on the node"),
	columns.Age(),
)

func validateNode(s *storagev1.CSINodeSpec, now bool) field.ErrorList {
	seen := map[string]bool{}
	return rules.EachPtr(s.Drivers, field.NewPath("spec", "drivers"), func(d *storagev1.CSINodeDriver, at *field.Path) field.ErrorList {
		return validateNodeDriver(d, seen, at, now)
	})
}

func validateNodeDriver(d *storagev1.CSINodeDriver, seen map[string]bool, p *field.Path, now bool) field.ErrorList {
	name := rules.DriverName
	if now {
		name = rules.DriverNameSince133
	}
	errs := name(d.Name, p.Child("name"))
	id := p.Child("nodeID")
	errs = rules.RequiredIf(errs, d.NodeID == "", id, "")
	if len(d.NodeID) > maxNodeID {
		errs = append(errs, field.Invalid(id, d.NodeID, fmt.Sprintf("must be %d characters or less", maxNodeID)))
	}
	if d.Allocatable != nil {
		errs = append(errs, rules.NotNegativePtr(d.Allocatable.Count, p.Child("allocatable", "count"))...)
	}
	errs = rules.DuplicateIf(errs, seen[d.Name], p.Child("name"), d.Name)
	seen[d.Name] = true
	keys := map[string]bool{}
	return append(errs, rules.Each(d.TopologyKeys, p, func(key string, _ *field.Path) field.ErrorList {
		errs := rules.RequiredIf(nil, key == "", p, "")
		errs = rules.DuplicateIf(errs, keys[key], p, key)
		keys[key] = true
		return append(errs, rules.Messages(p, key, validation.IsQualifiedName(key))...)
	})...)
}

// Drivers of a node come and go, but do not change, except that the number of volumes may. now are the rules of
// releases after 1.32.
func validateNodeUpdate(obj, old *storagev1.CSINode, now, countChanges bool) field.ErrorList {
	s, was := &obj.Spec, &old.Spec
	errs, at := validateNode(s, now), field.NewPath("spec", "drivers")
	if !now {
		errs, at = rules.Twice(errs), field.NewPath("CSINodeDriver")
	}
	named := make(map[string][]int, len(s.Drivers))
	for k := range s.Drivers {
		name := s.Drivers[k].Name
		named[name] = append(named[name], k)
	}
	for i := range rules.Until(&errs, was.Drivers) {
		list := named[was.Drivers[i].Name]
		delete(named, was.Drivers[i].Name) // names of stored drivers are unique
		for _, k := range list {
			is, had := s.Drivers[k], was.Drivers[i]
			if countChanges {
				is.Allocatable, had.Allocatable = nil, nil
			}
			if !rules.Same(had, is) {
				errs = append(errs, field.Invalid(at, rules.Shown(is), apivalidation.FieldImmutableErrorMsg))
			}
		}
	}
	return errs
}
