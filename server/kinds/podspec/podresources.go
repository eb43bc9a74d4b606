package podspec

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// podLevelResources are the resources that a pod can have for all of its containers together, in addition
// to huge pages.
var podLevelResources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// ofWholePod reports whether a pod can have a resource for all of its containers together.
func (r Rules) ofWholePod(name corev1.ResourceName) bool { return ofWholePod(name, r.since133) }

func ofWholePod(name corev1.ResourceName, hugePages bool) bool {
	return slices.Contains(podLevelResources, name) || hugePages && isHugePages(name)
}

// WholeResources returns the resources of a pod as a whole; ok is false where there are none.
func WholeResources(s *corev1.PodSpec) (resources *corev1.ResourceRequirements, ok bool) {
	if s.Resources == nil {
		return nil, false
	}
	for _, list := range []corev1.ResourceList{s.Resources.Requests, s.Resources.Limits} {
		for name := range list {
			if ofWholePod(name, true) { // which 1.32 has none of
				return s.Resources, true
			}
		}
	}
	return nil, false
}

// ApplyPodLevel puts the amounts of a pod as a whole in the place of those that its containers add
// up to.
func ApplyPodLevel(sum, whole corev1.ResourceList) {
	for name, q := range whole {
		if ofWholePod(name, true) {
			sum[name] = q.DeepCopy()
		}
	}
}

// DefaultPodRequests sets the requests of a Pod as a whole, if it has limits as a whole: to the sum of its
// containers, otherwise to the limit.
func (r Rules) DefaultPodRequests(s *corev1.PodSpec) {
	if !r.podResources || s.Resources == nil {
		return
	}
	if r.since133 {
		defaultHugePages(s)
	}
	if len(s.Resources.Limits) == 0 {
		return
	}
	requests := s.Resources.Requests
	if requests == nil {
		requests = corev1.ResourceList{}
	}
	fill := func(list corev1.ResourceList, takes func(corev1.ResourceName) bool) {
		for name, q := range list {
			if _, ok := requests[name]; !ok && takes(name) {
				requests[name] = q.DeepCopy()
			}
		}
	}
	fill(ContainerRequests(s), func(name corev1.ResourceName) bool { return slices.Contains(podLevelResources, name) })
	fill(s.Resources.Limits, r.ofWholePod)
	if len(requests) > 0 {
		s.Resources.Requests = requests
	}
}

// defaultHugePages limits a Pod that has resources as a whole to the huge pages of its containers.
func defaultHugePages(s *corev1.PodSpec) {
	if len(s.Resources.Limits)+len(s.Resources.Requests) == 0 {
		return
	}
	for name, q := range ContainerLimits(s) {
		_, limited := s.Resources.Limits[name]
		if _, requested := s.Resources.Requests[name]; limited || requested || !isHugePages(name) {
			continue
		}
		if s.Resources.Limits == nil {
			s.Resources.Limits = corev1.ResourceList{}
		}
		s.Resources.Limits[name] = q.DeepCopy()
	}
}

// PodRequests returns a pod's requests of its node: for its containers together or as a whole, and for its
// overhead.
func PodRequests(s *corev1.PodSpec) corev1.ResourceList {
	sum := ContainerRequests(s)
	if s.Resources != nil {
		ApplyPodLevel(sum, s.Resources.Requests)
	}
	AddUp(sum, s.Overhead)
	return sum
}

// ContainerRequests returns the peak requests of the containers of a pod.
func ContainerRequests(s *corev1.PodSpec) corev1.ResourceList {
	return together(s, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests })
}

// ContainerLimits returns the peak limits of the containers of a pod.
func ContainerLimits(s *corev1.PodSpec) corev1.ResourceList {
	return together(s, func(c *corev1.Container) corev1.ResourceList { return c.Resources.Limits })
}

// together returns the largest amount of the containers that run at the same time: all regular ones, or one init container,
// each with the sidecars before it.
func together(s *corev1.PodSpec, of func(*corev1.Container) corev1.ResourceList) corev1.ResourceList {
	total, sidecars, init := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range s.Containers {
		AddUp(total, of(&s.Containers[i]))
	}
	for i := range s.InitContainers {
		c := &s.InitContainers[i]
		alone := of(c).DeepCopy()
		if alone == nil {
			alone = corev1.ResourceList{}
		}
		AddUp(alone, sidecars)
		if Restartable(c) {
			AddUp(total, of(c))
			AddUp(sidecars, of(c))
		}
		atLeast(init, alone)
	}
	atLeast(total, init)
	return total
}

// AddUp adds the amounts of a list to a sum.
func AddUp(sum, list corev1.ResourceList) {
	for name, q := range list {
		n := sum[name].DeepCopy()
		n.Add(q)
		sum[name] = n
	}
}

func atLeast(least, list corev1.ResourceList) {
	for name, q := range list {
		if was, ok := least[name]; !ok || q.Cmp(was) > 0 {
			least[name] = q.DeepCopy()
		}
	}
}

// podResources checks the resources of a pod as a whole.
func (c *checker) podResources(s *corev1.PodSpec, claims *claimNames, p *field.Path) {
	detail := "claims cannot be set for Resources at pod-level"
	if c.o.Since133 {
		detail = "claims may not be set for Resources at pod-level"
		if s.OS != nil && s.OS.Name == corev1.Windows {
			c.forbidden(p, "may not be set for a windows pod")
			return
		}
	}
	c.forbiddenIf(s.Resources.Claims != nil, p, "claims", detail)
	c.ofPod = true
	c.resources(s.Resources, claims, p, "")
	c.ofPod = false
	requests := ContainerRequests(s)
	for _, name := range sortedKeys(requests) {
		whole, set := s.Resources.Requests[name]
		parts := requests[name]
		if (set || !c.o.Since133) && parts.Cmp(whole) > 0 {
			c.invalid(p.Child("requests").Key(string(name)), whole.String(), fmt.Sprintf("must be greater than or equal to aggregate container requests of %s", parts.String()))
		}
	}
	if c.o.Since133 {
		c.hugePagesOfPod(s, p.Child("limits"))
	}
	for i := range s.Containers {
		c.withinPod(s.Containers[i].Resources.Limits, s.Resources.Limits, p.Child("containers").Index(i))
	}
}

// hugePagesOfPod checks that the containers of a pod may not use more huge pages than the pod.
func (c *checker) hugePagesOfPod(s *corev1.PodSpec, p *field.Path) {
	limits := ContainerLimits(s)
	for _, name := range sortedKeys(limits) {
		whole, set := s.Resources.Limits[name]
		if parts := limits[name]; set && isHugePages(name) && parts.Cmp(whole) > 0 {
			c.invalid(p.Key(string(name)), whole.String(), fmt.Sprintf("must be greater than or equal to aggregate container limits of %s", parts.String()))
		}
	}
}

// withinPod checks that a container may not use more than its pod.
func (c *checker) withinPod(limits, whole corev1.ResourceList, p *field.Path) {
	for _, name := range sortedKeys(limits) {
		var limit, most resource.Quantity = limits[name], whole[name]
		if _, ok := whole[name]; ok && limit.Cmp(most) > 0 {
			c.invalid(p.Key(string(name)).Child("limits"), limit.String(), fmt.Sprintf("must be less than or equal to pod limits of %s", most.String()))
		}
	}
}
