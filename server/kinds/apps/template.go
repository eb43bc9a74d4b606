// Package apps says how the kinds of the apps group behave: Deployment,
// ReplicaSet, StatefulSet, DaemonSet and ControllerRevision.
package apps

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
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

// workloads are the rules of kinds with a pod template, where some gates are on.
type workloads struct {
	pods           podspec.Rules
	maxUnavailable bool // of stateful sets
}

func rulesFor(on kinds.Feature) workloads {
	return workloads{pods: podspec.For(on), maxUnavailable: on("MaxUnavailableStatefulSet")}
}

// validateSelector checks the selector of a workload that must have one which
// selects something. noun ends the message about an empty one, invalid is the
// message about one that cannot be used. The result is nil where it cannot.
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

// nameWarning warns of names that pods cannot have as host names.
func nameWarning(name string) []string {
	if messages := validation.IsDNS1123Label(name); len(messages) > 0 {
		return []string{fmt.Sprintf("metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: %v", messages)}
	}
	return nil
}

// templateWarnings warns of a template where it is new or the spec changed.
func templateWarnings(t, old *corev1.PodTemplateSpec, changed bool) []string {
	if old != nil && !changed {
		return nil
	}
	return podspec.Warnings(templatePath, t, old)
}
