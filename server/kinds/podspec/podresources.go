package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// podLevelResources are those that a pod can have for all of its containers together.
var podLevelResources = []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory)}

// WholeResources are the resources of a pod as a whole; ok is false where there are none.
func WholeResources(s *corev1.PodSpec) (resources *corev1.ResourceRequirements, ok bool) {
	if s.Resources == nil {
		return nil, false
	}
	for _, list := range []corev1.ResourceList{s.Resources.Requests, s.Resources.Limits} {
		for name := range list {
			if contains(podLevelResources, string(name)) {
				return s.Resources, true
			}
		}
	}
	return nil, false
}

// Overrule puts the amounts of a pod as a whole in the place of those that its containers add
// up to.
func Overrule(sum, whole corev1.ResourceList) {
	for name, q := range whole {
		if contains(podLevelResources, string(name)) {
			sum[name] = q.DeepCopy()
		}
	}
}

// DefaultPodRequests fills in what a Pod requests as a whole, where it has limits as a
// whole: what its containers request together, else as much as the limit.
func (r Rules) DefaultPodRequests(s *corev1.PodSpec) {
	if !r.podResources || s.Resources == nil || len(s.Resources.Limits) == 0 {
		return
	}
	requests := s.Resources.Requests
	if requests == nil {
		requests = corev1.ResourceList{}
	}
	for _, list := range []corev1.ResourceList{containerRequests(s), s.Resources.Limits} {
		for name, q := range list {
			if _, ok := requests[name]; !ok && contains(podLevelResources, string(name)) {
				requests[name] = q.DeepCopy()
			}
		}
	}
	if len(requests) > 0 {
		s.Resources.Requests = requests
	}
}

// containerRequests are what the containers of a pod request together at most: those that
// run beside one another are added up, and init containers run one after the other, beside
// the sidecars before them.
func containerRequests(s *corev1.PodSpec) corev1.ResourceList {
	total, sidecars, init := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range s.Containers {
		addUp(total, s.Containers[i].Resources.Requests)
	}
	for i := range s.InitContainers {
		c := &s.InitContainers[i]
		alone := c.Resources.Requests.DeepCopy()
		if alone == nil {
			alone = corev1.ResourceList{}
		}
		addUp(alone, sidecars)
		if Restartable(c) {
			addUp(total, c.Resources.Requests)
			addUp(sidecars, c.Resources.Requests)
		}
		atLeast(init, alone)
	}
	atLeast(total, init)
	return total
}

func addUp(sum, list corev1.ResourceList) {
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
	c.forbiddenIf(s.Resources.Claims != nil, p, "claims", "claims cannot be set for Resources at pod-level")
	c.ofPod = true
	c.resources(s.Resources, claims, p, "")
	c.ofPod = false
	requests := containerRequests(s)
	for _, name := range sortedKeys(requests) {
		whole, parts := s.Resources.Requests[name], requests[name]
		if parts.Cmp(whole) > 0 {
			c.invalid(p.Child("requests").Key(string(name)), whole.String(), fmt.Sprintf("must be greater than or equal to aggregate container requests of %s", parts.String()))
		}
	}
	for i := range s.Containers {
		c.withinPod(s.Containers[i].Resources.Limits, s.Resources.Limits, p.Child("containers").Index(i))
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
