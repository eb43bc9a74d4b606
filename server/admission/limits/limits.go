// Package limits holds the admission plugin LimitRanger. New pods get the defaults of the limit ranges of
// their namespace, and pods and claims that violate these are refused with all reasons at once.
package limits

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

const annotation = "kubernetes.io/limit-ranger"

// Ranger applies limit ranges.
type Ranger struct {
	admission.CreatesAndUpdates
	Objects      admission.Objects
	PodResources bool // pods may have resources for all of their containers together
}

var (
	_ admission.Mutator   = Ranger{}
	_ admission.Validator = Ranger{}
)

// Name implements admission.Plugin.
func (Ranger) Name() string { return "LimitRanger" }

// Admit implements admission.Mutator.
func (p Ranger) Admit(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is("", "pods", "") || a.Operation != admission.Create {
		return nil
	}
	return p.each(ctx, a, func(r *corev1.LimitRange) error {
		return fill(ctx, pod, r)
	})
}

// Validate implements admission.Validator.
func (p Ranger) Validate(ctx context.Context, a *admission.Attributes) error {
	if old, ok := a.Old.(metav1.Object); ok && old.GetDeletionTimestamp() != nil {
		return nil // whatever the limits are by now, the object must be able to lose its finalizers
	}
	var check func(*corev1.LimitRange) ([]error, error)
	switch obj := a.Object.(type) {
	case *corev1.Pod:
		// The containers of a pod keep their resources, unless they are resized.
		created := a.Is("", "pods", "") && a.Operation == admission.Create
		if !created && !(a.Is("", "pods", "resize") && a.Operation == admission.Update) {
			return nil
		}
		check = func(r *corev1.LimitRange) ([]error, error) { return p.checkPod(ctx, obj, r) }
	case *corev1.PersistentVolumeClaim:
		if !a.Is("", "persistentvolumeclaims", "") {
			return nil
		}
		check = func(r *corev1.LimitRange) ([]error, error) { return checkClaim(obj, r), nil }
	default:
		return nil
	}
	return p.each(ctx, a, func(r *corev1.LimitRange) error {
		errs, err := check(r)
		if err != nil {
			return err
		}
		if len(errs) > 0 {
			return a.Forbid(rules.Aggregate(errs))
		}
		return nil
	})
}

func (p Ranger) each(ctx context.Context, a *admission.Attributes, fn func(*corev1.LimitRange) error) error {
	list, err := admission.ListAll(ctx, p.Objects, "limitranges", a.Namespace, nil)
	if err != nil {
		return err
	}
	for _, o := range list {
		if r, ok := o.(*corev1.LimitRange); ok {
			if err := fn(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill sets the defaults of a limit range in the containers of a pod, and lists them in an annotation.
func fill(ctx context.Context, pod *corev1.Pod, r *corev1.LimitRange) error {
	limits, requests := corev1.ResourceList{}, corev1.ResourceList{}
	for _, item := range r.Spec.Limits {
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		for name, q := range item.Default {
			limits[name] = q.DeepCopy()
		}
		for name, q := range item.DefaultRequest {
			requests[name] = q.DeepCopy()
		}
	}
	// Each container gets each default.
	if err := kinds.Steps(ctx).Spend(ctx, fillSteps*containers(pod)*(len(limits)+len(requests))); err != nil {
		return err
	}
	var notes []string
	for i := range pod.Spec.Containers {
		notes = fillContainer(&pod.Spec.Containers[i], limits, requests, "container", notes)
	}
	for i := range pod.Spec.InitContainers {
		notes = fillContainer(&pod.Spec.InitContainers[i], limits, requests, "init container", notes)
	}
	if len(notes) == 0 {
		return nil
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[annotation] = "LimitRanger plugin set: " + strings.Join(notes, "; ")
	return nil
}

// fillSteps is the cost of one amount that is set, in steps of a write: it stays in memory.
const fillSteps = 64

func containers(pod *corev1.Pod) int { return len(pod.Spec.Containers) + len(pod.Spec.InitContainers) }

func fillContainer(c *corev1.Container, limits, requests corev1.ResourceList, what string, notes []string) []string {
	note := func(set []string, of string) {
		if len(set) > 0 {
			slices.Sort(set)
			notes = append(notes, fmt.Sprintf("%s %s for %s %s", strings.Join(set, ", "), of, what, c.Name))
		}
	}
	setLimits := fillList(&c.Resources.Limits, limits)
	setRequests := fillList(&c.Resources.Requests, requests)
	note(setRequests, "request")
	note(setLimits, "limit")
	return notes
}

func fillList(into *corev1.ResourceList, defaults corev1.ResourceList) (set []string) {
	for name, q := range defaults {
		if _, ok := (*into)[name]; ok {
			continue
		}
		if *into == nil {
			*into = corev1.ResourceList{}
		}
		(*into)[name] = q.DeepCopy()
		set = append(set, string(name))
	}
	return set
}

func checkClaim(claim *corev1.PersistentVolumeClaim, r *corev1.LimitRange) (errs []error) {
	for i := range r.Spec.Limits {
		if item := &r.Spec.Limits[i]; item.Type == corev1.LimitTypePersistentVolumeClaim {
			b := bound{of: item.Type, requests: claim.Spec.Resources.Requests, errs: &errs}
			b.each(item.Min, b.least)
			b.each(item.Max, b.mostRequested)
		}
	}
	return errs
}

func (p Ranger) checkPod(ctx context.Context, pod *corev1.Pod, r *corev1.LimitRange) (errs []error, _ error) {
	steps := kinds.Steps(ctx)
	for i := range r.Spec.Limits {
		if len(errs) > rules.MaxErrors {
			break
		}
		item := &r.Spec.Limits[i]
		// Each item is compared with each container.
		if err := steps.Spend(ctx, containers(pod)*(1+len(item.Min)+len(item.Max)+len(item.MaxLimitRequestRatio))); err != nil {
			return nil, err
		}
		check := func(requests, limits corev1.ResourceList) {
			if len(errs) > rules.MaxErrors {
				return
			}
			b := bound{item.Type, requests, limits, &errs}
			b.each(item.Min, b.least)
			b.each(item.Max, b.most)
			b.each(item.MaxLimitRequestRatio, b.ratio)
		}
		switch item.Type {
		case corev1.LimitTypeContainer:
			for j := range pod.Spec.Containers {
				check(pod.Spec.Containers[j].Resources.Requests, pod.Spec.Containers[j].Resources.Limits)
			}
			for j := range pod.Spec.InitContainers {
				check(pod.Spec.InitContainers[j].Resources.Requests, pod.Spec.InitContainers[j].Resources.Limits)
			}
		case corev1.LimitTypePod:
			requests, limits := podspec.ContainerRequests(&pod.Spec), podspec.ContainerLimits(&pod.Spec)
			if whole, ok := podspec.WholeResources(&pod.Spec); ok && p.PodResources {
				podspec.ApplyPodLevel(requests, whole.Requests)
				podspec.ApplyPodLevel(limits, whole.Limits)
			}
			check(requests, limits)
		}
	}
	return errs, nil
}

// bound holds amounts against one item of a limit range.
type bound struct {
	of               corev1.LimitType
	requests, limits corev1.ResourceList
	errs             *[]error
}

// each calls rule for each bounded resource, in order of names.
func (b *bound) each(list corev1.ResourceList, rule func(name corev1.ResourceName, limit resource.Quantity)) {
	names := make([]string, 0, len(list))
	for name := range list {
		names = append(names, string(name))
	}
	slices.Sort(names)
	for _, name := range names {
		rule(corev1.ResourceName(name), list[corev1.ResourceName(name)])
	}
}

func (b *bound) refuse(format string, args ...any) {
	*b.errs = append(*b.errs, fmt.Errorf(format, args...))
}

func (b *bound) least(name corev1.ResourceName, min resource.Quantity) {
	request, requested := b.requests[name]
	limit, limited := b.limits[name]
	switch {
	case !requested:
		b.refuse("minimum %s usage per %s is %s.  No request is specified", name, b.of, min.String())
	case request.Cmp(min) < 0:
		b.refuse("minimum %s usage per %s is %s, but request is %s", name, b.of, min.String(), request.String())
	case limited && limit.Cmp(min) < 0:
		b.refuse("minimum %s usage per %s is %s, but limit is %s", name, b.of, min.String(), limit.String())
	}
}

func (b *bound) most(name corev1.ResourceName, max resource.Quantity) {
	request, requested := b.requests[name]
	limit, limited := b.limits[name]
	switch {
	case !limited:
		b.refuse("maximum %s usage per %s is %s.  No limit is specified", name, b.of, max.String())
	case limit.Cmp(max) > 0:
		b.refuse("maximum %s usage per %s is %s, but limit is %s", name, b.of, max.String(), limit.String())
	case requested && request.Cmp(max) > 0:
		b.refuse("maximum %s usage per %s is %s, but request is %s", name, b.of, max.String(), request.String())
	}
}

func (b *bound) mostRequested(name corev1.ResourceName, max resource.Quantity) {
	request, requested := b.requests[name]
	switch {
	case !requested:
		b.refuse("maximum %s usage per %s is %s.  No request is specified", name, b.of, max.String())
	case request.Cmp(max) > 0:
		b.refuse("maximum %s usage per %s is %s, but request is %s", name, b.of, max.String(), request.String())
	}
}

func (b *bound) ratio(name corev1.ResourceName, max resource.Quantity) {
	request, limit := b.requests[name], b.limits[name]
	switch {
	case request.IsZero():
		b.refuse("%s max limit to request ratio per %s is %s, but no request is specified or request is 0", name, b.of, max.String())
		return
	case limit.IsZero():
		b.refuse("%s max limit to request ratio per %s is %s, but no limit is specified or limit is 0", name, b.of, max.String())
		return
	}
	if got := limit.AsApproximateFloat64() / request.AsApproximateFloat64(); got > max.AsApproximateFloat64() {
		b.refuse("%s max limit to request ratio per %s is %s, but provided ratio is %f", name, b.of, max.String(), got)
	}
}
