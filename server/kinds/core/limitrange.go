package core

import (
	"fmt"
	"maps"
	"strings"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// LimitRange has the rules for LimitRanges.
var LimitRange = kinds.Typed[*corev1.LimitRange]{
	ValidateName:        apivalidation.NameIsDNSSubdomain,
	Meta:                &kinds.AsNewMeta,
	Default:             defaultLimitRange,
	PrepareForCreate:    nameLimitRange,
	Validate:            validateLimitRange,
	ValidateUpdate:      func(l, _ *corev1.LimitRange) field.ErrorList { return validateLimitRange(l) },
	Canonicalize:        emptyIsNone,
	CreateOnUpdate:      true,
	UnconditionalUpdate: true,
}.Strategy()

// nameLimitRange names a LimitRange without a name.
func nameLimitRange(l *corev1.LimitRange) {
	if l.Name == "" {
		l.Name = uuid.NewString()
	}
}

// emptyIsNone stores an empty list as none; its writer owns the field nevertheless.
func emptyIsNone(l *corev1.LimitRange) {
	if len(l.Spec.Limits) == 0 {
		l.Spec.Limits = nil
	}
}

func defaultLimitRange(l *corev1.LimitRange) {
	for i := range l.Spec.Limits {
		defaultLimit(&l.Spec.Limits[i])
	}
}

// defaultLimit derives the defaults of containers from their limits.
func defaultLimit(l *corev1.LimitRangeItem) {
	podspec.DefaultResources(l.Max, l.Min, l.Default, l.DefaultRequest, l.MaxLimitRequestRatio)
	if l.Type != corev1.LimitTypeContainer {
		return
	}
	if l.Default == nil {
		l.Default = make(corev1.ResourceList)
	}
	if l.DefaultRequest == nil {
		l.DefaultRequest = make(corev1.ResourceList)
	}
	fill := func(to, from corev1.ResourceList) {
		for name, amount := range from {
			if _, ok := to[name]; !ok {
				to[name] = amount.DeepCopy()
			}
		}
	}
	fill(l.Default, l.Max)
	fill(l.DefaultRequest, l.Default)
	fill(l.DefaultRequest, l.Min)
}

func validateLimitRange(l *corev1.LimitRange) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[corev1.LimitType]bool)
	for i := range rules.Until(&errs, l.Spec.Limits) {
		limit, path := &l.Spec.Limits[i], specPath.Child("limits").Index(i)
		errs = append(errs, validateLimitType(limit.Type, path.Child("type"))...)
		errs = rules.DuplicateIf(errs, seen[limit.Type], path.Child("type"), limit.Type)
		seen[limit.Type] = true
		errs = append(errs, validateLimit(limit, path)...)
	}
	return errs
}

func validateLimitType(t corev1.LimitType, path *field.Path) field.ErrorList {
	if messages := validation.IsQualifiedName(string(t)); len(messages) > 0 {
		return rules.Messages(path, t, messages)
	}
	switch t {
	case corev1.LimitTypePod, corev1.LimitTypeContainer, corev1.LimitTypePersistentVolumeClaim:
		return nil
	}
	return rules.InvalidIf(nil, !strings.Contains(string(t), "/"), path, t, "must be a standard limit type or fully qualified")
}

func validateLimit(l *corev1.LimitRangeItem, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	named := make(corev1.ResourceList) // all resources that the item names
	names := func(list corev1.ResourceList, child string) {
		for _, name := range rules.Until(&errs, sorted(list)) {
			errs = append(errs, validateLimitResource(l.Type, name, path.Child(child).Key(string(name)))...)
		}
		maps.Copy(named, list)
	}
	names(l.Max, "max")
	names(l.Min, "min")
	if l.Type == corev1.LimitTypePod {
		errs = append(errs, unused(l.Default, path.Child("default"))...)
		errs = append(errs, unused(l.DefaultRequest, path.Child("defaultRequest"))...)
	} else {
		names(l.Default, "default")
		names(l.DefaultRequest, "defaultRequest")
	}
	if l.Type == corev1.LimitTypePersistentVolumeClaim {
		_, least := l.Min[corev1.ResourceStorage]
		_, most := l.Max[corev1.ResourceStorage]
		errs = rules.RequiredIf(errs, !least && !most, path.Child("limits"), "either minimum or maximum storage value is required, but neither was provided")
	}
	names(l.MaxLimitRequestRatio, "maxLimitRequestRatio")
	for _, name := range rules.Until(&errs, sorted(named)) {
		errs = append(errs, validateBounds(l, name, path)...)
	}
	return errs
}

func validateLimitResource(t corev1.LimitType, name corev1.ResourceName, path *field.Path) field.ErrorList {
	if t == corev1.LimitTypePod || t == corev1.LimitTypeContainer {
		return podspec.ValidateContainerResourceName(name, path)
	}
	return podspec.ValidateResourceName(name, path)
}

func unused(list corev1.ResourceList, path *field.Path) field.ErrorList {
	return rules.ForbiddenIf(nil, len(list) != 0, path, "may not be specified when `type` is 'Pod'")
}

// bound is one of the amounts that a limit sets for a resource.
type bound struct {
	amount resource.Quantity
	set    bool
}

func boundOf(list corev1.ResourceList, name corev1.ResourceName) bound {
	amount, ok := list[name]
	return bound{amount, ok}
}

// above reports whether both are set and b is more than other.
func (b bound) above(other bound) bool { return b.set && other.set && b.amount.Cmp(other.amount) > 0 }

// validateBounds checks the amounts that a limit sets for a resource against one
// another. Pods have no defaults, so theirs do not count.
func validateBounds(l *corev1.LimitRangeItem, name corev1.ResourceName, path *field.Path) field.ErrorList {
	least, most := boundOf(l.Min, name), boundOf(l.Max, name)
	var limit, request bound
	if l.Type != corev1.LimitTypePod {
		limit, request = boundOf(l.Default, name), boundOf(l.DefaultRequest, name)
	}
	var errs field.ErrorList
	refuse := func(bad bool, child string, shown *resource.Quantity, format string, a, b *resource.Quantity) {
		if bad {
			message := fmt.Sprintf(format, a.String(), b.String())
			errs = append(errs, field.Invalid(path.Child(child).Key(string(name)), *shown, message))
		}
	}
	refuse(least.above(most), "min", &least.amount, "min value %s is greater than max value %s", &least.amount, &most.amount)
	refuse(least.above(request), "defaultRequest", &request.amount, "min value %s is greater than default request value %s", &least.amount, &request.amount)
	refuse(request.above(most), "defaultRequest", &request.amount, "default request value %s is greater than max value %s", &request.amount, &most.amount)
	refuse(request.above(limit), "defaultRequest", &request.amount, "default request value %s is greater than default limit value %s", &request.amount, &limit.amount)
	refuse(least.above(limit), "default", &least.amount, "min value %s is greater than default value %s", &least.amount, &limit.amount)
	refuse(limit.above(most), "default", &most.amount, "default value %s is greater than max value %s", &limit.amount, &most.amount)
	errs = append(errs, validateRatio(boundOf(l.MaxLimitRequestRatio, name), least, most, path.Child("maxLimitRequestRatio").Key(string(name)))...)
	if !podspec.IsOvercommitAllowed(name) && limit.set && request.set && limit.amount.Cmp(request.amount) != 0 {
		message := fmt.Sprintf("default value %s must equal to defaultRequest value %s in %s", limit.amount.String(), request.amount.String(), name)
		errs = append(errs, field.Invalid(path.Child("defaultRequest").Key(string(name)), request.amount, message))
	}
	return errs
}

// validateRatio checks a ratio of limit to request against the range that minimum and maximum allow.
// Thousandths count if the numbers are small enough.
func validateRatio(ratio, least, most bound, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ratio.set && ratio.amount.Cmp(*resource.NewQuantity(1, resource.DecimalSI)) < 0 {
		message := fmt.Sprintf("ratio %s is less than 1", ratio.amount.String())
		errs = append(errs, field.Invalid(path, ratio.amount, message))
	}
	if !ratio.set || !least.set || !most.set {
		return errs
	}
	value, low, high := float64(ratio.amount.Value()), least.amount.Value(), most.amount.Value()
	if ratio.amount.Value() < resource.MaxMilliValue && low < resource.MaxMilliValue && high < resource.MaxMilliValue {
		value, low, high = float64(ratio.amount.MilliValue())/1000, least.amount.MilliValue(), most.amount.MilliValue()
	}
	if possible := float64(high) / float64(low); value > possible {
		message := fmt.Sprintf("ratio %s is greater than max/min = %f", ratio.amount.String(), possible)
		errs = append(errs, field.Invalid(path, ratio.amount, message))
	}
	return errs
}
