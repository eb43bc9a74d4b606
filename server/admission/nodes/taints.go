// Package nodes holds the admission plugins of nodes: NodeRestriction limits the writes of kubelets to their own node
// and its pods, and TaintNodesByCondition marks new nodes as not ready.
package nodes

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/admission"
)

// Taints marks new nodes as not ready, so that pods are scheduled on them only after the node controller has removed the
// taint.
type Taints struct{}

var _ admission.Mutator = Taints{}

// Name implements admission.Plugin.
func (Taints) Name() string { return "TaintNodesByCondition" }

// Handles implements admission.Plugin.
func (Taints) Handles(op admission.Operation) bool { return op == admission.Create }

// Admit implements admission.Mutator.
func (Taints) Admit(_ context.Context, a *admission.Attributes) error {
	node, ok := a.Object.(*corev1.Node)
	if !ok || !a.Is("", "nodes", "") {
		return nil
	}
	taint := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	for i := range node.Spec.Taints {
		if node.Spec.Taints[i].MatchTaint(&taint) {
			return nil
		}
	}
	node.Spec.Taints = append(node.Spec.Taints, taint)
	return nil
}
