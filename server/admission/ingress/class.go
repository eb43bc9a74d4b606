// Package ingress holds the admission plugin of ingresses.
package ingress

import (
	"context"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/rowlock/rowlock/server/admission"
)

// DefaultClass names the default class in new ingresses that name none.
type DefaultClass struct{ Objects admission.Objects }

var _ admission.Mutator = DefaultClass{}

// Name implements admission.Plugin.
func (DefaultClass) Name() string { return "DefaultIngressClass" }

// Handles implements admission.Plugin.
func (DefaultClass) Handles(op admission.Operation) bool { return op == admission.Create }

// Admit implements admission.Mutator.
func (p DefaultClass) Admit(ctx context.Context, a *admission.Attributes) error {
	in, ok := a.Object.(*networkingv1.Ingress)
	if !ok || !a.Is("networking.k8s.io", "ingresses", "") || in.Spec.IngressClassName != nil {
		return nil
	}
	if _, old := in.Annotations["kubernetes.io/ingress.class"]; old {
		return nil
	}
	class, err := admission.DefaultClass(ctx, p.Objects, "ingressclasses.networking.k8s.io", networkingv1.AnnotationIsDefaultIngressClass)
	if err != nil || class == nil {
		return err
	}
	name := class.GetName()
	in.Spec.IngressClassName = &name
	return nil
}
