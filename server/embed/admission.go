package embed

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
)

// Admission is a rule for writes. An error refuses the write: the client gets an error of
// k8s.io/apimachinery/pkg/api/errors unchanged, and any other as 403 with its text.
type Admission struct {
	Name string
	// Mutate may change Write.Object in place, Validate gets the object as it will be stored. Either may be
	// nil. They are called concurrently, and must not take long: ctx has the deadline of the request.
	Mutate, Validate func(ctx context.Context, w *Write) error
}

// Write is a request that changes something.
type Write struct {
	Operation   string // CREATE, UPDATE, DELETE or CONNECT
	Resource    schema.GroupVersionResource
	Kind        schema.GroupVersionKind
	Subresource string
	Namespace   string
	Name        string // "" on a create whose name will be generated
	// Object is nil on delete, Old on create; Old is read-only. Objects of built-in kinds have the Go types
	// of k8s.io/api in the stored version, those of definitions are *unstructured.Unstructured.
	Object, Old runtime.Object
	DryRun      bool
	User        *authx.Identity
	Warn        func(text string) // adds a warning to the answer
}

// rule is an Admission as an admission.Plugin.
type rule struct{ Admission }

// Name implements admission.Plugin.
func (r rule) Name() string { return r.Admission.Name }

// Handles implements admission.Plugin.
func (rule) Handles(admission.Operation) bool { return true }

// Admit implements admission.Mutator.
func (r rule) Admit(ctx context.Context, a *admission.Attributes) error {
	return run(ctx, r.Admission.Mutate, a)
}

// Validate implements admission.Validator.
func (r rule) Validate(ctx context.Context, a *admission.Attributes) error {
	return run(ctx, r.Admission.Validate, a)
}

func run(ctx context.Context, rule func(context.Context, *Write) error, a *admission.Attributes) error {
	if rule == nil {
		return nil
	}
	gv := schema.GroupVersion{Group: a.Resource.Group, Version: a.Resource.Version}
	err := rule(ctx, &Write{
		Operation: string(a.Operation), Resource: gv.WithResource(a.Resource.Plural), Kind: gv.WithKind(a.Resource.Kind), Subresource: a.Subresource,
		Namespace: a.Namespace, Name: a.Name, Object: a.Object, Old: a.Old, DryRun: a.DryRun, User: a.User, Warn: a.Warn,
	})
	var known apierrors.APIStatus
	if err == nil || errors.As(err, &known) {
		return err
	}
	return a.Forbid(err)
}
