package pods

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// prepareEphemeral takes the ephemeral containers of the new pod and nothing else: not even their owners,
// which a stock server of release 1.32 does not record here.
func (r podRules) prepareEphemeral(pod, was *corev1.Pod) {
	added := pod.Spec.EphemeralContainers
	pod.Spec, pod.Status = was.Spec, was.Status
	pod.Spec.EphemeralContainers = added
	metav1.ResetObjectMetaForStatus(&pod.ObjectMeta, &was.ObjectMeta)
	if !r.since133 {
		pod.ManagedFields, pod.GenerateName = was.ManagedFields, was.GenerateName
	}
	r.spec.DropDisabled(&pod.Spec, &was.Spec)
}

// validateEphemeral lets ephemeral containers be added, never changed or removed.
func (r podRules) validateEphemeral(pod, was *corev1.Pod) field.ErrorList {
	if _, mirror := was.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods do not support ephemeral containers")}
	}
	o := r.spec.PodOptions(pod, was)
	errs := podspec.ValidatePod(pod, o)
	errs = append(errs, annotationUpdate(pod, was, o)...)

	p := field.NewPath("spec").Child("ephemeralContainers")
	byName := make(map[string]*corev1.EphemeralContainer, len(pod.Spec.EphemeralContainers))
	for i := range pod.Spec.EphemeralContainers {
		byName[pod.Spec.EphemeralContainers[i].Name] = &pod.Spec.EphemeralContainers[i]
	}
	for i := range rules.Until(&errs, was.Spec.EphemeralContainers) {
		before := &was.Spec.EphemeralContainers[i]
		now, ok := byName[before.Name]
		if !ok {
			errs = append(errs, field.Forbidden(p, fmt.Sprintf("existing ephemeral containers %q may not be removed\n", before.Name)))
		} else if !equality.Semantic.DeepEqual(before, now) {
			errs = append(errs, field.Forbidden(p, fmt.Sprintf("existing ephemeral containers %q may not be changed\n%v", before.Name, changed(now, before, "ephemeralContainer"))))
		}
	}
	return errs
}
