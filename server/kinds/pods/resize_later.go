package pods

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// prepareLaterResize is prepareResize of releases after 1.32: it takes the resources of containers, including
// init containers, and those of the pod as a whole if the gate is on. Added, removed and reordered containers
// stay, for validation to refuse.
func (r podRules) prepareLaterResize(pod, was *corev1.Pod) {
	if len(pod.Spec.Containers) == len(was.Spec.Containers) && len(pod.Spec.InitContainers) == len(was.Spec.InitContainers) {
		sent := pod.Spec
		pod.Spec, pod.Status = *was.Spec.DeepCopy(), was.Status
		metav1.ResetObjectMetaForStatus(&pod.ObjectMeta, &was.ObjectMeta)
		if r.wholeResize {
			pod.Spec.Resources = sent.Resources
		}
		pod.Spec.Containers = resized(sent.Containers, pod.Spec.Containers)
		pod.Spec.InitContainers = resized(sent.InitContainers, pod.Spec.InitContainers)
	}
	r.spec.DropDisabled(&pod.Spec, &was.Spec)
}

// resized returns old containers with the resources of those sent; where names differ, those sent.
func resized(sent, old []corev1.Container) []corev1.Container {
	for i := range sent {
		if old[i].Name != sent[i].Name {
			return sent
		}
		old[i].Resources, old[i].ResizePolicy = sent[i].Resources, sent[i].ResizePolicy
	}
	return old
}

// validateLaterResize is validateResize of releases after 1.32.
func (r podRules) validateLaterResize(pod, was *corev1.Pod) field.ErrorList {
	_, mirror := was.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case mirror:
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods cannot be resized")}
	case was.Spec.OS != nil && was.Spec.OS.Name == corev1.Windows:
		return field.ErrorList{field.Forbidden(field.NewPath(""), "windows pods cannot be resized")}
	}
	p, whole := field.NewPath("spec"), sizedAsWhole(was) || sizedAsWhole(pod)
	errs := podspec.ValidatePod(pod, r.spec.PodOptions(pod, was))
	errs = rules.InvalidIf(errs, r.qos(was) != qosOf(&pod.Spec, r.whole), p, pod.Status.QOSClass, "Pod QOS Class may not change as a result of resizing")
	errs = rules.ForbiddenIf(errs, !canResize(was), p, "Pod running on node without support for resize")
	rest := pod.Spec.DeepCopy()
	if whole && !r.wholeResize {
		return append(errs, field.Forbidden(field.NewPath(""), "resize of pods with pod-level resources is forbidden when InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"))
	}
	if whole {
		errs = append(errs, wholeResize(pod.Spec.Resources, was.Spec.Resources, rest, p)...)
	}
	errs = rules.ForbiddenIf(errs, len(was.Status.NodeAllocatableResourceClaimStatuses) > 0, p, "pods with node allocatable resource claims cannot be resized")
	order := sameOrder(pod.Spec.Containers, was.Spec.Containers, "containers", p)
	order = append(order, sameOrder(pod.Spec.InitContainers, was.Spec.InitContainers, "initContainers", p)...)
	if len(order) > 0 {
		return append(errs, order...)
	}
	for i := range rules.Until(&errs, was.Spec.InitContainers) {
		if from := &was.Spec.InitContainers[i]; r.initResize || podspec.Restartable(from) {
			errs = append(errs, removedResources(&pod.Spec.InitContainers[i], from, p.Child("initContainers").Index(i))...)
		}
	}
	for i := range rules.Until(&errs, was.Spec.Containers) {
		errs = append(errs, removedResources(&pod.Spec.Containers[i], &was.Spec.Containers[i], p.Child("containers").Index(i))...)
	}
	for i := range rules.Until(&errs, rest.Containers) {
		keepComputeOf(&rest.Containers[i], &was.Spec.Containers[i])
		errs = rules.ForbiddenIf(errs, !equality.Semantic.DeepEqual(rest.Containers[i], was.Spec.Containers[i]), p, "only cpu and memory resources are mutable")
	}
	for i := range rules.Until(&errs, rest.InitContainers) {
		errs = append(errs, r.initResizes(&rest.InitContainers[i], &was.Spec.InitContainers[i], i, p)...)
	}
	if len(errs) > 0 {
		return errs
	}
	return rules.ForbiddenIf(errs, !equality.Semantic.DeepEqual(*rest, was.Spec), p, "only cpu and memory resources are mutable")
}

// sameOrder refuses other containers than there were, and the same in another order.
func sameOrder(list, old []corev1.Container, name string, p *field.Path) field.ErrorList {
	if len(list) != len(old) {
		return field.ErrorList{field.Forbidden(p.Child(name), name+" may not be added or removed on resize")}
	}
	var errs field.ErrorList
	for i := range rules.Until(&errs, old) {
		errs = rules.ForbiddenIf(errs, list[i].Name != old[i].Name, p.Child(name).Index(i).Child("name"), name+" may not be renamed or reordered on resize")
	}
	return errs
}

func removedResources(to, from *corev1.Container, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = rules.ForbiddenIf(errs, lacks(to.Resources.Requests, from.Resources.Requests), p.Child("resources").Child("requests"), "resource requests cannot be removed")
	return rules.ForbiddenIf(errs, lacks(to.Resources.Limits, from.Resources.Limits), p.Child("resources").Child("limits"), "resource limits cannot be removed")
}

// initResizes checks the changes of an init container, and reverts the permitted ones in c. p is the path of
// the spec.
func (r podRules) initResizes(c, old *corev1.Container, i int, p *field.Path) field.ErrorList {
	sidecar, changed := podspec.Restartable(c), !equality.Semantic.DeepEqual(c, old)
	if !sidecar && !r.initResize {
		return rules.ForbiddenIf(nil, changed, p, "resources for non-sidecar init containers are immutable")
	}
	keepComputeOf(c, old)
	at := p.Child("initContainers").Index(i)
	errs := rules.ForbiddenIf(nil, !equality.Semantic.DeepEqual(c, old), at, "only cpu and memory resources for init or sidecar containers are mutable")
	if !changed || sidecar {
		return errs
	}
	for _, policy := range c.ResizePolicy {
		errs = rules.ForbiddenIf(errs, policy.RestartPolicy == corev1.RestartContainer, at, "non-sidecar init containers with a resize policy of RestartContainer cannot be resized")
	}
	return errs
}

// wholeResize checks the changes of the resources of the pod as a whole, and reverts the permitted ones in
// rest.
func wholeResize(to, from *corev1.ResourceRequirements, rest *corev1.PodSpec, p *field.Path) field.ErrorList {
	if from != nil && to == nil {
		return field.ErrorList{field.Forbidden(p.Child("resources"), "pod-level resources cannot be removed")}
	}
	var errs field.ErrorList
	var requests, limits corev1.ResourceList
	if from != nil {
		requests, limits = from.Requests, from.Limits
		errs = rules.ForbiddenIf(errs, lacks(to.Requests, requests), p.Child("resources").Child("requests"), "pod-level resource requests cannot be removed")
		errs = rules.ForbiddenIf(errs, lacks(to.Limits, limits), p.Child("resources").Child("limits"), "pod-level resource limits cannot be removed")
	}
	keepCompute(&rest.Resources.Requests, requests)
	keepCompute(&rest.Resources.Limits, limits)
	if r := rest.Resources; from == nil && len(r.Requests)+len(r.Limits)+len(r.Claims) == 0 {
		rest.Resources = nil
	}
	return rules.ForbiddenIf(errs, !equality.Semantic.DeepEqual(rest.Resources, from), p, "only cpu and memory resources are mutable at pod-level")
}

// keepComputeOf restores the parts of a container that may change: CPU and memory. As in a stock server,
// claims count as changed.
func keepComputeOf(c, old *corev1.Container) {
	c.Resources.Claims = nil
	keepCompute(&c.Resources.Limits, old.Resources.Limits)
	keepCompute(&c.Resources.Requests, old.Resources.Requests)
}

func keepCompute(list *corev1.ResourceList, old corev1.ResourceList) {
	for _, name := range resizable {
		delete(*list, name)
		if q, ok := old[name]; ok {
			if *list == nil {
				*list = corev1.ResourceList{}
			}
			(*list)[name] = q
		}
	}
}
