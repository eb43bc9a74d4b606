package pods

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds/podspec"
)

// ExtendedResources lets pods onto nodes that are kept for the special resources that
// the pods ask for: such nodes have a taint with the resource's name.
type ExtendedResources struct{}

var _ admission.Mutator = ExtendedResources{}

// Name implements admission.Plugin.
func (ExtendedResources) Name() string { return "ExtendedResourceToleration" }

// Handles implements admission.Plugin.
func (ExtendedResources) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// Admit implements admission.Mutator.
func (ExtendedResources) Admit(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is("", "pods", "") {
		return nil
	}
	asked := map[string]bool{}
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			for name := range list[i].Resources.Requests {
				if podspec.IsExtendedResource(name) {
					asked[string(name)] = true
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		t := corev1.Toleration{Key: name, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
		at := slices.IndexFunc(pod.Spec.Tolerations, func(have corev1.Toleration) bool { return t.MatchToleration(&have) })
		if at >= 0 {
			pod.Spec.Tolerations[at] = t
		} else {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, t)
		}
	}
	return nil
}
