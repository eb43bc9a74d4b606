package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// in reports whether a write goes into a namespace.
func (a *Attributes) in() bool {
	return a.Namespace != "" && !a.Resource.OwnNamespace()
}

// NamespaceAutoProvision creates the missing namespaces of new objects.
type NamespaceAutoProvision struct {
	Namespaces Namespaces
	// Create makes a namespace. That it is there already is an AlreadyExists.
	Create func(ctx context.Context, name string) error
}

var _ Mutator = NamespaceAutoProvision{}

// Name implements Plugin.
func (NamespaceAutoProvision) Name() string { return "NamespaceAutoProvision" }

// Handles implements Plugin.
func (NamespaceAutoProvision) Handles(op Operation) bool { return op == Create }

// Admit implements Mutator.
func (p NamespaceAutoProvision) Admit(ctx context.Context, a *Attributes) error {
	if a.DryRun || !a.in() {
		return nil
	}
	exists, _, err := p.Namespaces.Namespace(ctx, a.Namespace)
	if err == nil && !exists {
		if err = p.Create(ctx, a.Namespace); apierrors.IsAlreadyExists(err) {
			err = nil
		}
	}
	if err != nil {
		return a.Forbid(err)
	}
	return nil
}

// NamespaceExists refuses writes into namespaces that do not exist.
type NamespaceExists struct{ Namespaces Namespaces }

var _ Validator = NamespaceExists{}

// Name implements Plugin.
func (NamespaceExists) Name() string { return "NamespaceExists" }

// Handles implements Plugin.
func (NamespaceExists) Handles(op Operation) bool { return op != Connect }

// Validate implements Validator.
func (p NamespaceExists) Validate(ctx context.Context, a *Attributes) error {
	if !a.in() {
		return nil
	}
	exists, _, err := p.Namespaces.Namespace(ctx, a.Namespace)
	switch {
	case err != nil:
		return apierrors.NewInternalError(err)
	case !exists:
		return apierrors.NewNotFound(corev1.Resource("namespaces"), a.Namespace)
	}
	return nil
}
