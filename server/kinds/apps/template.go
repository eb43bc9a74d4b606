// Package apps holds the strategies of the apps group: Deployment, ReplicaSet, StatefulSet,
// DaemonSet and ControllerRevision.
package apps

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

var (
	specPath     = field.NewPath("spec")
	statusPath   = field.NewPath("status")
	templatePath = specPath.Child("template")
)

// workload is the part of the strategy that differs among the four kinds that run Pods; strategy adds the common part.
// Functions other than template and the two that validate may be nil.
type workload[T interface {
	comparable
	kinds.Object
}] struct {
	template func(T) *corev1.PodTemplateSpec
	defaults func(T)          // after those of the template
	prepare  func(obj, old T) // after the fields of the template whose gates are off; old is nil on create

	validate       func(obj T, o podspec.Options) field.ErrorList
	validateUpdate func(obj, old T, o podspec.Options) field.ErrorList

	warnings func(obj, old T, ofTemplate []string) []string // of a new object; nil: those of the template
	always   bool                                           // warnings of updates, too
	changed  func(obj, old T) bool                          // whether an update has changed the template; nil: whether it has changed the generation
}

// strategy completes t, which has the rest of the kind's strategy.
func (w workload[T]) strategy(on kinds.Feature, t kinds.Typed[T]) kinds.Strategy {
	pods := podspec.For(on)
	if t.ValidateName == nil {
		t.ValidateName = apivalidation.NameIsDNSSubdomain
	}
	t.Default = func(obj T) {
		pods.DefaultTemplate(w.template(obj))
		w.defaults(obj)
	}
	t.PrepareForCreate = func(obj T) {
		var none T
		pods.DropDisabled(&w.template(obj).Spec, nil)
		if w.prepare != nil {
			w.prepare(obj, none)
		}
	}
	t.PrepareForUpdate = func(obj, old T) {
		pods.DropDisabled(&w.template(obj).Spec, &w.template(old).Spec)
		if w.prepare != nil {
			w.prepare(obj, old)
		}
	}
	t.Validate = func(obj T) field.ErrorList {
		return w.validate(obj, pods.TemplateOptions(w.template(obj), nil))
	}
	t.ValidateUpdate = func(obj, old T) field.ErrorList {
		return w.validateUpdate(obj, old, pods.TemplateOptions(w.template(obj), w.template(old)))
	}
	t.Warnings = func(obj, old T) []string { return w.warn(pods, obj, old) }
	t.UnconditionalUpdate = true
	return t.Strategy()
}

// warn returns the warnings about a write; old is nil for a new object.
func (w workload[T]) warn(pods podspec.Rules, obj, old T) []string {
	var none T
	if old == none {
		out := pods.Warnings(templatePath, w.template(obj))
		if w.warnings != nil {
			out = w.warnings(obj, old, out)
		}
		return out
	}
	changed := obj.GetGeneration() != old.GetGeneration()
	if w.changed != nil {
		changed = w.changed(obj, old)
	}
	var out []string
	if changed {
		out = pods.Warnings(templatePath, w.template(obj))
	}
	if w.always {
		out = w.warnings(obj, old, out)
	}
	return out
}

// validateSelector checks the selector of a workload, which must select something. noun ends the message
// about an empty one, invalid is the message about an invalid one. The result is nil if it is invalid.
func validateSelector(s *metav1.LabelSelector, noun, invalid string) (labels.Selector, field.ErrorList) {
	path := specPath.Child("selector")
	var errs field.ErrorList
	if s == nil {
		errs = append(errs, field.Required(path, ""))
	} else {
		errs = append(errs, rules.Selector(s, path)...)
		if rules.SelectorEmpty(s) {
			errs = append(errs, field.Invalid(path, s, "empty selector is invalid for "+noun))
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, append(errs, field.Invalid(path, s, invalid))
	}
	return selector, errs
}

func mismatch(t *corev1.PodTemplateSpec) *field.Error {
	return field.Invalid(templatePath.Child("metadata", "labels"), t.Labels, "`selector` does not match template `labels`")
}

// validateReplicaTemplate checks the template of a ReplicaSet or Deployment.
func validateReplicaTemplate(t *corev1.PodTemplateSpec, selector labels.Selector, o podspec.Options) field.ErrorList {
	var errs field.ErrorList
	if !selector.Empty() && !selector.Matches(labels.Set(t.Labels)) {
		errs = append(errs, mismatch(t))
	}
	errs = append(errs, podspec.ValidateTemplate(t, templatePath, o)...)
	return append(errs, validateForever(&t.Spec, "ReplicaSet")...)
}

// validateForever checks that pods of a template are meant to run without end.
func validateForever(s *corev1.PodSpec, kind string) field.ErrorList {
	path := templatePath.Child("spec")
	errs := rules.OneOf(s.RestartPolicy, path.Child("restartPolicy"), corev1.RestartPolicyAlways)
	if s.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(path.Child("activeDeadlineSeconds"),
			fmt.Sprintf("activeDeadlineSeconds in %s is not Supported", kind)))
	}
	return errs
}

// rollingAmounts returns the amounts of a rolling update, zero where they are absent, and checks their form.
func rollingAmounts(maxUnavailable, maxSurge *intstr.IntOrString, path *field.Path) (unavailable, surge intstr.IntOrString, errs field.ErrorList) {
	unavailable, surge = rules.Value(maxUnavailable), rules.Value(maxSurge)
	errs = rules.IntOrPercent(unavailable, path.Child("maxUnavailable"))
	return unavailable, surge, append(errs, rules.IntOrPercent(surge, path.Child("maxSurge"))...)
}
