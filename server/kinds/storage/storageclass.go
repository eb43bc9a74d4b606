// Package storage holds the strategies of the storage group: StorageClass,
// CSIDriver, CSINode, CSIStorageCapacity, VolumeAttachment and VolumeAttributesClass.
package storage

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

const (
	maxParameters     = 512
	maxParametersSize = 256 * 1024
)

// StorageClass returns the strategy of StorageClasses.
func StorageClass(on kinds.Feature) kinds.Strategy {
	now := on.Has(release.KindRules133)
	return kinds.Typed[*storagev1.StorageClass]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         &kinds.WholeMeta,
		Default: func(c *storagev1.StorageClass) {
			rules.DefaultTo(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
			rules.DefaultTo(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
		},
		Validate: validateStorageClass,
		ValidateUpdate: func(c, old *storagev1.StorageClass) field.ErrorList {
			return validateStorageClassUpdate(c, old, now)
		},
		Warnings:            storageClassWarnings,
		UnconditionalUpdate: true,
		ReturnDeletedObject: true,
	}.Strategy()
}

// storageClassWarnings returns warnings about former names of labels of nodes.
func storageClassWarnings(obj, _ *storagev1.StorageClass) []string {
	var warnings []string
	for i, term := range obj.AllowedTopologies {
		for j, expression := range term.MatchLabelExpressions {
			if msg := podspec.DeprecatedNodeLabel(expression.Key); msg != "" {
				warnings = append(warnings, fmt.Sprintf("allowedTopologies[%d].matchLabelExpressions[%d].key: %s", i, j, msg))
			}
		}
	}
	return warnings
}

// StorageClassColumns is their Table form.
var StorageClassColumns = columns.Of(
	func(c *storagev1.StorageClass, now time.Time) []any {
		name := c.Name
		if IsDefault(c) {
			name += " (default)"
		}
		reclaim, binding := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate
		if c.ReclaimPolicy != nil {
			reclaim = *c.ReclaimPolicy
		}
		if c.VolumeBindingMode != nil {
			binding = *c.VolumeBindingMode
		}
		return []any{
			name, c.Provisioner, string(reclaim), string(binding),
			rules.Value(c.AllowVolumeExpansion), columns.Since(c.CreationTimestamp, now),
		}
	},
	columns.Name(),
	columns.Text("Provisioner", storagev1.StorageClass{}.SwaggerDoc()["provisioner"]),
	columns.Text("ReclaimPolicy", storagev1.StorageClass{}.SwaggerDoc()["reclaimPolicy"]),
	columns.Text("VolumeBindingMode", storagev1.StorageClass{}.SwaggerDoc()["volumeBindingMode"]),
	columns.Text("AllowVolumeExpansion", storagev1.StorageClass{}.SwaggerDoc()["allowVolumeExpansion"]),
	columns.Age(),
)

// IsDefault reports whether claims without a class get this one.
func IsDefault(c *storagev1.StorageClass) bool {
	return c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" ||
		c.Annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true"
}

func validateStorageClass(c *storagev1.StorageClass) field.ErrorList {
	errs := validateProvisioner(c.Provisioner, field.NewPath("provisioner"))
	errs = append(errs, validateParameters(c.Parameters, field.NewPath("parameters"))...)
	if c.ReclaimPolicy != nil && *c.ReclaimPolicy != "" {
		errs = append(errs, rules.OneOf(*c.ReclaimPolicy, field.NewPath("reclaimPolicy"),
			corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)...)
	}
	if mode := field.NewPath("volumeBindingMode"); c.VolumeBindingMode == nil {
		errs = append(errs, field.Required(mode, ""))
	} else {
		errs = append(errs, rules.OneOf(*c.VolumeBindingMode, mode, storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)...)
	}
	return append(errs, validateTopologies(c.AllowedTopologies, field.NewPath("allowedTopologies"))...)
}

func validateProvisioner(v string, p *field.Path) field.ErrorList {
	if v == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	v = strings.ToLower(v)
	return rules.Messages(p, v, validation.IsQualifiedName(v))
}

func validateParameters(m map[string]string, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(m) > maxParameters {
		errs = append(errs, field.TooLong(p, "", maxParameters))
	}
	size := 0
	for _, k := range rules.Until(&errs, slices.Sorted(maps.Keys(m))) {
		errs = rules.InvalidIf(errs, k == "", p, k, "field can not be empty.")
		size += len(k) + len(m[k])
	}
	if size > maxParametersSize {
		errs = append(errs, field.TooLong(p, "", maxParametersSize))
	}
	return errs
}

func validateTopologies(terms []corev1.TopologySelectorTerm, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	// A term without expressions repeats each of the terms, as a stock server sees it.
	seen := map[string]int{"{}": len(terms)}
	for i := range terms {
		at := p.Index(i).Child("matchLabelExpressions")
		values, bad := topologyValues(terms[i].MatchLabelExpressions, at)
		errs = append(errs, bad...)
		text, err := json.Marshal(values) // with sorted keys
		if err != nil {
			return append(errs, field.InternalError(at, err))
		}
		for range seen[string(text)] {
			if len(errs) > rules.MaxErrors {
				return errs
			}
			errs = append(errs, field.Duplicate(at, ""))
		}
		seen[string(text)]++
	}
	return errs
}

// topologyValues reads the expressions of a term as sets of values by key.
func topologyValues(list []corev1.TopologySelectorLabelRequirement, p *field.Path) (map[string]map[string]bool, field.ErrorList) {
	var errs field.ErrorList
	keys := map[string]map[string]bool{}
	for i, r := range rules.Until(&errs, list) {
		values := map[string]bool{}
		errs = rules.RequiredIf(errs, len(r.Values) == 0, p.Index(i).Child("values"), "")
		for k, v := range rules.Until(&errs, r.Values) {
			errs = rules.DuplicateIf(errs, values[v], p.Index(i).Child("values").Index(k), v)
			values[v] = true
		}
		errs = append(errs, metavalidation.ValidateLabelName(r.Key, p.Index(i).Child("key"))...)
		if _, ok := keys[r.Key]; ok {
			errs = append(errs, field.Duplicate(p.Index(i).Child("key"), r.Key))
		}
		keys[r.Key] = values
	}
	return keys, errs
}

// now are the rules of releases after 1.32.
func validateStorageClassUpdate(c, old *storagev1.StorageClass, now bool) field.ErrorList {
	errs := validateStorageClass(c)
	fixed := func(name string, v any, same bool) {
		switch {
		case same:
		case now:
			errs = append(errs, field.Invalid(field.NewPath(name), v, apivalidation.FieldImmutableErrorMsg))
		default:
			errs = append(errs, field.Forbidden(field.NewPath(name), "updates to "+name+" are forbidden."))
		}
	}
	fixed("parameters", c.Parameters, maps.Equal(c.Parameters, old.Parameters))
	fixed("provisioner", c.Provisioner, c.Provisioner == old.Provisioner)
	fixed("reclaimPolicy", c.ReclaimPolicy, rules.Value(c.ReclaimPolicy) == rules.Value(old.ReclaimPolicy))
	return append(errs, rules.Immutable(c.VolumeBindingMode, old.VolumeBindingMode, field.NewPath("volumeBindingMode"))...)
}
