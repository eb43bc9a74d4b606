// Package ingress holds the admission plugin DefaultIngressClass: new ingresses without a class get the default one.
package ingress

import (
	"context"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/rowlock/rowlock/server/admission"
)

// DefaultClass names the default class in new ingresses that name none.
func DefaultClass(objects admission.Objects) admission.Mutator {
	return admission.Change[*networkingv1.Ingress]{
		Writes: admission.Writes{Plugin: "DefaultIngressClass", Operations: []admission.Operation{admission.Create}, Group: "networking.k8s.io", Plural: "ingresses"},
		Apply: func(ctx context.Context, in *networkingv1.Ingress) error {
			if _, named := in.Annotations["kubernetes.io/ingress.class"]; named || in.Spec.IngressClassName != nil {
				return nil
			}
			class, err := admission.DefaultClass(ctx, objects, "ingressclasses.networking.k8s.io", networkingv1.AnnotationIsDefaultIngressClass)
			if err != nil || class == nil {
				return err
			}
			in.Spec.IngressClassName = new(class.GetName())
			return nil
		},
	}
}
