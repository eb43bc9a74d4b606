package pods

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/request"
)

const appArmorKey = corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix

// syncAppArmor writes a container's profile into the annotation of old and into
// the field of today, whichever of the two is missing. Releases after 1.32 do not write the annotation.
func (r podRules) syncAppArmor(ctx context.Context, pod *corev1.Pod) {
	s := &pod.Spec
	if r.since133 && len(pod.Annotations) == 0 {
		return
	}
	if s.OS != nil && s.OS.Name == corev1.Windows {
		return
	}
	podspec.VisitContainers(s, func(c *corev1.Container) { r.syncContainerAppArmor(ctx, pod, c) })
}

func (r podRules) syncContainerAppArmor(ctx context.Context, pod *corev1.Pod, c *corev1.Container) {
	if c.SecurityContext == nil && len(pod.Annotations) == 0 && (pod.Spec.SecurityContext == nil || pod.Spec.SecurityContext.AppArmorProfile == nil) {
		return
	}
	key := appArmorKey + c.Name
	annotation, ok := pod.Annotations[key]
	if !ok && r.since133 {
		return
	}
	if !ok {
		if text := appArmorText(podspec.EffectiveAppArmor(&pod.Spec, c)); text != "" {
			if pod.Annotations == nil {
				pod.Annotations = make(map[string]string)
			}
			pod.Annotations[key] = text
		}
		return
	}
	if c.SecurityContext != nil && c.SecurityContext.AppArmorProfile != nil {
		return
	}
	profile := podspec.AppArmorProfile(annotation)
	if profile != nil && !podspec.ValidAppArmor(profile) {
		profile = nil
	}
	if profile != nil && equality.Semantic.DeepEqual(profile, podspec.EffectiveAppArmor(&pod.Spec, c)) {
		return
	}
	if profile != nil {
		if c.SecurityContext == nil {
			c.SecurityContext = &corev1.SecurityContext{}
		}
		c.SecurityContext.AppArmorProfile = profile
	}
	request.From(ctx).Warn(podspec.AppArmorWarning(key))
}

// appArmorText returns the annotation for a profile, "" for one that it cannot express.
func appArmorText(a *corev1.AppArmorProfile) string {
	if a == nil {
		return ""
	}
	switch a.Type {
	case corev1.AppArmorProfileTypeUnconfined:
		return corev1.DeprecatedAppArmorBetaProfileNameUnconfined
	case corev1.AppArmorProfileTypeRuntimeDefault:
		return corev1.DeprecatedAppArmorBetaProfileRuntimeDefault
	case corev1.AppArmorProfileTypeLocalhost:
		if a.LocalhostProfile != nil {
			return corev1.DeprecatedAppArmorBetaProfileNamePrefix + *a.LocalhostProfile
		}
	}
	return ""
}
