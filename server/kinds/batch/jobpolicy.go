package batch

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// Limits of the policies that decide when a Job fails or succeeds.
const (
	maxPolicyRules = 20
	maxExitCodes   = 255
	maxConditions  = 20
	maxIndexesText = 64 * 1024
)

var (
	failureActions  = []batchv1.PodFailurePolicyAction{batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailIndex, batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore}
	exitOperators   = []batchv1.PodFailurePolicyOnExitCodesOperator{batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn}
	conditionStates = []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown}
)

// given checks an enumeration that must not be left out.
func given[T ~string](v T, path *field.Path, supported []T) field.ErrorList {
	if v == "" {
		return field.ErrorList{field.Required(path, fmt.Sprintf("valid values: %q", supported))}
	}
	return rules.OneOf(v, path, supported...)
}

func validateFailurePolicy(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	list := path.Child("rules")
	if n := len(s.PodFailurePolicy.Rules); n > maxPolicyRules {
		errs = append(errs, field.TooMany(list, n, maxPolicyRules))
	}
	var names []string
	for i := range s.Template.Spec.Containers {
		names = append(names, s.Template.Spec.Containers[i].Name)
	}
	for i := range s.Template.Spec.InitContainers {
		names = append(names, s.Template.Spec.InitContainers[i].Name)
	}
	among := rules.In(names)
	for i := range rules.Until(&errs, s.PodFailurePolicy.Rules) {
		errs = append(errs, validateFailureRule(s, &s.PodFailurePolicy.Rules[i], list.Index(i), among)...)
	}
	return errs
}

func validateFailureRule(s *batchv1.JobSpec, r *batchv1.PodFailurePolicyRule, path *field.Path, names *rules.Membership[string]) field.ErrorList {
	errs := given(r.Action, path.Child("action"), failureActions)
	errs = rules.InvalidIf(errs, r.Action == batchv1.PodFailurePolicyActionFailIndex && s.BackoffLimitPerIndex == nil, path.Child("action"), r.Action, "requires the backoffLimitPerIndex to be set")
	if r.OnExitCodes != nil {
		errs = append(errs, validateExitCodes(r.OnExitCodes, path.Child("onExitCodes"), names)...)
	}
	if len(r.OnPodConditions) > 0 {
		errs = append(errs, validatePodConditions(r.OnPodConditions, path.Child("onPodConditions"))...)
	}
	switch {
	case r.OnExitCodes != nil && len(r.OnPodConditions) > 0:
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "specifying both OnExitCodes and OnPodConditions is not supported"))
	case r.OnExitCodes == nil && len(r.OnPodConditions) == 0:
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "specifying one of OnExitCodes and OnPodConditions is required"))
	}
	return errs
}

func validatePodConditions(patterns []batchv1.PodFailurePolicyOnPodConditionsPattern, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(patterns) > maxConditions {
		errs = append(errs, field.TooMany(path, len(patterns), maxConditions))
	}
	for i, p := range rules.Until(&errs, patterns) {
		errs = append(errs, rules.QualifiedName(string(p.Type), path.Index(i).Child("type"))...)
		errs = append(errs, given(p.Status, path.Index(i).Child("status"), conditionStates)...)
	}
	return errs
}

func validateExitCodes(r *batchv1.PodFailurePolicyOnExitCodesRequirement, path *field.Path, names *rules.Membership[string]) field.ErrorList {
	errs := given(r.Operator, path.Child("operator"), exitOperators)
	errs = rules.InvalidIf(errs, r.ContainerName != nil && !names.Has(*r.ContainerName), path.Child("containerName"), r.ContainerName, "must be one of the container or initContainer names in the pod template")
	values := path.Child("values")
	switch n := len(r.Values); {
	case n == 0:
		errs = append(errs, field.Invalid(values, r.Values, "at least one value is required"))
	case n > maxExitCodes:
		errs = append(errs, field.TooMany(values, n, maxExitCodes))
	}
	seen := map[int32]bool{}
	for i, v := range rules.Until(&errs, r.Values) {
		errs = rules.InvalidIf(errs, v == 0 && r.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn, values.Index(i), v, "must not be 0 for the In operator")
		errs = rules.DuplicateIf(errs, seen[v], values.Index(i), v)
		seen[v] = true
	}
	return rules.InvalidIf(errs, !slices.IsSorted(r.Values), values, r.Values, "must be ordered")
}

func validateSuccessPolicy(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	list := path.Child("rules")
	switch n := len(s.SuccessPolicy.Rules); {
	case n == 0:
		errs = append(errs, field.Required(list, "at least one rules must be specified when the successPolicy is specified"))
	case n > maxPolicyRules:
		errs = append(errs, field.TooMany(list, n, maxPolicyRules))
	}
	for i := range rules.Until(&errs, s.SuccessPolicy.Rules) {
		errs = append(errs, validateSuccessRule(rules.Value(s.Completions), &s.SuccessPolicy.Rules[i], list.Index(i))...)
	}
	return errs
}

func validateSuccessRule(completions int32, r *batchv1.SuccessPolicyRule, path *field.Path) field.ErrorList {
	errs := rules.RequiredIf(nil, r.SucceededCount == nil && r.SucceededIndexes == nil, path, "at least one of succeededCount or succeededIndexes must be specified")
	var total int32
	if text := r.SucceededIndexes; text != nil {
		at := path.Child("succeededIndexes")
		if len(*text) > maxIndexesText {
			errs = append(errs, field.TooLong(at, "", maxIndexesText))
		}
		var err error
		if total, err = countIndexes(*text, completions); err != nil {
			errs = append(errs, field.Invalid(at, *text, "error parsing succeededIndexes: "+err.Error()))
		}
	}
	if count := r.SucceededCount; count != nil {
		at := path.Child("succeededCount")
		errs = append(errs, rules.NotNegative(*count, at)...)
		if *count > completions {
			errs = append(errs, field.Invalid(at, *count, fmt.Sprintf("must be less than or equal to %d (the number of specified completions)", completions)))
		}
		if r.SucceededIndexes != nil && *count > total {
			errs = append(errs, field.Invalid(at, *count, fmt.Sprintf("must be less than or equal to %d (the number of indexes in the specified succeededIndexes field)", total)))
		}
	}
	return errs
}
