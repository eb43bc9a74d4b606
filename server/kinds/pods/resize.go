package pods

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// resizable are the resources that a running container can get more or less of.
var resizable = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// defaultResizePolicy sets the policy of resources that a container requests: it is not restarted
// to get others.
func defaultResizePolicy(c *corev1.Container) {
	for _, name := range resizable {
		_, requested := c.Resources.Requests[name]
		_, limited := c.Resources.Limits[name]
		hasPolicy := false
		for i := range c.ResizePolicy {
			hasPolicy = hasPolicy || c.ResizePolicy[i].ResourceName == name
		}
		if (requested || limited) && !hasPolicy {
			c.ResizePolicy = append(c.ResizePolicy, corev1.ContainerResizePolicy{ResourceName: name, RestartPolicy: corev1.NotRequired})
		}
	}
}

// resizeProposed is corev1.PodResizeStatusProposed, which newer releases of k8s.io/api do not have.
const resizeProposed corev1.PodResizeStatus = "Proposed"

// prepareResize takes only the resources of containers from the new pod, by their names: it undoes
// all other changes, and those of the list of containers. In release 1.32 init containers cannot be
// resized, sidecars neither.
func (r podRules) prepareResize(pod, was *corev1.Pod) {
	if r.since133 {
		r.prepareLaterResize(pod, was)
		return
	}
	sent, asked := pod.Spec.Containers, pod.ObjectMeta
	pod.ObjectMeta = *was.ObjectMeta.DeepCopy() // field ownership too
	pod.Name, pod.Namespace, pod.UID, pod.ResourceVersion = asked.Name, asked.Namespace, asked.UID, asked.ResourceVersion
	pod.Spec, pod.Status = *was.Spec.DeepCopy(), was.Status
	places := make(map[string]int, len(pod.Spec.Containers))
	for i := range pod.Spec.Containers {
		places[pod.Spec.Containers[i].Name] = i
	}
	for i := range sent {
		if at, ok := places[sent[i].Name]; ok {
			pod.Spec.Containers[at].Resources, pod.Spec.Containers[at].ResizePolicy = sent[i].Resources, sent[i].ResizePolicy
		}
	}
	if proposes(pod.Spec.Containers, was.Spec.Containers) {
		pod.Status.Resize = resizeProposed
	}
	r.spec.DropDisabled(&pod.Spec, &was.Spec)
}

// proposes reports whether containers ask for other resources than they did.
func proposes(list, old []corev1.Container) bool {
	for i := range list {
		if list[i].Resources.Requests != nil && !equality.Semantic.DeepEqual(list[i].Resources, old[i].Resources) {
			return true
		}
	}
	return false
}

// validateResize lets CPU and memory change, as long as the quality of service stays.
func (r podRules) validateResize(pod, was *corev1.Pod) field.ErrorList {
	if r.since133 {
		return r.validateLaterResize(pod, was)
	}
	_, mirror := was.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case sizedAsWhole(pod), sizedAsWhole(was):
		return field.ErrorList{field.Forbidden(field.NewPath(""), "pods with pod-level resources cannot be resized")}
	case mirror:
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods cannot be resized")}
	case was.Spec.OS != nil && was.Spec.OS.Name == corev1.Windows:
		return field.ErrorList{field.Forbidden(field.NewPath(""), "windows pods cannot be resized")}
	}
	p := field.NewPath("spec")
	errs := podspec.ValidatePod(pod, r.spec.PodOptions(pod, was))
	errs = rules.InvalidIf(errs, r.qos(was) != qosOf(&pod.Spec, r.whole), p, was.Status.QOSClass, "Pod QOS Class may not change as a result of resizing")
	errs = rules.ForbiddenIf(errs, !canResize(was), p, "Pod running on node without support for resize")
	for i := range rules.Until(&errs, was.Spec.Containers) {
		to, from := &pod.Spec.Containers[i].Resources, &was.Spec.Containers[i].Resources
		at := p.Child("containers").Index(i).Child("resources")
		errs = rules.ForbiddenIf(errs, lacks(to.Requests, from.Requests), at.Child("requests"), "resource requests cannot be removed")
		errs = rules.ForbiddenIf(errs, lacks(to.Limits, from.Limits), at.Child("limits"), "resource limits cannot be removed")
	}
	rest := pod.Spec.DeepCopy()
	keepSize(rest.Containers, was.Spec.Containers)
	if !equality.Semantic.DeepEqual(*rest, was.Spec) {
		errs = append(errs, field.Forbidden(p, "only cpu and memory resources are mutable\n"+changed(rest, &was.Spec, "spec")))
	}
	return errs
}

// lacks reports whether one of the resources in old is not in list.
func lacks(list, old corev1.ResourceList) bool {
	for name := range old {
		if _, ok := list[name]; !ok {
			return true
		}
	}
	return false
}

// sizedAsWhole reports whether a pod has resources for all of its containers together.
func sizedAsWhole(pod *corev1.Pod) bool {
	r := pod.Spec.Resources
	return r != nil && len(r.Requests)+len(r.Limits) > 0
}

// canResize reports whether the kubelet of a pod's node reports the resources of its containers, as kubelets
// that can resize do.
func canResize(pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if c := &pod.Status.ContainerStatuses[i]; c.State.Running != nil {
			return c.Resources != nil
		}
	}
	return true
}

// keepSize restores the parts of containers that may change: CPU, memory, and the resize policy. As in a
// stock server of this release, missing lists may become empty or not, and claims of containers count as
// changed.
func keepSize(list, old []corev1.Container) {
	for i := range list {
		list[i].ResizePolicy, list[i].Resources.Claims = old[i].ResizePolicy, nil
		restore(&list[i].Resources.Requests, old[i].Resources.Requests)
		restore(&list[i].Resources.Limits, old[i].Resources.Limits)
	}
}

func restore(list *corev1.ResourceList, old corev1.ResourceList) {
	if old == nil {
		*list = nil
		return
	}
	for _, name := range resizable {
		q, ok := old[name]
		switch {
		case !ok:
			delete(*list, name)
		case *list == nil:
			*list = corev1.ResourceList{name: q}
		default:
			(*list)[name] = q
		}
	}
}
