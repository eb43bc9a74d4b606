// Package podspec holds the rules of pod templates: how a PodSpec is defaulted,
// which of its fields are served, and what makes it valid. Pods and every
// workload kind share it.
//
// It promises: defaulting is idempotent; functions change only the object they
// are given, keep no reference to it, and never panic, whatever a client sent.
// Errors and warnings have the paths, order and words of release 1.32.
package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Options relax rules for data that was stored before a rule existed, and name
// what the spec belongs to. Take them from OptionsFor or TemplateOptions.
type Options struct {
	// Pod is true for the spec of a Pod, false for a template.
	Pod bool

	AllowInvalidPodDeletionCost           bool
	AllowIndivisibleHugePages             bool
	AllowInvalidSpreadSelector            bool // topologySpreadConstraints[].labelSelector
	AllowInvalidLabelValueInSelector      bool // label selectors of pod affinity
	AllowInvalidLabelValueInNodeAffinity  bool
	AllowNamespacedSysctlsOnHost          bool // net.* with hostNetwork, kernel.* with hostIPC
	AllowNonLocalProjectedTokenPath       bool
	AllowMatchLabelKeysOutsideRequirement bool // an old pod that breaks the rules of matchLabelKeys
}

// TemplateOptions computes the options for a template and the one it replaces;
// old is nil on create.
func TemplateOptions(t, old *corev1.PodTemplateSpec) Options {
	if old == nil {
		return OptionsFor(&t.Spec, nil)
	}
	return OptionsFor(&t.Spec, &old.Spec)
}

// OptionsFor computes the options for a spec and the one it replaces; old is nil
// on create. The caller sets Pod.
func OptionsFor(s, old *corev1.PodSpec) Options { return Options{} }

// DefaultTemplate fills in a pod template.
func DefaultTemplate(t *corev1.PodTemplateSpec) { DefaultPodSpec(&t.Spec) }

// DefaultPodSpec fills in a pod spec, as templates have it. Rules that hold for
// Pods alone are in package pods.
func DefaultPodSpec(s *corev1.PodSpec) {}

// DropDisabled removes fields behind gates that are off, unless old used them.
// old is nil on create.
func DropDisabled(s, old *corev1.PodSpec) {}

// ValidateTemplate checks labels, annotations and spec of a template. path is
// that of the template.
func ValidateTemplate(t *corev1.PodTemplateSpec, path *field.Path, o Options) field.ErrorList {
	return nil
}

// ValidateTemplateUpdate checks that a template which may not change did not.
func ValidateTemplateUpdate(t, old *corev1.PodTemplateSpec, path *field.Path, o Options) field.ErrorList {
	return nil
}

// ValidateSpec checks a spec. path is that of the spec.
func ValidateSpec(s *corev1.PodSpec, path *field.Path, o Options) field.ErrorList { return nil }

// Warnings tells a client what it had better not use. path is that of the
// template (nil for a Pod), old nil on create.
func Warnings(path *field.Path, t, old *corev1.PodTemplateSpec) []string { return nil }
