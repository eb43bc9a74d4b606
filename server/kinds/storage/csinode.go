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
)

const maxNodeID = 256

// CSINode is how CSINodes are written.
var CSINode = kinds.Typed[*storagev1.CSINode]{
	ValidateName: apivalidation.NameIsDNSSubdomain,
	Meta:         &kinds.WholeMeta,
	Validate: func(obj *storagev1.CSINode) field.ErrorList {
		return validateNode(&obj.Spec)
	},
	ValidateUpdate: validateNodeUpdate,
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

// CSINodeColumns is their Table form.
var CSINodeColumns = columns.Of(
	func(n *storagev1.CSINode, now time.Time) []any {
		return []any{n.Name, int64(len(n.Spec.Drivers)), columns.Since(n.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Number("Drivers", "Drivers indicates the number of CSI drivers registered on the node"),
	columns.Age(),
)

func validateNode(s *storagev1.CSINodeSpec) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range s.Drivers {
		errs = append(errs, validateNodeDriver(&s.Drivers[i], seen, field.NewPath("spec", "drivers").Index(i))...)
	}
	return errs
}

func validateNodeDriver(d *storagev1.CSINodeDriver, seen map[string]bool, p *field.Path) field.ErrorList {
	errs := rules.DriverName(d.Name, p.Child("name"))
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
	for _, key := range d.TopologyKeys {
		errs = rules.RequiredIf(errs, key == "", p, "")
		errs = rules.DuplicateIf(errs, keys[key], p, key)
		keys[key] = true
		errs = append(errs, rules.Messages(p, key, validation.IsQualifiedName(key))...)
	}
	return errs
}

// Drivers of a node come and go, but do not change.
func validateNodeUpdate(obj, old *storagev1.CSINode) field.ErrorList {
	s, was := &obj.Spec, &old.Spec
	errs := rules.Twice(validateNode(s))
	named := make(map[string][]int, len(s.Drivers))
	for k := range s.Drivers {
		name := s.Drivers[k].Name
		named[name] = append(named[name], k)
	}
	for i := range was.Drivers {
		list := named[was.Drivers[i].Name]
		delete(named, was.Drivers[i].Name) // names of stored drivers are unique
		for _, k := range list {
			if !rules.Same(was.Drivers[i], s.Drivers[k]) {
				errs = append(errs, field.Invalid(field.NewPath("CSINodeDriver"), rules.Shown(s.Drivers[k]), apivalidation.FieldImmutableErrorMsg))
			}
		}
	}
	return errs
}
