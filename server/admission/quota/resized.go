package quota

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/kinds/podspec"
)

// PodUsage returns what quotas count for a stored pod. now is for a pod whose time should have ended.
func PodUsage(pod *corev1.Pod, now time.Time) corev1.ResourceList {
	return meters{now: func() time.Time { return now }, whole: true, resized: true}.usePod(pod) // stored pods have been validated
}

// taken returns the spec of a pod with the resources that it takes while it is being resized: of each the larger amount of
// the requested one and those that its node reports. If the node cannot resize the pod, only the latter count. Init
// containers that end are never resized.
func taken(pod *corev1.Pod) *corev1.PodSpec {
	s := &pod.Status
	var reported map[string]*corev1.ContainerStatus // nil: no container is
	for _, list := range [][]corev1.ContainerStatus{s.ContainerStatuses, s.InitContainerStatuses} {
		for i := range list {
			if list[i].Resources == nil {
				continue
			}
			if reported == nil {
				reported = make(map[string]*corev1.ContainerStatus)
			}
			reported[list[i].Name] = &list[i]
		}
	}
	whole := pod.Spec.Resources != nil && s.Resources != nil
	if reported == nil && !whole {
		return &pod.Spec
	}
	out, infeasible := pod.Spec, resizeInfeasible(s)
	out.Containers, out.InitContainers = slices.Clone(out.Containers), slices.Clone(out.InitContainers)
	merge := func(r, actual *corev1.ResourceRequirements, allocated corev1.ResourceList) {
		if infeasible {
			*r = corev1.ResourceRequirements{}
		}
		r.Requests, r.Limits = largest(r.Requests, actual.Requests, allocated), largest(r.Limits, actual.Limits)
	}
	each := func(c *corev1.Container) {
		if status := reported[c.Name]; status != nil {
			merge(&c.Resources, status.Resources, status.AllocatedResources)
		}
	}
	for i := range out.Containers {
		each(&out.Containers[i])
	}
	for i := range out.InitContainers {
		if podspec.Restartable(&out.InitContainers[i]) {
			each(&out.InitContainers[i])
		}
	}
	if whole {
		r := *out.Resources
		merge(&r, s.Resources, s.AllocatedResources)
		out.Resources = &r
	}
	return &out
}

// resizeInfeasible reports whether the node of a pod has found that it cannot resize it.
func resizeInfeasible(s *corev1.PodStatus) bool {
	i := slices.IndexFunc(s.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizePending })
	return i >= 0 && s.Conditions[i].Reason == corev1.PodReasonInfeasible
}

// largest returns the largest amount of each resource.
func largest(lists ...corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, list := range lists {
		for name, q := range list {
			if most, ok := out[name]; !ok || q.Cmp(most) > 0 {
				out[name] = q
			}
		}
	}
	return out
}
