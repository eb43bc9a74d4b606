package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/rowlock/rowlock/server/kinds/pods"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

const countPods corev1.ResourceName = "count/pods"

// podNames are the quota names for pods, in addition to huge pages and extended resources. mandatory: a pod to which
// such a limit applies must set the amount in each container, or have resources as a whole.
var podNames = map[corev1.ResourceName]struct{ mandatory bool }{
	countPods:                               {},
	corev1.ResourcePods:                     {},
	corev1.ResourceCPU:                      {mandatory: true},
	corev1.ResourceMemory:                   {mandatory: true},
	corev1.ResourceEphemeralStorage:         {},
	corev1.ResourceRequestsCPU:              {mandatory: true},
	corev1.ResourceRequestsMemory:           {mandatory: true},
	corev1.ResourceRequestsEphemeralStorage: {},
	corev1.ResourceLimitsCPU:                {mandatory: true},
	corev1.ResourceLimitsMemory:             {mandatory: true},
	corev1.ResourceLimitsEphemeralStorage:   {},
}

func countsPods(name corev1.ResourceName) bool {
	if _, ok := podNames[name]; ok {
		return true
	}
	n := string(name)
	return strings.HasPrefix(n, corev1.ResourceHugePagesPrefix) || strings.HasPrefix(n, corev1.ResourceRequestsHugePagesPrefix) ||
		strings.HasPrefix(n, corev1.DefaultResourceRequestsPrefix) && !podspec.IsNativeResource(name)
}

// usePod counts a pod that has ended as an object alone.
func (p meters) usePod(obj runtime.Object) corev1.ResourceList {
	l := corev1.ResourceList{countPods: number(1)}
	pod, ok := obj.(*corev1.Pod)
	if !ok || p.ended(pod) {
		return l
	}
	l[corev1.ResourcePods] = number(1)
	spec := &pod.Spec
	if p.resized {
		spec = taken(pod)
	}
	var whole corev1.ResourceRequirements
	if r, ok := podspec.WholeResources(spec); ok && p.whole {
		whole = *r
	}
	named(l, podDemand(pod, podspec.ContainerRequests(spec), whole.Requests, true), podDemand(pod, podspec.ContainerLimits(spec), whole.Limits, false))
	return l
}

// ended reports whether a pod has ended, or is past its deadline.
func (p meters) ended(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return true
	}
	grace := pod.DeletionGracePeriodSeconds
	return pod.DeletionTimestamp != nil && grace != nil && p.now().After(pod.DeletionTimestamp.Add(time.Duration(*grace)*time.Second))
}

// named adds requests and limits under the names that quotas have for them.
func named(l, requests, limits corev1.ResourceList) {
	for name, q := range requests {
		ofRequests := corev1.DefaultResourceRequestsPrefix + name
		switch {
		case podspec.IsContainerResource(name): // CPU, memory, ephemeral storage, huge pages
			l[name], l[ofRequests] = q, q
		case podspec.IsExtendedResource(name):
			l[ofRequests] = q
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if q, ok := limits[name]; ok {
			l["limits."+name] = q
		}
	}
}

// podDemand returns the peak demand of a pod, given that of its containers. Resources of the pod as a whole take precedence. The
// overhead of its runtime is added; to limits only if they are not zero, which limits nothing.
func podDemand(pod *corev1.Pod, total, whole corev1.ResourceList, always bool) corev1.ResourceList {
	podspec.ApplyPodLevel(total, whole)
	for name, q := range pod.Spec.Overhead {
		if have := total[name]; always || !have.IsZero() {
			podspec.AddUp(total, corev1.ResourceList{name: q})
		}
	}
	return total
}

// requirePod requires the mandatory amounts in each container, unless the pod has resources as a whole.
func (p meters) requirePod(names []corev1.ResourceName, obj runtime.Object) error {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	if _, whole := podspec.WholeResources(&pod.Spec); whole && p.whole {
		return nil
	}
	names = mandatory(names)
	missing := map[corev1.ResourceName][]string{}
	type lack struct {
		name      corev1.ResourceName
		container string
	}
	reported := rules.Seen[lack]{}
	look := func(list []corev1.Container) {
		for i := range list {
			c := &list[i]
			have := corev1.ResourceList{}
			named(have, c.Resources.Requests, c.Resources.Limits)
			for _, name := range names {
				if _, ok := have[name]; !ok && !reported.Again(lack{name, c.Name}) {
					missing[name] = append(missing[name], c.Name)
				}
			}
		}
	}
	look(pod.Spec.Containers)
	look(pod.Spec.InitContainers)
	if len(missing) == 0 {
		return nil
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		slices.Sort(missing[name])
		texts = append(texts, fmt.Sprintf("%s for: %s", name, strings.Join(missing[name], ",")))
	}
	return fmt.Errorf("must specify %s", strings.Join(texts, "; "))
}

// mandatory returns the names that each container of a counted pod must have. They are few, whatever quotas count.
func mandatory(names []corev1.ResourceName) []corev1.ResourceName {
	return slices.DeleteFunc(slices.Clone(names), func(name corev1.ResourceName) bool { return !podNames[name].mandatory })
}

// terminates reports whether a pod has a deadline.
func terminates(obj runtime.Object) bool {
	pod, ok := obj.(*corev1.Pod)
	return ok && pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds >= 0
}

func (p meters) podInScope(s corev1.ScopedResourceSelectorRequirement, obj runtime.Object) (bool, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return false, nil
	}
	switch s.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return terminates(pod), nil
	case corev1.ResourceQuotaScopeNotTerminating:
		return !terminates(pod), nil
	case corev1.ResourceQuotaScopeBestEffort:
		return pods.QOS(pod, p.whole) == corev1.PodQOSBestEffort, nil
	case corev1.ResourceQuotaScopeNotBestEffort:
		return pods.QOS(pod, p.whole) != corev1.PodQOSBestEffort, nil
	case corev1.ResourceQuotaScopePriorityClass:
		return classSelected(s, pod.Spec.PriorityClassName)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return reachesOut(pod.Spec.Affinity), nil
	}
	return false, nil
}

var scopeOperators = map[corev1.ScopeSelectorOperator]selection.Operator{
	corev1.ScopeSelectorOpIn:           selection.In,
	corev1.ScopeSelectorOpNotIn:        selection.NotIn,
	corev1.ScopeSelectorOpExists:       selection.Exists,
	corev1.ScopeSelectorOpDoesNotExist: selection.DoesNotExist,
}

func classSelected(s corev1.ScopedResourceSelectorRequirement, class string) (bool, error) {
	op, ok := scopeOperators[s.Operator]
	if !ok {
		return false, fmt.Errorf("failed to parse and convert selector: %q is not a valid scope selector operator", s.Operator)
	}
	r, err := labels.NewRequirement(string(s.ScopeName), op, s.Values)
	if err != nil {
		return false, fmt.Errorf("failed to parse and convert selector: %w", err)
	}
	set := labels.Set{}
	if class != "" {
		set[string(s.ScopeName)] = class
	}
	return r.Matches(set), nil
}

// reachesOut reports whether pods of other namespaces count for a pod's place.
func reachesOut(a *corev1.Affinity) bool {
	if a == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	var weighted []corev1.WeightedPodAffinityTerm
	if a.PodAffinity != nil {
		terms = append(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if a.PodAntiAffinity != nil {
		terms = append(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		weighted = append(weighted, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	for _, w := range weighted {
		terms = append(terms, w.PodAffinityTerm)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil })
}
