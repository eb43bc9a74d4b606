package pods

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/server/admission"
	kindpods "github.com/rowlock/rowlock/server/kinds/pods"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/status"
)

// TolerationLimits gives pods the tolerations that their namespace has for them, and
// refuses those that it does not allow.
type TolerationLimits struct {
	admission.CreatesAndUpdates
	Objects      admission.Objects
	PodResources bool // pods may have resources for all of their containers together
	// Default and Allowed apply to namespaces without annotations.
	Default, Allowed []corev1.Toleration
}

var (
	_ admission.Mutator   = TolerationLimits{}
	_ admission.Validator = TolerationLimits{}
)

const (
	defaultTolerations = "scheduler.alpha.kubernetes.io/defaultTolerations"
	allowedTolerations = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
)

// ParseTolerationLimits reads the plugin's part of an admission configuration file.
func ParseTolerationLimits(data []byte) (TolerationLimits, error) {
	var c struct {
		APIVersion string              `json:"apiVersion"`
		Kind       string              `json:"kind"`
		Default    []corev1.Toleration `json:"default"`
		Whitelist  []corev1.Toleration `json:"whitelist"`
	}
	if data == nil {
		return TolerationLimits{}, nil
	}
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return TolerationLimits{}, err
	}
	if c.APIVersion != "podtolerationrestriction.admission.k8s.io/v1alpha1" || c.Kind != "Configuration" {
		return TolerationLimits{}, fmt.Errorf("%s %s is not Configuration of podtolerationrestriction.admission.k8s.io/v1alpha1", c.APIVersion, c.Kind)
	}
	errs := podspec.ValidateTolerations(c.Default, field.NewPath("default"), podspec.Options{})
	errs = append(errs, podspec.ValidateTolerations(c.Whitelist, field.NewPath("whitelist"), podspec.Options{})...)
	return TolerationLimits{Default: c.Default, Allowed: c.Whitelist}, errs.ToAggregate()
}

// Name implements admission.Plugin.
func (TolerationLimits) Name() string { return "PodTolerationRestriction" }

// Admit implements admission.Mutator.
func (p TolerationLimits) Admit(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is("", "pods", "") {
		return nil
	}
	var more []corev1.Toleration
	if a.Operation == admission.Create {
		list, found, err := p.annotated(ctx, a, defaultTolerations)
		if err != nil {
			return err
		}
		if more = slices.Clone(list); !found {
			more = slices.Clone(p.Default)
		}
	}
	if kindpods.QOS(pod, p.PodResources) != corev1.PodQOSBestEffort {
		more = append(more, corev1.Toleration{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	if len(more) > 0 {
		pod.Spec.Tolerations = mergeTolerations(slices.Concat(pod.Spec.Tolerations, more))
	}
	return p.Validate(ctx, a)
}

// Validate implements admission.Validator.
func (p TolerationLimits) Validate(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is("", "pods", "") || len(pod.Spec.Tolerations) == 0 {
		return nil
	}
	whose := "namespace"
	allowed, found, err := p.annotated(ctx, a, allowedTolerations)
	if err != nil {
		return err
	}
	if !found {
		allowed, whose = p.Allowed, "cluster"
	}
	if len(allowed) == 0 {
		return nil
	}
	wide := newCovering(allowed...)
	for i := range pod.Spec.Tolerations {
		if !wide.covers(&pod.Spec.Tolerations[i]) {
			return status.Plain(fmt.Sprintf("pod tolerations (possibly merged with namespace default tolerations) conflict with its %s whitelist", whose))
		}
	}
	return nil
}

// annotated returns the tolerations in an annotation of a pod's namespace.
func (p TolerationLimits) annotated(ctx context.Context, a *admission.Attributes, key string) (list []corev1.Toleration, found bool, err error) {
	namespace, err := namespaceOf(ctx, p.Objects, a)
	if err != nil {
		return nil, false, err
	}
	text, ok := namespace.GetAnnotations()[key]
	if !ok || text == "" {
		return nil, ok, nil
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, false, status.Plain(err.Error())
	}
	return list, list != nil, nil
}
