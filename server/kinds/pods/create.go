package pods

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// setDefaults sets the defaults of a pod. Defaults that templates do not have come first: they depend on the
// client's values.
func (r podRules) setDefaults(pod *corev1.Pod) {
	podspec.DropLegacyAnnotations(pod.Annotations)
	s := &pod.Spec
	if g := s.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		s.TerminationGracePeriodSeconds = new(int64(1))
	}
	for i := range s.Containers {
		requestLimits(&s.Containers[i].Resources)
	}
	for i := range s.InitContainers {
		requestLimits(&s.InitContainers[i].Resources)
	}
	r.spec.DefaultPodRequests(s)
	if r.resize && !r.since133 {
		for i := range s.Containers {
			defaultResizePolicy(&s.Containers[i])
		}
	}
	if s.EnableServiceLinks == nil {
		s.EnableServiceLinks = new(corev1.DefaultEnableServiceLinks)
	}
	if s.HostNetwork {
		exposePorts(s.Containers)
		exposePorts(s.InitContainers)
	}
	r.spec.DefaultPodSpec(s)
	defaultStatus(&pod.Status)
}

// requestLimits sets requests that are absent to the limit.
func requestLimits(r *corev1.ResourceRequirements) {
	if r.Limits == nil {
		return
	}
	if r.Requests == nil {
		r.Requests = make(corev1.ResourceList, len(r.Limits))
	}
	for name, q := range r.Limits {
		if _, ok := r.Requests[name]; !ok {
			r.Requests[name] = q.DeepCopy()
		}
	}
}

// exposePorts gives ports on the node's network the same number there.
func exposePorts(containers []corev1.Container) {
	for i := range containers {
		for j := range containers[i].Ports {
			if p := &containers[i].Ports[j]; p.HostPort == 0 {
				p.HostPort = p.ContainerPort
			}
		}
	}
}

// defaultStatus brings the first address and the list of addresses in step. If
// they differ, a client that knows only the one has written.
func defaultStatus(s *corev1.PodStatus) {
	switch {
	case s.PodIP != "" && (len(s.PodIPs) == 0 || s.PodIPs[0].IP != s.PodIP):
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	case s.PodIP == "" && len(s.PodIPs) > 0:
		s.PodIP = s.PodIPs[0].IP
	}
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			podspec.DefaultResources(list[i].AllocatedResources)
			if list[i].Resources != nil {
				podspec.DefaultResources(list[i].Resources.Limits)
				podspec.DefaultResources(list[i].Resources.Requests)
			}
		}
	}
}

func (r podRules) prepareForCreate(ctx context.Context, pod *corev1.Pod) {
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: r.qos(pod)}
	r.spec.DropDisabled(&pod.Spec, nil)
	if len(pod.Spec.SchedulingGates) > 0 {
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			LastTransitionTime: metav1.Now(),
			Reason:             corev1.PodReasonSchedulingGated,
			Message:            "Scheduling is blocked due to non-empty scheduling gates",
		}}
	}
	if r.resize && !r.since133 { // admission may have given containers their resources
		for i := range pod.Spec.Containers {
			defaultResizePolicy(&pod.Spec.Containers[i])
		}
	}
	r.spec.MergeLabelKeys(&pod.Spec, pod.Labels)
	r.syncAppArmor(ctx, pod)
}

func (r podRules) validateCreate(pod *corev1.Pod) field.ErrorList {
	errs := podspec.ValidatePod(pod, r.spec.PodOptions(pod, nil))
	spec := field.NewPath("spec")
	errs = rules.ForbiddenIf(errs, len(pod.Spec.EphemeralContainers) > 0, spec.Child("ephemeralContainers"), "cannot be set on create")
	errs = rules.ForbiddenIf(errs, pod.Spec.NodeName != "" && len(pod.Spec.SchedulingGates) != 0, spec.Child("nodeName"), "cannot be set until all schedulingGates have been cleared")
	return append(errs, podspec.ValidateProfilesMatch(&pod.ObjectMeta, &pod.Spec, spec)...)
}

// warnings are for authors of manifests; updates come from controllers.
func (r podRules) warnings(pod, old *corev1.Pod) []string {
	if old != nil {
		return nil
	}
	var out []string
	if msgs := utilvalidation.IsDNS1123Label(pod.Name); len(msgs) > 0 {
		out = append(out, fmt.Sprintf("metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: %v", msgs))
	}
	return append(out, r.spec.PodWarnings(pod)...)
}

// graceful returns how long a pod may take to end: as long as the client allows, else as the spec
// states; not at all if no node runs it or it has ended.
func graceful(pod *corev1.Pod, opts *metav1.DeleteOptions) (int64, bool) {
	if opts == nil {
		return 0, false
	}
	var seconds int64
	switch {
	case pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
	case opts.GracePeriodSeconds != nil:
		seconds = *opts.GracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	if seconds < 0 {
		seconds = 1
	}
	opts.GracePeriodSeconds = &seconds
	return seconds, true
}
