package pods

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/rowlock/rowlock/server/admission"
	schedulingv1alpha2 "github.com/rowlock/rowlock/server/removed/k8s.io/api/scheduling/v1alpha2"
)

const (
	priorityGroup   = "scheduling.k8s.io"
	priorityStorage = "priorityclasses.scheduling.k8s.io"
)

// Priority resolves the priority class of a pod or of a PodGroup, and keeps the default class single.
type Priority struct {
	admission.CreatesAndUpdates
	Objects admission.Objects
	// Groups resolves the priority classes of PodGroups, too.
	Groups bool
}

var (
	_ admission.Mutator   = Priority{}
	_ admission.Validator = Priority{}
)

// Name implements admission.Plugin.
func (Priority) Name() string { return "Priority" }

// Admit implements admission.Mutator.
func (p Priority) Admit(ctx context.Context, a *admission.Attributes) error {
	if g, ok := a.Object.(*schedulingv1alpha2.PodGroup); ok && p.Groups && a.Operation == admission.Create && a.Is(priorityGroup, "podgroups", "") {
		return p.group(ctx, a, g)
	}
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is("", "pods", "") {
		return nil
	}
	if a.Operation == admission.Update {
		// Priority cannot change; a client that leaves it out keeps the present one.
		if old, ok := a.Old.(*corev1.Pod); ok {
			pod.Spec.Priority = cmp.Or(pod.Spec.Priority, old.Spec.Priority)
			pod.Spec.PreemptionPolicy = cmp.Or(pod.Spec.PreemptionPolicy, old.Spec.PreemptionPolicy)
		}
		return nil
	}
	value, policy, err := p.resolve(ctx, a, &pod.Spec.PriorityClassName)
	if err != nil {
		return err
	}
	if have := pod.Spec.Priority; have != nil && *have != value {
		return a.Forbid(fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", *have, value))
	}
	if have := pod.Spec.PreemptionPolicy; have != nil && *have != policy {
		return a.Forbid(fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", *have, policy))
	}
	pod.Spec.Priority, pod.Spec.PreemptionPolicy = &value, &policy
	return nil
}

func (p Priority) group(ctx context.Context, a *admission.Attributes, g *schedulingv1alpha2.PodGroup) error {
	value, _, err := p.resolve(ctx, a, &g.Spec.PriorityClassName)
	if err != nil {
		return err
	}
	if have := g.Spec.Priority; have != nil && *have != value {
		return a.Forbid(fmt.Errorf("priority set in the pod group (%d) must match the priority computed (%d) based on the priority class set in the spec", *have, value))
	}
	g.Spec.Priority = &value
	return nil
}

// resolve finds the value of the class of a name, or of the default class, whose name it sets.
func (p Priority) resolve(ctx context.Context, a *admission.Attributes, name *string) (int32, corev1.PreemptionPolicy, error) {
	var class *schedulingv1.PriorityClass
	if *name == "" {
		var err error
		if class, err = p.defaultClass(ctx); err != nil {
			return 0, "", err
		}
		if class == nil {
			return 0, corev1.PreemptLowerPriority, nil
		}
		*name = class.Name
	} else {
		obj, err := p.Objects.Get(ctx, priorityStorage, "", *name)
		if err != nil {
			return 0, "", err
		}
		var ok bool
		if class, ok = obj.(*schedulingv1.PriorityClass); !ok {
			return 0, "", a.Forbid(fmt.Errorf("no PriorityClass with name %s was found", *name))
		}
	}
	policy := corev1.PreemptLowerPriority
	if class.PreemptionPolicy != nil {
		policy = *class.PreemptionPolicy
	}
	return class.Value, policy, nil
}

// defaultClass returns the global default of the lowest value, where two servers have
// let two in.
func (p Priority) defaultClass(ctx context.Context) (*schedulingv1.PriorityClass, error) {
	list, err := p.Objects.List(ctx, priorityStorage, "", mayBeDefault)
	if err != nil {
		return nil, err
	}
	var found *schedulingv1.PriorityClass
	for _, o := range list {
		if c, ok := o.(*schedulingv1.PriorityClass); ok && c.GlobalDefault && (found == nil || c.Value < found.Value) {
			found = c
		}
	}
	return found, nil
}

// mayBeDefault returns false for the text of a class that does not set globalDefault, as most do not: each new Pod
// looks for the default one.
func mayBeDefault(text []byte) bool {
	return bytes.Contains(text, []byte("globalDefault")) || bytes.IndexByte(text, '\\') >= 0
}

// Validate implements admission.Validator.
func (p Priority) Validate(ctx context.Context, a *admission.Attributes) error {
	class, ok := a.Object.(*schedulingv1.PriorityClass)
	if !ok || !a.Is(priorityGroup, "priorityclasses", "") || !class.GlobalDefault {
		return nil
	}
	other, err := p.defaultClass(ctx)
	if err != nil {
		return err
	}
	if other != nil && (a.Operation == admission.Create || other.Name != class.Name) {
		return a.Forbid(fmt.Errorf("PriorityClass %s is already marked as default. Only one default can exist", other.Name))
	}
	return nil
}
