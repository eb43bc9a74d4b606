package pods

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/rowlock/rowlock/server/kinds/podspec"
)

// QOS returns the quality of service of a pod: Guaranteed if every container has equal requests and limits of CPU
// and memory, BestEffort if none has any. With whole, the resources of the pod as a whole count instead. A
// class in the status stays.
func QOS(pod *corev1.Pod, whole bool) corev1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	return qosOf(&pod.Spec, whole)
}

// qos returns the quality of service class that follows from the requests and limits of a pod, also of the pod as a whole.
func (r podRules) qos(pod *corev1.Pod) corev1.PodQOSClass { return QOS(pod, r.whole) }

func qosOf(s *corev1.PodSpec, whole bool) corev1.PodQOSClass {
	if whole {
		if r, ok := podspec.WholeResources(s); ok {
			return quality(&corev1.PodSpec{Containers: []corev1.Container{{Resources: *r}}})
		}
	}
	return quality(s)
}

func quality(s *corev1.PodSpec) corev1.PodQOSClass {
	requests, limits := make(amounts, 2), make(amounts, 2)
	guaranteed := true
	for _, list := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range list {
			r := &list[i].Resources
			requests.add(r.Requests)
			if limits.add(r.Limits) < 2 {
				guaranteed = false
			}
		}
	}
	switch {
	case len(requests) == 0 && len(limits) == 0:
		return corev1.PodQOSBestEffort
	case guaranteed && requests.equal(limits):
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// amounts sums up CPU and memory.
type amounts map[corev1.ResourceName]resource.Quantity

// add sums the amounts above zero and returns how many of the two there were.
func (a amounts) add(list corev1.ResourceList) (found int) {
	for _, name := range [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		q, ok := list[name]
		if !ok || q.Sign() <= 0 {
			continue
		}
		found++
		sum := a[name].DeepCopy()
		sum.Add(q)
		a[name] = sum
	}
	return found
}

func (a amounts) equal(b amounts) bool {
	for name, q := range a {
		if other, ok := b[name]; !ok || other.Cmp(q) != 0 {
			return false
		}
	}
	return len(a) == len(b)
}
