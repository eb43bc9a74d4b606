package storage

import (
	"fmt"
	"maps"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// CSIStorageCapacity has the rules for CSIStorageCapacities.
var CSIStorageCapacity = kinds.Typed[*storagev1.CSIStorageCapacity]{
	ValidateName: apivalidation.NameIsDNSSubdomain,
	Meta:         &kinds.WholeMeta,
	Validate:     func(obj *storagev1.CSIStorageCapacity) field.ErrorList { return validateCapacity(obj, false) },
	ValidateUpdate: func(c, old *storagev1.CSIStorageCapacity) field.ErrorList {
		errs := validateCapacity(c, rules.SelectorInvalid(old.NodeTopology))
		errs = append(errs, rules.Immutable(c.NodeTopology, old.NodeTopology, field.NewPath("nodeTopology"))...)
		return append(errs, rules.Immutable(c.StorageClassName, old.StorageClassName, field.NewPath("storageClassName"))...)
	},
	Warnings: capacityWarnings,
}.Strategy()

// capacityWarnings returns warnings about selectors with former names of labels of nodes.
func capacityWarnings(obj, _ *storagev1.CSIStorageCapacity) []string {
	selector := obj.NodeTopology
	if selector == nil {
		return nil
	}
	var warnings []string
	for i, expression := range selector.MatchExpressions {
		if msg := podspec.DeprecatedNodeLabel(expression.Key); msg != "" {
			warnings = append(warnings, fmt.Sprintf("nodeTopology.matchExpressions[%d].key: %s is %s", i, expression.Key, msg))
		}
	}
	for _, label := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		if msg := podspec.DeprecatedNodeLabel(label); msg != "" {
			warnings = append(warnings, fmt.Sprintf("nodeTopology.matchLabels.%s: %s", label, msg))
		}
	}
	return warnings
}

func validateCapacity(c *storagev1.CSIStorageCapacity, keepInvalid bool) field.ErrorList {
	errs := rules.LooseSelector(c.NodeTopology, keepInvalid, field.NewPath("nodeTopology"))
	errs = append(errs, rules.Messages(field.NewPath("storageClassName"), c.StorageClassName, apivalidation.NameIsDNSSubdomain(c.StorageClassName, false))...)
	return append(errs, validateAmount(c.Capacity, field.NewPath("capacity"))...)
}

func validateAmount(q *resource.Quantity, p *field.Path) field.ErrorList {
	if q == nil || q.Sign() >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(p, q.String(), "must be greater than or equal to 0")}
}
