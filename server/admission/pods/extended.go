package pods

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds/podspec"
)

// ExtendedResources adds tolerations to pods for the extended resources that they request: nodes that are reserved for
// a resource have a taint with its name.
type ExtendedResources struct{ admission.CreatesAndUpdates }

var _ admission.Mutator = ExtendedResources{}

// Name implements admission.Plugin.
func (ExtendedResources) Name() string { return "ExtendedResourceToleration" }

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
	if len(asked) == 0 {
		return nil
	}
	places := make(map[corev1.Toleration]int, len(pod.Spec.Tolerations))
	for i, t := range slices.Backward(pod.Spec.Tolerations) { // the first of equal ones counts
		t.TolerationSeconds = nil
		places[t] = i
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		t := corev1.Toleration{Key: name, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
		if at, ok := places[t]; ok {
			pod.Spec.Tolerations[at] = t
		} else {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, t)
		}
	}
	return nil
}
