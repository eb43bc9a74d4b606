package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (a *adviser) containers(s *corev1.PodSpec, m *metav1.ObjectMeta) {
	if len(m.Annotations) > 0 && (s.SecurityContext == nil || s.SecurityContext.SeccompProfile == nil) {
		a.annotation(m, corev1.SeccompPodAnnotationKey, seccompObsolete)
	}
	visitContainers(s, func(c *corev1.Container, w where) {
		if len(m.Annotations) > 0 {
			if c.SecurityContext == nil || c.SecurityContext.SeccompProfile == nil {
				a.annotation(m, corev1.SeccompContainerAnnotationKeyPrefix+c.Name, seccompObsolete)
			}
			// Pods are warned while annotation and field are brought in step.
			if a.template && a.appArmorUnsaid(s, c, m) {
				a.annotation(m, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+c.Name, appArmorObsolete)
			}
		}
		if len(c.Resources.Limits) > 0 || len(c.Resources.Requests) > 0 {
			a.containerBytes(&c.Resources, w)
		}
		a.env(c.Env, w)
	})
}

// appArmorUnsaid reports whether only the annotation of a container gives it its profile.
func (a *adviser) appArmorUnsaid(s *corev1.PodSpec, c *corev1.Container, m *metav1.ObjectMeta) bool {
	profile := EffectiveAppArmor(s, c)
	if profile == nil || !a.since133 {
		return profile == nil
	}
	own := c.SecurityContext != nil && c.SecurityContext.AppArmorProfile != nil
	annotated := AppArmorProfile(m.Annotations[corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+c.Name])
	return !own && !equality.Semantic.DeepEqual(profile, annotated)
}

func (a *adviser) annotation(m *metav1.ObjectMeta, key, message string) {
	if _, ok := m.Annotations[key]; ok {
		a.warn(a.meta.Child("annotations").Key(key), message)
	}
}

// fewVars is the number of variables up to which a linear search for a name is faster than making a set.
const fewVars = 32

// env warns of a variable that is set again without use of its former value.
func (a *adviser) env(vars []corev1.EnvVar, w where) {
	if len(vars) < 2 {
		return
	}
	var seen nameSet
	again := func(i int) bool {
		if len(vars) <= fewVars {
			return slices.ContainsFunc(vars[:i], func(v corev1.EnvVar) bool { return v.Name == vars[i].Name })
		}
		was := seen.has(vars[i].Name)
		seen.add(vars[i].Name)
		return was
	}
	for i := range vars {
		v := &vars[i]
		if !again(i) {
			continue
		}
		ref := "$(" + v.Name + ")"
		if v.ValueFrom != nil || v.Value == ref || !strings.Contains(v.Value, ref) {
			a.warnf(w.path(a.spec).Child("env").Index(i), "hides previous definition of %q, which may be dropped when using apply", v.Name)
		}
	}
}
