package admission

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespaces looks namespaces up. That one does not exist must be certain; that one is
// terminating may be noticed a little late.
type Namespaces interface {
	Namespace(ctx context.Context, name string) (exists, terminating bool, err error)
}

// NamespaceLifecycle refuses writes into namespaces that do not exist, new objects in
// those that are terminating, and the deletion of those that the system needs.
type NamespaceLifecycle struct{ Namespaces Namespaces }

var _ Mutator = NamespaceLifecycle{}

func (NamespaceLifecycle) Name() string { return "NamespaceLifecycle" }

func (NamespaceLifecycle) Handles(op Operation) bool { return op != Connect }

func (p NamespaceLifecycle) Admit(ctx context.Context, a *Attributes) error {
	if a.Resource.OwnNamespace() {
		if a.Operation == Delete && isProtected(a.Name) {
			return apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, errors.New("this namespace may not be deleted"))
		}
		return nil
	}
	if a.Namespace == "" || a.Operation == Delete || a.Is("authorization.k8s.io", "localsubjectaccessreviews", "") {
		return nil
	}
	exists, terminating, err := p.Namespaces.Namespace(ctx, a.Namespace)
	if err != nil {
		return err
	}
	if !exists && a.Operation == Update && a.User != nil && a.User.Name == serverItself {
		return nil // it takes finalizers off objects that a namespace left behind
	}
	if !exists {
		return apierrors.NewNotFound(corev1.Resource("namespaces"), a.Namespace)
	}
	if a.Operation != Create || !terminating {
		return nil
	}
	refusal := a.Forbid(fmt.Errorf("unable to create new content in namespace %s because it is being terminated", a.Namespace))
	if st, ok := errors.AsType[*apierrors.StatusError](refusal); ok && st.ErrStatus.Details != nil {
		st.ErrStatus.Details.Causes = append(st.ErrStatus.Details.Causes, metav1.StatusCause{
			Type:    corev1.NamespaceTerminatingCause,
			Message: fmt.Sprintf("namespace %s is being terminated", a.Namespace),
			Field:   "metadata.namespace",
		})
	}
	return refusal
}

// serverItself is the identity of the server in calls to its own API.
const serverItself = "system:apiserver"

func isProtected(namespace string) bool {
	switch namespace {
	case metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic:
		return true
	}
	return false
}
