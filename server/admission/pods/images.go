package pods

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/status"
)

// AlwaysPullImages makes pods pull their images at every start, so that only users who may pull an image can
// use it.
type AlwaysPullImages struct{ admission.CreatesAndUpdates }

var (
	_ admission.Mutator   = AlwaysPullImages{}
	_ admission.Validator = AlwaysPullImages{}
)

// Name implements admission.Plugin.
func (AlwaysPullImages) Name() string { return "AlwaysPullImages" }

// image is one use of an image by a pod: the image, unless it is a volume's, and when
// it is pulled.
type image struct {
	name   string
	policy *corev1.PullPolicy
	path   *field.Path
}

func imagesOf(pod *corev1.Pod) (containers, volumes []image) {
	spec := field.NewPath("spec")
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		containers = append(containers, image{c.Image, &c.ImagePullPolicy, spec.Child("initContainers").Index(i).Child("imagePullPolicy")})
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		containers = append(containers, image{c.Image, &c.ImagePullPolicy, spec.Child("containers").Index(i).Child("imagePullPolicy")})
	}
	for i := range pod.Spec.EphemeralContainers {
		c := &pod.Spec.EphemeralContainers[i]
		containers = append(containers, image{c.Image, &c.ImagePullPolicy, spec.Child("ephemeralContainers").Index(i).Child("imagePullPolicy")})
	}
	for i := range pod.Spec.Volumes {
		if v := pod.Spec.Volumes[i].Image; v != nil {
			volumes = append(volumes, image{"", &v.PullPolicy, spec.Child("volumes").Index(i).Child("image", "pullPolicy")})
		}
	}
	return containers, volumes
}

// pulled returns the images of a pod that is new, or has new ones.
func pulled(a *admission.Attributes) []image {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is("", "pods", "") {
		return nil
	}
	images, volumes := imagesOf(pod)
	if old, ok := a.Old.(*corev1.Pod); ok && a.Operation == admission.Update {
		before, _ := imagesOf(old)
		known := make(map[string]bool, len(before))
		for _, i := range before {
			known[i.name] = true
		}
		if !slices.ContainsFunc(images, func(i image) bool { return !known[i.name] }) {
			return nil
		}
	}
	return append(images, volumes...)
}

// Admit implements admission.Mutator.
func (AlwaysPullImages) Admit(_ context.Context, a *admission.Attributes) error {
	for _, i := range pulled(a) {
		*i.policy = corev1.PullAlways
	}
	return nil
}

// Validate implements admission.Validator.
func (AlwaysPullImages) Validate(_ context.Context, a *admission.Attributes) error {
	var errs []error
	for _, i := range pulled(a) {
		if *i.policy != corev1.PullAlways {
			errs = append(errs, a.Forbid(field.NotSupported(i.path, *i.policy, []string{string(corev1.PullAlways)})))
		}
	}
	if len(errs) > 0 {
		return status.Plain(rules.Aggregate(errs).Error())
	}
	return nil
}
