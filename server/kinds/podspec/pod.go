package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidatePod checks the rules of a Pod at any time: meaningful annotations, the spec, and rules that do not
// apply to templates.
func ValidatePod(pod *corev1.Pod, o Options) field.ErrorList {
	c := checker{o: o}
	if len(pod.Annotations) > 0 {
		c.podAnnotations(pod.Annotations, &pod.Spec, field.NewPath("metadata").Child("annotations"))
	}
	p := field.NewPath("spec")
	c.spec(&pod.Spec, p)
	if pod.Spec.ServiceAccountName == "" {
		c.noTokens(&pod.Spec, p)
	}
	for i := range pod.Spec.Containers {
		if padded(pod.Spec.Containers[i].Image) {
			c.imageSpaces(&pod.Spec.Containers[i], p.Child("containers").Index(i))
		}
	}
	for i := range pod.Spec.InitContainers {
		if padded(pod.Spec.InitContainers[i].Image) {
			c.imageSpaces(&pod.Spec.InitContainers[i], p.Child("initContainers").Index(i))
		}
	}
	return c.errs
}

// noTokens refuses projected tokens of no account.
func (c *checker) noTokens(s *corev1.PodSpec, p *field.Path) {
	for i := range s.Volumes {
		if s.Volumes[i].Projected == nil {
			continue
		}
		for j := range s.Volumes[i].Projected.Sources {
			if s.Volumes[i].Projected.Sources[j].ServiceAccountToken != nil {
				c.forbidden(p.Child("volumes").Index(i).Child("projected").Child("sources").Index(j).Child("serviceAccountToken"),
					"must not be specified when serviceAccountName is not set")
			}
		}
	}
}
