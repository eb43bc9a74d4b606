package pods

import (
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// validateUpdate allows the changes that a running pod can follow: other images, an earlier deadline, more
// tolerations, fewer scheduling gates.
func (r podRules) validateUpdate(pod, was *corev1.Pod) field.ErrorList {
	o := r.spec.PodOptions(pod, was)
	errs := podspec.ValidatePod(pod, o)
	errs = append(errs, annotationUpdate(pod, was, o)...)
	spec := field.NewPath("spec")
	for _, list := range [...]struct {
		name     string
		new, old []corev1.Container
	}{
		{"containers", pod.Spec.Containers, was.Spec.Containers},
		{"initContainers", pod.Spec.InitContainers, was.Spec.InitContainers},
	} {
		more, same := containerUpdate(list.new, list.old, spec.Child(list.name))
		errs = append(errs, more...)
		if !same {
			return errs
		}
	}
	more, ok := deadlineUpdate(&pod.Spec, &was.Spec, spec.Child("activeDeadlineSeconds"))
	errs = append(errs, more...)
	if !ok {
		return errs
	}
	errs = append(errs, tolerationUpdate(pod.Spec.Tolerations, was.Spec.Tolerations, spec.Child("tolerations"), o)...)
	errs = append(errs, gateUpdate(pod.Spec.SchedulingGates, was.Spec.SchedulingGates, spec.Child("schedulingGates"))...)
	return append(errs, restUpdate(&pod.Spec, &was.Spec, spec)...)
}

// annotationUpdate protects the annotations about the origin of a pod.
func annotationUpdate(pod, was *corev1.Pod, o podspec.Options) field.ErrorList {
	var errs field.ErrorList
	p := field.NewPath("metadata").Child("annotations")
	guarded := func(key string) (what string, ok bool) {
		if strings.HasPrefix(key, appArmorKey) {
			return "AppArmor annotations", true
		}
		return "mirror pod annotation", key == corev1.MirrorPodAnnotationKey
	}
	for _, k := range rules.Until(&errs, slices.Sorted(maps.Keys(was.Annotations))) {
		if v, ok := pod.Annotations[k]; ok && v == was.Annotations[k] {
			continue
		}
		if what, ok := guarded(k); ok {
			errs = append(errs, field.Forbidden(p.Key(k), "may not remove or update "+what))
		}
	}
	for _, k := range rules.Until(&errs, slices.Sorted(maps.Keys(pod.Annotations))) {
		if _, ok := was.Annotations[k]; ok {
			continue
		}
		if what, ok := guarded(k); ok {
			errs = append(errs, field.Forbidden(p.Key(k), "may not add "+what))
		}
	}
	return append(errs, podspec.ValidatePodAnnotations(pod.Annotations, &pod.Spec, p, o)...)
}

// containerUpdate checks images; with another number of containers nothing else
// can be compared.
func containerUpdate(list, old []corev1.Container, p *field.Path) (errs field.ErrorList, same bool) {
	if len(list) != len(old) {
		return field.ErrorList{field.Forbidden(p, "pod updates may not add or remove containers")}, false
	}
	for i := range rules.Until(&errs, list) {
		image := list[i].Image
		errs = rules.RequiredIf(errs, image == "", p.Index(i).Child("image"), "")
		errs = rules.InvalidIf(errs, len(strings.TrimSpace(image)) != len(image), p.Index(i).Child("image"), image, "must not have leading or trailing whitespace")
	}
	return errs, true
}

// deadlineUpdate allows a deadline to be set, and to come nearer.
func deadlineUpdate(s, old *corev1.PodSpec, p *field.Path) (errs field.ErrorList, ok bool) {
	is, was := s.ActiveDeadlineSeconds, old.ActiveDeadlineSeconds
	switch {
	case is == nil && was == nil:
	case is == nil:
		return field.ErrorList{field.Invalid(p, is, "must not update from a positive integer to nil value")}, true
	case *is < 0 || *is > math.MaxInt32:
		return field.ErrorList{field.Invalid(p, *is, utilvalidation.InclusiveRangeError(0, math.MaxInt32))}, false
	case was != nil && *was < *is:
		return field.ErrorList{field.Invalid(p, *is, "must be less than or equal to previous value")}, false
	}
	return nil, true
}

// tolerationUpdate allows more tolerations, and other seconds for those there are.
func tolerationUpdate(list, old []corev1.Toleration, p *field.Path, o podspec.Options) field.ErrorList {
	kept := make(map[corev1.Toleration]bool, len(list))
	for _, t := range list {
		t.TolerationSeconds = nil
		kept[t] = true
	}
	for _, t := range old {
		if t.TolerationSeconds = nil; !kept[t] {
			return field.ErrorList{field.Forbidden(p, "existing toleration can not be modified except its tolerationSeconds")}
		}
	}
	return podspec.ValidateTolerations(list, p, o)
}

func gateUpdate(gates, old []corev1.PodSchedulingGate, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	had := rules.In(old)
	last := make(map[string]int, len(gates)) // one finding for each name
	for i, g := range gates {
		last[g.Name] = i
	}
	for i, g := range rules.Until(&errs, gates) {
		if last[g.Name] == i && !had.Has(g) {
			errs = append(errs, field.Forbidden(p.Index(i).Child("name"), "only deletion is allowed, but found new scheduling gate '"+g.Name+"'"))
		}
	}
	return errs
}

const updatableFields = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`," +
	"`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations)," +
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

// restUpdate refuses all other changes.
func restUpdate(s, old *corev1.PodSpec, p *field.Path) field.ErrorList {
	if equality.Semantic.DeepEqual(s, old) {
		return nil
	}
	rest := s.DeepCopy()
	for i := range rest.Containers {
		rest.Containers[i].Image = old.Containers[i].Image
	}
	for i := range rest.InitContainers {
		rest.InitContainers[i].Image = old.InitContainers[i].Image
	}
	rest.ActiveDeadlineSeconds = old.ActiveDeadlineSeconds
	rest.SchedulingGates, rest.Tolerations = old.SchedulingGates, old.Tolerations
	if g := old.TerminationGracePeriodSeconds; g != nil && *g < 0 && rest.TerminationGracePeriodSeconds != nil && *rest.TerminationGracePeriodSeconds == 1 {
		rest.TerminationGracePeriodSeconds = g
	}
	var errs field.ErrorList
	if len(old.SchedulingGates) > 0 {
		errs = gatedUpdate(rest, old, p)
	}
	if !equality.Semantic.DeepEqual(rest, old) {
		errs = append(errs, field.Forbidden(p, updatableFields+"\n"+changed(rest, old, "spec")))
	}
	return errs
}

// gatedUpdate lets a pod with scheduling gates be restricted to fewer nodes. It reverts the permitted changes
// in rest.
func gatedUpdate(rest, old *corev1.PodSpec, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for k, v := range old.NodeSelector {
		if now, ok := rest.NodeSelector[k]; !ok || now != v {
			errs = append(errs, field.Invalid(p.Child("nodeSelector"), rest.NodeSelector, "only additions to spec.nodeSelector are allowed (no mutations or deletions)"))
			break
		}
	}
	rest.NodeSelector = old.NodeSelector

	var is, was *corev1.NodeAffinity
	if rest.Affinity != nil {
		is = rest.Affinity.NodeAffinity
	}
	if old.Affinity != nil {
		was = old.Affinity.NodeAffinity
	}
	if equality.Semantic.DeepEqual(is, was) {
		return errs
	}
	errs = append(errs, affinityUpdate(is, was, p.Child("affinity").Child("nodeAffinity"))...)
	switch {
	case rest.Affinity == nil:
		rest.Affinity = &corev1.Affinity{NodeAffinity: was}
	case old.Affinity == nil && rest.Affinity.PodAffinity == nil && rest.Affinity.PodAntiAffinity == nil:
		rest.Affinity = nil
	default:
		rest.Affinity.NodeAffinity = was
	}
	return errs
}

// affinityUpdate allows more requirements in terms that were there, and anything
// where no node was required.
func affinityUpdate(is, was *corev1.NodeAffinity, p *field.Path) field.ErrorList {
	if was == nil || was.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	p = p.Child("requiredDuringSchedulingIgnoredDuringExecution").Child("nodeSelectorTerms")
	old := was.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	var terms []corev1.NodeSelectorTerm
	if is != nil && is.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		terms = is.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	if len(old) > 0 && len(old) != len(terms) {
		return field.ErrorList{field.Invalid(p, rules.Shown(terms), "no additions/deletions to non-empty NodeSelectorTerms list are allowed")}
	}
	var errs field.ErrorList
	for i := range rules.Until(&errs, old) {
		if !onlyAdded(&terms[i], &old[i]) {
			errs = append(errs, field.Invalid(p.Index(i), rules.Shown(terms[i]), "only additions are allowed (no mutations or deletions)"))
		}
	}
	return errs
}

// onlyAdded reports whether a term has all its former requirements, and maybe more. An empty term matched
// nothing and must stay empty.
func onlyAdded(is, was *corev1.NodeSelectorTerm) bool {
	if len(was.MatchExpressions) == 0 && len(was.MatchFields) == 0 && len(is.MatchExpressions)+len(is.MatchFields) > 0 {
		return false
	}
	begins := func(list, start []corev1.NodeSelectorRequirement) bool {
		return len(list) >= len(start) && equality.Semantic.DeepEqual(list[:len(start)], start)
	}
	return (len(was.MatchExpressions) == 0 || begins(is.MatchExpressions, was.MatchExpressions)) &&
		(len(was.MatchFields) == 0 || begins(is.MatchFields, was.MatchFields))
}
