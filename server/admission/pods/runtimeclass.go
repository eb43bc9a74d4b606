package pods

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/status"
)

// RuntimeClass adds the settings of their runtime class to new pods: overhead, node
// labels and tolerations.
type RuntimeClass struct{ Objects admission.Objects }

var (
	_ admission.Mutator   = RuntimeClass{}
	_ admission.Validator = RuntimeClass{}
)

// Name implements admission.Plugin.
func (RuntimeClass) Name() string { return "RuntimeClass" }

// Handles implements admission.Plugin.
func (RuntimeClass) Handles(op admission.Operation) bool { return op == admission.Create }

// Admit implements admission.Mutator.
func (p RuntimeClass) Admit(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is("", "pods", "") {
		return nil
	}
	class, err := p.classOf(ctx, a, pod)
	if err != nil || class == nil {
		return err
	}
	if class.Overhead != nil && len(class.Overhead.PodFixed) > 0 {
		if pod.Spec.Overhead != nil && !equality.Semantic.DeepEqual(class.Overhead.PodFixed, pod.Spec.Overhead) {
			return a.Forbid(errors.New("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"))
		}
		pod.Spec.Overhead = class.Overhead.PodFixed
	}
	if class.Scheduling == nil {
		return nil
	}
	for key, value := range class.Scheduling.NodeSelector {
		if have, ok := pod.Spec.NodeSelector[key]; ok && have != value {
			return a.Forbid(fmt.Errorf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", key, value, key, have))
		}
	}
	for key, value := range class.Scheduling.NodeSelector {
		if pod.Spec.NodeSelector == nil {
			pod.Spec.NodeSelector = map[string]string{}
		}
		pod.Spec.NodeSelector[key] = value
	}
	pod.Spec.Tolerations = mergeTolerations(slices.Concat(pod.Spec.Tolerations, class.Scheduling.Tolerations))
	return nil
}

// Validate implements admission.Validator.
func (p RuntimeClass) Validate(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is("", "pods", "") {
		return nil
	}
	class, err := p.classOf(ctx, a, pod)
	switch {
	case err != nil:
		return err
	case class == nil || class.Overhead == nil:
		if pod.Spec.Overhead == nil {
			return nil
		}
		return a.Forbid(errors.New("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"))
	case !equality.Semantic.DeepEqual(class.Overhead.PodFixed, pod.Spec.Overhead):
		return a.Forbid(errors.New("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"))
	}
	return nil
}

// classOf finds the class that a pod names; nil where it names none.
func (p RuntimeClass) classOf(ctx context.Context, a *admission.Attributes, pod *corev1.Pod) (*nodev1.RuntimeClass, error) {
	if pod.Spec.RuntimeClassName == nil {
		return nil, nil
	}
	if *pod.Spec.RuntimeClassName == "" {
		return nil, status.Plain("resource name may not be empty") // the error of a stock server's client
	}
	obj, err := p.Objects.Get(ctx, "runtimeclasses.node.k8s.io", "", *pod.Spec.RuntimeClassName)
	if err != nil {
		return nil, err
	}
	class, ok := obj.(*nodev1.RuntimeClass)
	if !ok {
		return nil, a.Forbid(fmt.Errorf("pod rejected: RuntimeClass %q not found", *pod.Spec.RuntimeClassName))
	}
	return class, nil
}
