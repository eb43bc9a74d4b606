package pods

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds/podspec"
)

const nodeStorage = "nodes"

// node returns a node by its name; nil where there is none.
func node(ctx context.Context, objects admission.Objects, name string) (*corev1.Node, error) {
	obj, err := objects.Get(ctx, nodeStorage, "", name)
	if err != nil || obj == nil {
		return nil, err
	}
	return obj.(*corev1.Node), nil
}

// TopologyLabels gives pods the zone and the region of their node as labels, when they are bound and when they are made
// with a node.
type TopologyLabels struct{ Objects admission.Objects }

var _ admission.Mutator = TopologyLabels{}

// Name implements admission.Plugin.
func (TopologyLabels) Name() string { return "PodTopologyLabels" }

// Handles implements admission.Plugin.
func (TopologyLabels) Handles(op admission.Operation) bool { return op == admission.Create }

// Admit implements admission.Mutator.
func (p TopologyLabels) Admit(ctx context.Context, a *admission.Attributes) error {
	switch obj := a.Object.(type) {
	case *corev1.Binding:
		if a.Is("", "pods", "binding") && obj.Target.Kind == "Node" {
			return p.label(ctx, &obj.ObjectMeta, obj.Target.Name)
		}
	case *corev1.Pod:
		if a.Is("", "pods", "") && obj.Spec.NodeName != "" {
			return p.label(ctx, &obj.ObjectMeta, obj.Spec.NodeName)
		}
	}
	return nil
}

func (p TopologyLabels) label(ctx context.Context, m *metav1.ObjectMeta, name string) error {
	n, err := node(ctx, p.Objects, name)
	if err != nil || n == nil {
		return err
	}
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion} {
		if value, ok := n.Labels[key]; ok {
			if m.Labels == nil {
				m.Labels = make(map[string]string)
			}
			m.Labels[key] = value
		}
	}
	return nil
}

// changedOn returns the node of a pod, which an update needs.
func changedOn(ctx context.Context, objects admission.Objects, a *admission.Attributes, pod *corev1.Pod) (*corev1.Node, error) {
	n, err := node(ctx, objects, pod.Spec.NodeName)
	if err == nil && n == nil {
		err = fmt.Errorf("node %q not found", pod.Spec.NodeName)
	} else if err != nil {
		err = fmt.Errorf("failed to get node %q: %w", pod.Spec.NodeName, err)
	}
	if err != nil {
		return nil, a.Forbid(err)
	}
	return n, nil
}

// bound returns the pod before and after an update of a subresource, if the pod has a node and its spec
// changes.
func bound(a *admission.Attributes, subresources ...string) (pod, was *corev1.Pod, ok bool) {
	pod, isPod := a.Object.(*corev1.Pod)
	was, wasPod := a.Old.(*corev1.Pod)
	if !isPod || !wasPod || !slices.ContainsFunc(subresources, func(sub string) bool { return a.Is("", "pods", sub) }) {
		return nil, nil, false
	}
	return pod, was, pod.Spec.NodeName != "" && pod.Generation != was.Generation
}

// Resizes refuses to resize pods beyond the resources of their nodes.
type Resizes struct {
	Objects admission.Objects
	Off     bool // as in release 1.32
}

var _ admission.Validator = Resizes{}

// Name implements admission.Plugin.
func (Resizes) Name() string { return "PodResizeValidator" }

// Handles implements admission.Plugin.
func (Resizes) Handles(op admission.Operation) bool { return op == admission.Update }

// Validate implements admission.Validator.
func (p Resizes) Validate(ctx context.Context, a *admission.Attributes) error {
	pod, _, ok := bound(a, "resize")
	if !ok || p.Off {
		return nil
	}
	n, err := changedOn(ctx, p.Objects, a, pod)
	if err != nil {
		return err
	}
	if os, ok := n.Labels[corev1.LabelOSStable]; ok && os != string(corev1.Linux) {
		return withCause(a.Forbid(fmt.Errorf("pod resize is only supported on linux nodes, node %q is %q", n.Name, os)), "UnsupportedPlatform")
	}
	var lacks []string
	requests := podspec.PodRequests(&pod.Spec)
	if cpu := requests[corev1.ResourceCPU]; cpu.Cmp(*n.Status.Allocatable.Cpu()) > 0 {
		lacks = append(lacks, fmt.Sprintf("cpu, requested: %d, allocatable: %d", cpu.MilliValue(), n.Status.Allocatable.Cpu().MilliValue()))
	}
	if memory := requests[corev1.ResourceMemory]; memory.Cmp(*n.Status.Allocatable.Memory()) > 0 {
		lacks = append(lacks, fmt.Sprintf("memory, requested: %d, allocatable: %d", memory.Value(), n.Status.Allocatable.Memory().Value()))
	}
	if len(lacks) == 0 {
		return nil
	}
	return withCause(a.Forbid(fmt.Errorf("node didn't have enough allocatable resources: %s", strings.Join(lacks, "; "))), "NodeCapacity")
}

// withCause adds a cause to the status of an error.
func withCause(err error, cause metav1.CauseType) error {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && status.ErrStatus.Details != nil {
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, metav1.StatusCause{Type: cause})
	}
	return err
}

// DeclaredFeatures refuses updates of pods that need features which their nodes do not declare.
type DeclaredFeatures struct{ Objects admission.Objects }

var _ admission.Validator = DeclaredFeatures{}

// Name implements admission.Plugin.
func (DeclaredFeatures) Name() string { return "NodeDeclaredFeatureValidator" }

// Handles implements admission.Plugin.
func (DeclaredFeatures) Handles(op admission.Operation) bool { return op == admission.Update }

// Validate implements admission.Validator.
func (p DeclaredFeatures) Validate(ctx context.Context, a *admission.Attributes) error {
	pod, was, ok := bound(a, "", "resize")
	if !ok {
		return nil
	}
	needs := map[string]bool{}
	if !equality.Semantic.DeepEqual(pod.Spec.Resources, was.Spec.Resources) {
		needs["InPlacePodLevelResourcesVerticalScaling"] = true
	}
	for i := range min(len(pod.Spec.InitContainers), len(was.Spec.InitContainers)) {
		c, old := &pod.Spec.InitContainers[i], &was.Spec.InitContainers[i]
		if !podspec.Restartable(old) && !equality.Semantic.DeepEqual(c.Resources, old.Resources) {
			needs["InPlacePodVerticalScalingInitContainers"] = true
		}
	}
	if len(needs) == 0 {
		return nil
	}
	n, err := changedOn(ctx, p.Objects, a, pod)
	if err != nil {
		return err
	}
	for _, has := range n.Status.DeclaredFeatures {
		delete(needs, has)
	}
	if len(needs) == 0 {
		return nil
	}
	return a.Forbid(fmt.Errorf("pod update requires features %s which are not available on node %q", strings.Join(slices.Sorted(maps.Keys(needs)), ", "), n.Name))
}
