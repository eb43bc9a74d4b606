package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// where is the place of a container in its spec.
type where struct {
	list  string // "initContainers", "containers", "ephemeralContainers"
	index int
}

func (w where) path(spec *field.Path) *field.Path { return spec.Child(w.list).Index(w.index) }

// visitContainers calls f for init, regular and ephemeral containers, in that order.
func visitContainers(s *corev1.PodSpec, f func(*corev1.Container, where)) {
	for i := range s.InitContainers {
		f(&s.InitContainers[i], where{"initContainers", i})
	}
	for i := range s.Containers {
		f(&s.Containers[i], where{"containers", i})
	}
	for i := range s.EphemeralContainers {
		f(asContainer(&s.EphemeralContainers[i]), where{"ephemeralContainers", i})
	}
}

// VisitContainers calls f for all containers of a spec.
func VisitContainers(s *corev1.PodSpec, f func(*corev1.Container)) {
	visitContainers(s, func(c *corev1.Container, _ where) { f(c) })
}

// anyContainer reports whether f holds for one of the containers that visitContainers visits.
func anyContainer(s *corev1.PodSpec, f func(*corev1.Container) bool) (found bool) {
	visitContainers(s, func(c *corev1.Container, _ where) { found = found || f(c) })
	return found
}

// visitProjections calls f for each source of a projected volume.
func visitProjections(s *corev1.PodSpec, f func(*corev1.VolumeProjection)) {
	for i := range s.Volumes {
		if p := s.Volumes[i].Projected; p != nil {
			for j := range p.Sources {
				f(&p.Sources[j])
			}
		}
	}
}

// anyProjection reports whether f holds for one of them.
func anyProjection(s *corev1.PodSpec, f func(*corev1.VolumeProjection) bool) (found bool) {
	visitProjections(s, func(p *corev1.VolumeProjection) { found = found || f(p) })
	return found
}

// asContainer views the common part of an ephemeral container, which has the
// fields of a container.
func asContainer(e *corev1.EphemeralContainer) *corev1.Container {
	return (*corev1.Container)(&e.EphemeralContainerCommon)
}

func containerNames(s *corev1.PodSpec) *nameSet {
	names := &nameSet{}
	visitContainers(s, func(c *corev1.Container, _ where) { names.add(c.Name) })
	return names
}

// visitPodAffinityTerms calls f for every term of pod affinity and anti-affinity.
func visitPodAffinityTerms(s *corev1.PodSpec, f func(*corev1.PodAffinityTerm)) {
	if s.Affinity == nil {
		return
	}
	if a := s.Affinity.PodAffinity; a != nil {
		visitTerms(a.PreferredDuringSchedulingIgnoredDuringExecution, a.RequiredDuringSchedulingIgnoredDuringExecution, f)
	}
	if a := s.Affinity.PodAntiAffinity; a != nil {
		visitTerms(a.PreferredDuringSchedulingIgnoredDuringExecution, a.RequiredDuringSchedulingIgnoredDuringExecution, f)
	}
}

func visitTerms(preferred []corev1.WeightedPodAffinityTerm, required []corev1.PodAffinityTerm, f func(*corev1.PodAffinityTerm)) {
	for i := range preferred {
		f(&preferred[i].PodAffinityTerm)
	}
	for i := range required {
		f(&required[i])
	}
}

// Restartable reports whether an init container keeps running alongside the regular ones.
func Restartable(c *corev1.Container) bool {
	return c != nil && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
