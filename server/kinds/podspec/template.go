package podspec

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

const tolerationsAnnotation = "scheduler.alpha.kubernetes.io/tolerations"

// ValidateTemplate checks labels, annotations and spec of a template. p is that of the template.
func ValidateTemplate(t *corev1.PodTemplateSpec, p *field.Path, o Options) field.ErrorList {
	c := checker{o: o}
	c.labels(p, "labels", t.Labels)
	if len(t.Annotations) > 0 {
		c.annotations(t.Annotations, p.Child("annotations"))
		c.podAnnotations(t.Annotations, &t.Spec, p.Child("annotations"))
	}
	spec := p.Child("spec")
	c.spec(&t.Spec, spec)
	c.profilesMatch(&t.ObjectMeta, &t.Spec, spec)
	if len(t.Spec.EphemeralContainers) > 0 {
		c.forbidden(p.Child("spec", "ephemeralContainers"), "ephemeral containers not allowed in pod template")
	}
	return c.errs
}

// annotations checks keys and size.
func (c *checker) annotations(annotations map[string]string, p *field.Path) {
	size, ok := 0, true
	for k, v := range annotations {
		size += len(k) + len(v)
		ok = ok && okQualifiedName(strings.ToLower(k))
	}
	if !ok || size > validation.TotalAnnotationSizeLimitB {
		c.add(rules.Annotations(annotations, p)...)
	}
}

// ValidatePodAnnotations checks the annotations that have a meaning for pods. p is that of the annotations.
func ValidatePodAnnotations(annotations map[string]string, s *corev1.PodSpec, p *field.Path, o Options) field.ErrorList {
	if len(annotations) == 0 {
		return nil
	}
	c := checker{o: o}
	c.podAnnotations(annotations, s, p)
	return c.errs
}

func (c *checker) podAnnotations(annotations map[string]string, s *corev1.PodSpec, p *field.Path) {
	if v, ok := annotations[corev1.MirrorPodAnnotationKey]; ok && s.NodeName == "" {
		c.invalid(p.Key(corev1.MirrorPodAnnotationKey), v, "must set spec.nodeName if mirror pod annotation is set")
	}
	if v := annotations[tolerationsAnnotation]; v != "" && len(v) <= validation.TotalAnnotationSizeLimitB { // a longer one is refused anyway
		var list []corev1.Toleration
		if err := json.Unmarshal([]byte(v), &list); err != nil {
			c.invalid(p, tolerationsAnnotation, err.Error())
		} else {
			c.tolerations(list, p.Child(tolerationsAnnotation))
		}
	}
	if !c.o.AllowInvalidPodDeletionCost && !validDeletionCost(annotations) {
		c.invalid(p.Key(corev1.PodDeletionCost), annotations[corev1.PodDeletionCost], "must be a 32bit integer")
	}
	if v, ok := annotations[corev1.SeccompPodAnnotationKey]; ok {
		c.seccompAnnotation(v, p.Child(corev1.SeccompPodAnnotationKey))
	}
	for _, k := range sortedKeys(annotations) {
		if strings.HasPrefix(k, corev1.SeccompContainerAnnotationKeyPrefix) {
			c.seccompAnnotation(annotations[k], p.Child(k))
		}
	}
	var containers *nameSet
	for _, k := range sortedKeys(annotations) {
		if name, ok := strings.CutPrefix(k, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix); ok {
			if containers == nil {
				containers = containerNames(s)
			}
			c.appArmorAnnotation(k, name, annotations[k], containers, p)
		}
	}
}

func (c *checker) seccompAnnotation(v string, p *field.Path) {
	switch v {
	case corev1.SeccompProfileRuntimeDefault, corev1.DeprecatedSeccompProfileDockerDefault, corev1.SeccompProfileNameUnconfined:
		return
	}
	if file, ok := strings.CutPrefix(v, corev1.SeccompLocalhostProfileNamePrefix); ok {
		c.descending(p, "", file)
		return
	}
	c.invalid(p, v, "must be a valid seccomp profile")
}

func (c *checker) appArmorAnnotation(key, container, v string, containers *nameSet, p *field.Path) {
	if !containers.has(container) {
		c.invalid(p.Key(key), container, "container not found")
	}
	if v != "" && v != corev1.DeprecatedAppArmorBetaProfileRuntimeDefault && v != corev1.DeprecatedAppArmorBetaProfileNameUnconfined &&
		!strings.HasPrefix(v, corev1.DeprecatedAppArmorBetaProfileNamePrefix) {
		c.invalid(p.Key(key), v, fmt.Sprintf("invalid AppArmor profile name: %q", v))
	}
}

// ValidateProfilesMatch checks that security profiles given both as annotation and as field are equal. p is
// that of the spec.
func ValidateProfilesMatch(m *metav1.ObjectMeta, s *corev1.PodSpec, p *field.Path) field.ErrorList {
	var c checker
	c.profilesMatch(m, s, p)
	return c.errs
}

func (c *checker) profilesMatch(m *metav1.ObjectMeta, s *corev1.PodSpec, p *field.Path) {
	if len(m.Annotations) == 0 {
		return
	}
	if s.SecurityContext != nil && s.SecurityContext.SeccompProfile != nil {
		if v, ok := m.Annotations[corev1.SeccompPodAnnotationKey]; ok {
			c.seccompMatches(v, s.SecurityContext.SeccompProfile, p.Child("securityContext").Child("seccompProfile"))
		}
	}
	visitContainers(s, func(ctr *corev1.Container, w where) {
		if ctr.SecurityContext != nil && ctr.SecurityContext.SeccompProfile != nil {
			if v, ok := m.Annotations[corev1.SeccompContainerAnnotationKeyPrefix+ctr.Name]; ok {
				c.seccompMatches(v, ctr.SecurityContext.SeccompProfile, w.path(p).Child("securityContext").Child("seccompProfile"))
			}
		}
	})
	if s.OS != nil && s.OS.Name == corev1.Windows {
		return
	}
	visitContainers(s, func(ctr *corev1.Container, w where) {
		profile := EffectiveAppArmor(s, ctr)
		if profile == nil {
			return
		}
		if v, ok := m.Annotations[corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+ctr.Name]; ok {
			c.appArmorMatches(v, profile, w.path(p).Child("securityContext").Child("appArmorProfile"))
		}
	})
}

func (c *checker) seccompMatches(v string, s *corev1.SeccompProfile, p *field.Path) {
	const differs = "seccomp type in annotation and field must match"
	switch s.Type {
	case corev1.SeccompProfileTypeUnconfined:
		c.forbiddenIf(v != corev1.SeccompProfileNameUnconfined, p, "type", differs)
	case corev1.SeccompProfileTypeRuntimeDefault:
		c.forbiddenIf(v != corev1.SeccompProfileRuntimeDefault && v != corev1.DeprecatedSeccompProfileDockerDefault, p, "type", differs)
	case corev1.SeccompProfileTypeLocalhost:
		file, ok := strings.CutPrefix(v, corev1.SeccompLocalhostProfileNamePrefix)
		if !ok {
			c.forbidden(p.Child("type"), differs)
		} else if s.LocalhostProfile == nil || file != *s.LocalhostProfile {
			c.forbidden(p.Child("localhostProfile"), "seccomp profile in annotation and field must match")
		}
	}
}

func (c *checker) appArmorMatches(v string, a *corev1.AppArmorProfile, p *field.Path) {
	const differs = "apparmor type in annotation and field must match"
	switch a.Type {
	case corev1.AppArmorProfileTypeUnconfined:
		c.forbiddenIf(v != corev1.DeprecatedAppArmorBetaProfileNameUnconfined, p, "type", differs)
	case corev1.AppArmorProfileTypeRuntimeDefault:
		c.forbiddenIf(v != corev1.DeprecatedAppArmorBetaProfileRuntimeDefault, p, "type", differs)
	case corev1.AppArmorProfileTypeLocalhost:
		profile, ok := strings.CutPrefix(v, corev1.DeprecatedAppArmorBetaProfileNamePrefix)
		if !ok {
			c.forbidden(p.Child("type"), differs)
		} else if a.LocalhostProfile == nil || profile != *a.LocalhostProfile {
			c.forbidden(p.Child("localhostProfile"), "apparmor profile in annotation and field must match")
		}
	}
}

// EffectiveAppArmor returns the profile of a container: its own, or that of its pod.
func EffectiveAppArmor(s *corev1.PodSpec, ctr *corev1.Container) *corev1.AppArmorProfile {
	if ctr.SecurityContext != nil && ctr.SecurityContext.AppArmorProfile != nil {
		return ctr.SecurityContext.AppArmorProfile
	}
	if s.SecurityContext != nil {
		return s.SecurityContext.AppArmorProfile
	}
	return nil
}

// ValidAppArmor reports whether a profile would be valid in a spec.
func ValidAppArmor(a *corev1.AppArmorProfile) bool {
	var c checker
	c.appArmor(a, nil)
	return len(c.errs) == 0
}

// AppArmorProfile returns the profile that an annotation names, or nil.
func AppArmorProfile(text string) *corev1.AppArmorProfile {
	switch {
	case text == corev1.DeprecatedAppArmorBetaProfileNameUnconfined:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	case text == corev1.DeprecatedAppArmorBetaProfileRuntimeDefault:
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	case strings.HasPrefix(text, corev1.DeprecatedAppArmorBetaProfileNamePrefix):
		if name := strings.TrimPrefix(text, corev1.DeprecatedAppArmorBetaProfileNamePrefix); name != "" {
			return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &name}
		}
	}
	return nil
}
