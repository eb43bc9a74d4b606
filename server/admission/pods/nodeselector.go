package pods

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/status"
)

// NodeSelector puts the pods of a namespace on the nodes that its annotation selects.
type NodeSelector struct {
	Objects admission.Objects
	// Default selects for namespaces without the annotation.
	Default labels.Set
	// Allowed are, by namespace, the only labels that its pods may select by.
	Allowed map[string]labels.Set
}

var (
	_ admission.Mutator   = NodeSelector{}
	_ admission.Validator = NodeSelector{}
)

const nodeSelectorAnnotation = "scheduler.alpha.kubernetes.io/node-selector"

// ParseNodeSelectors reads the plugin's part of an admission configuration file: a
// selector for each namespace, and a default one.
func ParseNodeSelectors(data []byte) (NodeSelector, error) {
	const byDefault = "clusterDefaultNodeSelector"
	var c struct {
		Selectors map[string]string `json:"podNodeSelectorPluginConfig"`
	}
	p := NodeSelector{Default: labels.Set{}, Allowed: map[string]labels.Set{}}
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return p, err
	}
	for namespace, text := range c.Selectors {
		set, err := labels.ConvertSelectorToLabelsMap(text)
		if err != nil {
			return p, fmt.Errorf("podNodeSelectorPluginConfig.%s: %w", namespace, err)
		}
		if namespace == byDefault {
			p.Default = set
		} else {
			p.Allowed[namespace] = set
		}
	}
	return p, nil
}

// Name implements admission.Plugin.
func (NodeSelector) Name() string { return "PodNodeSelector" }

// Handles implements admission.Plugin.
func (NodeSelector) Handles(op admission.Operation) bool { return op == admission.Create }

// Admit implements admission.Mutator.
func (p NodeSelector) Admit(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is("", "pods", "") {
		return nil
	}
	selected, err := p.selected(ctx, a, pod)
	if err != nil {
		return err
	}
	pod.Spec.NodeSelector = labels.Merge(selected, pod.Spec.NodeSelector)
	return p.Validate(ctx, a)
}

// Validate implements admission.Validator.
func (p NodeSelector) Validate(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is("", "pods", "") {
		return nil
	}
	if _, err := p.selected(ctx, a, pod); err != nil {
		return err
	}
	allowed := p.Allowed[a.Namespace]
	for key, value := range pod.Spec.NodeSelector {
		if have, ok := allowed[key]; len(allowed) > 0 && (!ok || have != value) {
			return apierrors.NewForbidden(a.Resource.GroupResource(), pod.Name, errors.New("pod node label selector labels conflict with its namespace whitelist"))
		}
	}
	return nil
}

// selected returns the node selector of a pod's namespace, which the pod must not contradict.
func (p NodeSelector) selected(ctx context.Context, a *admission.Attributes, pod *corev1.Pod) (labels.Set, error) {
	namespace, err := namespaceOf(ctx, p.Objects, a)
	if err != nil {
		return nil, err
	}
	selected := p.Default
	if text, ok := namespace.GetAnnotations()[nodeSelectorAnnotation]; ok {
		if selected, err = labels.ConvertSelectorToLabelsMap(text); err != nil {
			return nil, status.Plain(err.Error())
		}
	}
	if labels.Conflicts(selected, labels.Set(pod.Spec.NodeSelector)) {
		return nil, apierrors.NewForbidden(a.Resource.GroupResource(), pod.Name, errors.New("pod node label selector conflicts with its namespace node label selector"))
	}
	return selected, nil
}

func namespaceOf(ctx context.Context, objects admission.Objects, a *admission.Attributes) (kinds.Object, error) {
	obj, err := objects.Get(ctx, "namespaces", "", a.Namespace)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if obj == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), a.Namespace)
	}
	return obj, nil
}
