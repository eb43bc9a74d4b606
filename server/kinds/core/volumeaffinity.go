package core

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// renamedLabels are labels of nodes that have a newer name.
var renamedLabels = map[string]string{
	corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	"beta.kubernetes.io/os":             corev1.LabelOSStable,
	"beta.kubernetes.io/arch":           corev1.LabelArchStable,
	corev1.LabelInstanceType:            corev1.LabelInstanceTypeStable,
}

// sameAffinity compares affinities, where a label may move to its newer name.
func sameAffinity(a, old *corev1.VolumeNodeAffinity) bool {
	if a == nil || a.Required == nil || old.Required == nil {
		return rules.Same(a, old)
	}
	adapted := old.DeepCopy()
	for i := range adapted.Required.NodeSelectorTerms {
		if i >= len(a.Required.NodeSelectorTerms) {
			break
		}
		adopt(adapted.Required.NodeSelectorTerms[i].MatchExpressions, a.Required.NodeSelectorTerms[i].MatchExpressions)
		adopt(adapted.Required.NodeSelectorTerms[i].MatchFields, a.Required.NodeSelectorTerms[i].MatchFields)
	}
	return rules.Same(a, adapted)
}

func adopt(old, now []corev1.NodeSelectorRequirement) {
	for i := range old {
		if i < len(now) && old[i].Key != now[i].Key && renamedLabels[old[i].Key] == now[i].Key {
			old[i].Key = now[i].Key
		}
	}
}

// affinityWarnings warns of labels under their older name.
func affinityWarnings(s *corev1.NodeSelector, path *field.Path) []string {
	var warnings []string
	for i, term := range s.NodeSelectorTerms {
		for j, r := range term.MatchExpressions {
			if msg := podspec.DeprecatedNodeLabel(r.Key); msg != "" {
				warnings = append(warnings, fmt.Sprintf("%s: %s is %s",
					path.Child("nodeSelectorTerms").Index(i).Child("matchExpressions").Index(j).Child("key"), r.Key, msg))
			}
		}
	}
	return warnings
}

func validateVolumeAffinity(a *corev1.VolumeNodeAffinity, path *field.Path) field.ErrorList {
	if a.Required == nil {
		return field.ErrorList{field.Required(path.Child("required"), "must specify required node constraints")}
	}
	path = path.Child("required", "nodeSelectorTerms")
	if len(a.Required.NodeSelectorTerms) == 0 {
		return field.ErrorList{field.Required(path, "must have at least one node selector term")}
	}
	var errs field.ErrorList
	for i, term := range a.Required.NodeSelectorTerms {
		for j := range term.MatchExpressions {
			errs = append(errs, validateNodeRequirement(&term.MatchExpressions[j], path.Index(i).Child("matchExpressions").Index(j))...)
		}
		for j := range term.MatchFields {
			errs = append(errs, validateFieldRequirement(&term.MatchFields[j], path.Index(i).Child("matchFields").Index(j))...)
		}
	}
	return errs
}

// validateNodeRequirement lets any value be asked for, as a stock server does.
func validateNodeRequirement(r *corev1.NodeSelectorRequirement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			errs = append(errs, field.Required(path.Child("values"), "must be specified when `operator` is 'In' or 'NotIn'"))
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			errs = append(errs, field.Forbidden(path.Child("values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(r.Values) != 1 {
			errs = append(errs, field.Required(path.Child("values"), "must be specified single value when `operator` is 'Lt' or 'Gt'"))
		}
	default:
		errs = append(errs, field.Invalid(path.Child("operator"), r.Operator, "not a valid selector operator"))
	}
	return append(errs, metavalidation.ValidateLabelName(r.Key, path.Child("key"))...)
}

// validateFieldRequirement checks a requirement on a field of nodes: only the name
// can be asked for.
func validateFieldRequirement(r *corev1.NodeSelectorRequirement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) != 1 {
			errs = append(errs, field.Required(path.Child("values"), "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
		}
	default:
		errs = append(errs, field.Invalid(path.Child("operator"), r.Operator, "not a valid selector operator"))
	}
	if r.Key != metav1.ObjectNameField {
		return append(errs, field.Invalid(path.Child("key"), r.Key, "not a valid field selector key"))
	}
	for i, v := range r.Values {
		errs = append(errs, rules.Messages(path.Child("values").Index(i), v, validation.IsDNS1123Subdomain(v))...)
	}
	return errs
}
