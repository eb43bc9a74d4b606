package podsecurity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/rowlock/rowlock/server/admission"
)

// Limits of the check of existing pods by a stricter standard: a number of pods, their bytes, and a time.
const (
	maxPods     = 3000
	maxBytes    = 32 << 20
	longestTime = time.Second
)

// namespace refuses labels that mean nothing, unless they were there before, and
// warns of pods that a stricter standard would not let in again.
func (p *Plugin) namespace(ctx context.Context, a *admission.Attributes, ns *corev1.Namespace) error {
	standard, errs := api.PolicyToEvaluate(ns.Labels, p.defaults)
	exempt := slices.Contains(p.exemptions.Namespaces, a.Namespace)
	old, ok := a.Old.(*corev1.Namespace)
	if a.Operation == admission.Create || !ok {
		if len(errs) > 0 {
			return p.invalid(a, errs)
		}
		if exempt {
			p.warnExempt(a, ns, standard)
		}
		return nil
	}
	before, oldErrs := api.PolicyToEvaluate(old.Labels, p.defaults)
	if len(errs) > 0 && !sameErrors(errs, oldErrs) {
		return p.invalid(a, errs)
	}
	now, was := standard.Enforce, before.Enforce
	switch {
	case now == was, now.Level == api.LevelPrivileged, now.Version == was.Version && api.CompareLevels(now.Level, was.Level) < 1:
	case exempt:
		p.warnExempt(a, ns, standard)
	default:
		p.warnViolations(ctx, a, ns.Name, now)
	}
	return nil
}

func (p *Plugin) invalid(a *admission.Attributes, errs field.ErrorList) error {
	return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind(), a.Name, errs)
}

func sameErrors(a, b field.ErrorList) bool {
	return slices.EqualFunc(a, b, func(x, y *field.Error) bool { return *x == *y })
}

// warnExempt warns that the labels have no effect on an exempt namespace.
func (p *Plugin) warnExempt(a *admission.Attributes, ns *corev1.Namespace, standard api.Policy) {
	if standard.FullyPrivileged() || standard.Equivalent(&p.defaults) {
		return
	}
	var parts []string
	for _, mode := range []struct {
		name, level, version string
		of                   api.LevelVersion
	}{
		{"enforce", api.EnforceLevelLabel, api.EnforceVersionLabel, standard.Enforce},
		{"audit", api.AuditLevelLabel, api.AuditVersionLabel, standard.Audit},
		{"warn", api.WarnLevelLabel, api.WarnVersionLabel, standard.Warn},
	} {
		_, level := ns.Labels[mode.level]
		_, version := ns.Labels[mode.version]
		if mode.of.Level != api.LevelPrivileged && (level || version) {
			parts = append(parts, mode.name+"="+mode.of.String())
		}
	}
	a.Warn(fmt.Sprintf("namespace %q is exempt from Pod Security, and the policy (%s) will be ignored", ns.Name, strings.Join(parts, ", ")))
}

// warnViolations warns of the pods of a namespace that violate a standard. Pods with the same violations
// share a line, under the name that sorts first.
func (p *Plugin) warnViolations(ctx context.Context, a *admission.Attributes, namespace string, standard api.LevelVersion) {
	most := longestTime
	if deadline, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(deadline)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	select {
	case p.checking <- struct{}{}: // one check at a time takes enough memory
		defer func() { <-p.checking }()
	case <-ctx.Done():
		a.Warn("failed to list pods while checking new PodSecurity enforce level")
		return
	}
	existing, size := 0, 0
	list, err := p.objects.List(context.WithoutCancel(ctx), "pods", namespace, func(text []byte) bool {
		existing++
		size += len(text)
		return size <= maxBytes && ctx.Err() == nil
	})
	if err != nil {
		a.Warn("failed to list pods while checking new PodSecurity enforce level")
		return
	}
	var pods []*corev1.Pod
	for _, o := range list {
		if pod, ok := o.(*corev1.Pod); ok && !p.exemptRuntime(pod.Spec.RuntimeClassName) {
			pods = append(pods, pod)
		}
	}
	all := len(pods) + max(existing-len(list), 0)
	pods = different(pods)[:min(len(pods), maxPods)]
	names := map[string][]string{}
	checked := 0
	for _, pod := range pods {
		r := policy.AggregateCheckResults(p.standards.EvaluatePod(standard, &pod.ObjectMeta, &pod.Spec))
		if !r.Allowed {
			names[r.ForbiddenReason()] = append(names[r.ForbiddenReason()], pod.Name)
		}
		if checked++; ctx.Err() != nil {
			break
		}
	}
	if checked < all {
		a.Warn(fmt.Sprintf("new PodSecurity enforce level only checked against the first %d of %d existing pods", checked, all))
	}
	if len(names) == 0 {
		return
	}
	a.Warn(fmt.Sprintf("existing pods in namespace %q violate the new PodSecurity enforce level %q", namespace, standard.String()))
	for _, line := range lines(names) {
		a.Warn(line)
	}
}

func lines(names map[string][]string) []string {
	var out []string
	for reason, of := range names {
		line := slices.Min(of)
		switch n := len(of) - 1; n {
		case 0:
		case 1:
			line += " (and 1 other pod)"
		default:
			line += fmt.Sprintf(" (and %d other pods)", n)
		}
		out = append(out, line+": "+reason)
	}
	slices.Sort(out)
	return out
}

// different puts one pod of each controller, and those without one, before the rest:
// pods of a controller are mostly alike.
func different(pods []*corev1.Pod) []*corev1.Pod {
	var first, rest []*corev1.Pod
	seen := map[types.UID]bool{}
	for _, pod := range pods {
		owner := metav1.GetControllerOfNoCopy(pod)
		switch {
		case owner == nil:
		case seen[owner.UID]:
			rest = append(rest, pod)
			continue
		default:
			seen[owner.UID] = true
		}
		first = append(first, pod)
	}
	return append(first, rest...)
}
