package core

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// Namespace is the strategy of Namespaces. One is kept while its spec.finalizers name a component that must
// empty it.
var Namespace = kinds.Typed[*corev1.Namespace]{
	ValidateName:                apivalidation.ValidateNamespaceName,
	Meta:                        &kinds.WholeMeta,
	Default:                     defaultNamespace,
	PrepareForCreate:            prepareNamespace,
	PrepareForUpdate:            func(n, old *corev1.Namespace) { n.Spec.Finalizers = old.Spec.Finalizers },
	Validate:                    validateNamespace,
	Canonicalize:                labelNamespace,
	UnconditionalUpdate:         true,
	ReturnDeletedObject:         true,
	Status:                      &kinds.Status[*corev1.Namespace]{Validate: validateNamespaceStatus},
	Terminate:                   terminateNamespace,
	TerminateRecordsPropagation: true,
	Held:                        func(n *corev1.Namespace) bool { return len(n.Spec.Finalizers) > 0 },
}.Strategy()

// NamespaceFinalize has the rules for their spec.finalizers.
var NamespaceFinalize = kinds.Typed[*corev1.Namespace]{
	Keep:                func(n, old *corev1.Namespace) { n.Status = old.Status },
	ValidateUpdate:      validateNamespaceFinalize,
	UnconditionalUpdate: true,
	ResetFields:         []string{"status"},
}.Strategy()

// NamespaceFields are the selectable fields of Namespaces.
var NamespaceFields = []kinds.SelectableField{{Label: "status.phase", Path: []string{"status", "phase"}}}

// NamespaceColumns is their Table form.
var NamespaceColumns = columns.Of(func(n *corev1.Namespace, now time.Time) []any {
	return []any{n.Name, string(n.Status.Phase), columns.Since(n.CreationTimestamp, now)}
}, columns.Name(), columns.Text("Status", "The status of the namespace"), columns.Age())

// terminateNamespace marks a namespace that is deleted: it stays until its contents
// are gone.
func terminateNamespace(n *corev1.Namespace, now time.Time) {
	n.DeletionTimestamp = &metav1.Time{Time: now}
	n.Status.Phase = corev1.NamespaceTerminating
}

func defaultNamespace(n *corev1.Namespace) {
	labelNamespace(n)
	n.Status.Phase = cmp.Or(n.Status.Phase, corev1.NamespaceActive)
}

// labelNamespace gives a namespace the label that selectors of namespaces use. One
// whose name is yet to be generated gets it later.
func labelNamespace(n *corev1.Namespace) {
	if n.Name == "" {
		return
	}
	if n.Labels == nil {
		n.Labels = make(map[string]string, 1)
	}
	n.Labels[corev1.LabelMetadataName] = n.Name
}

func prepareNamespace(n *corev1.Namespace) {
	n.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	for _, f := range n.Spec.Finalizers {
		if f == corev1.FinalizerKubernetes {
			return
		}
	}
	n.Spec.Finalizers = append(n.Spec.Finalizers, corev1.FinalizerKubernetes)
}

func validateNamespace(n *corev1.Namespace) field.ErrorList {
	var errs field.ErrorList
	for _, f := range rules.Until(&errs, n.Spec.Finalizers) {
		errs = append(errs, validateFinalizer(string(f), specPath.Child("finalizers"))...)
	}
	return errs
}

func validateNamespaceStatus(n, _ *corev1.Namespace) field.ErrorList {
	path := statusPath.Child("Phase")
	switch {
	case n.DeletionTimestamp.IsZero() && n.Status.Phase != corev1.NamespaceActive:
		return field.ErrorList{field.Invalid(path, n.Status.Phase, "may only be 'Active' if `deletionTimestamp` is empty")}
	case !n.DeletionTimestamp.IsZero() && n.Status.Phase != corev1.NamespaceTerminating:
		return field.ErrorList{field.Invalid(path, n.Status.Phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")}
	}
	return nil
}

func validateNamespaceFinalize(n, _ *corev1.Namespace) field.ErrorList {
	var errs field.ErrorList
	for i, f := range rules.Until(&errs, n.Spec.Finalizers) {
		errs = append(errs, validateFinalizer(string(f), specPath.Child("finalizers").Index(i))...)
	}
	return errs
}

// validateFinalizer checks a finalizer: qualified, or one of the three names that
// predate qualification.
func validateFinalizer(name string, path *field.Path) field.ErrorList {
	errs := apivalidation.ValidateFinalizerName(name, path)
	if strings.Contains(name, "/") {
		return errs
	}
	switch name {
	case string(corev1.FinalizerKubernetes), "orphan", "foregroundDeletion":
		return errs
	}
	return append(errs, field.Invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified"))
}
