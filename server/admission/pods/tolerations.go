package pods

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/admission"
)

// Tolerations adds the default tolerations for nodes that are not ready or unreachable.
type Tolerations struct {
	admission.CreatesAndUpdates
	NotReady, Unreachable int64 // seconds
}

var _ admission.Mutator = Tolerations{}

// Name implements admission.Plugin.
func (Tolerations) Name() string { return "DefaultTolerationSeconds" }

// Admit implements admission.Mutator.
func (p Tolerations) Admit(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is("", "pods", "") {
		return nil
	}
	notReady, unreachable := false, false
	for _, t := range pod.Spec.Tolerations {
		if t.Effect != corev1.TaintEffectNoExecute && t.Effect != "" {
			continue
		}
		notReady = notReady || t.Key == corev1.TaintNodeNotReady || t.Key == ""
		unreachable = unreachable || t.Key == corev1.TaintNodeUnreachable || t.Key == ""
	}
	add := func(key string, seconds int64) {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
		})
	}
	if !notReady {
		add(corev1.TaintNodeNotReady, p.NotReady)
	}
	if !unreachable {
		add(corev1.TaintNodeUnreachable, p.Unreachable)
	}
	return nil
}
