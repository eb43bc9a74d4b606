package policy

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/status"
)

// ParamAccess refuses policies and bindings that would make the server read parameter objects that their writers
// may not read: messages can contain the content of a parameter. It also runs if policies are not enforced,
// because they may be enforced later, and before every other validator, because it is part of the validation
// of the object.
type ParamAccess struct {
	admission.CreatesAndUpdates
	Authorizer  authx.Authorizer
	Catalogue   *kinds.Catalogue
	RemoteKinds admission.RemoteKinds // nil: only kinds of the catalogue
	Objects     admission.Objects
}

var _ admission.Validator = ParamAccess{}

// Name implements admission.Plugin.
func (ParamAccess) Name() string { return "PolicyParameterReading" }

// Validate implements admission.Validator.
func (p ParamAccess) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Subresource != "" || a.User == nil || a.User.InGroup(authx.GroupMasters) {
		return nil
	}
	switch obj := a.Object.(type) {
	case *admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.MutatingAdmissionPolicy:
		now, old := kindOf(obj), kindOf(a.Old)
		if now == nil || old != nil && *old == *now {
			return nil
		}
		return refused(a, "paramKind", p.mayUseKind(ctx, a.User, now))
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		return p.binding(ctx, a, validatingStorage, obj.Spec.PolicyName, obj.Spec.ParamRef)
	case *admissionregistrationv1.MutatingAdmissionPolicyBinding:
		return p.binding(ctx, a, mutatingStorage, obj.Spec.PolicyName, obj.Spec.ParamRef)
	}
	return nil
}

// binding decides on a binding of one of the policies of a storage. As in a stock server it also checks updates that do not
// change the reference: the policy may take another kind since.
func (p ParamAccess) binding(ctx context.Context, a *admission.Attributes, storage, policy string, ref *admissionregistrationv1.ParamRef) error {
	if ref == nil {
		return nil
	}
	kind := func() (*admissionregistrationv1.ParamKind, bool) { return p.paramKind(ctx, storage, policy) }
	return refused(a, "paramRef", p.mayUseRef(ctx, a.User, policy, kind, ref))
}

// kindOf returns the parameter kind of a policy; nil if it has none, or if the object is not a policy.
func kindOf(obj any) *admissionregistrationv1.ParamKind {
	switch p := obj.(type) {
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		return p.Spec.ParamKind
	case *admissionregistrationv1.MutatingAdmissionPolicy:
		return p.Spec.ParamKind
	}
	return nil
}

// refused returns the answer that a problem with a field of the spec makes; nil without one.
func refused(a *admission.Attributes, name, problem string) error {
	if problem == "" {
		return nil
	}
	return status.Invalid(a.Resource.Release, a.Resource.GVK().GroupKind(), a.Meta().GetName(), field.ErrorList{field.Forbidden(field.NewPath("spec", name), problem)})
}

// paramKind returns the parameter kind of a stored policy; false if there is no such policy, or it cannot be
// read.
func (p ParamAccess) paramKind(ctx context.Context, storage, policy string) (*admissionregistrationv1.ParamKind, bool) {
	obj, err := p.Objects.Get(ctx, storage, "", policy)
	if obj == nil || err != nil {
		return nil, false
	}
	return kindOf(obj), true
}

// mayUseKind returns why a user may not name a parameter kind: that requires the right to get all objects of
// the kind, in all namespaces.
func (p ParamAccess) mayUseKind(ctx context.Context, user *authx.Identity, kind *admissionregistrationv1.ParamKind) string {
	what, _ := p.resourceOf(kind)
	what.User, what.Verb, what.Namespace, what.Name = user, "get", "*", "*"
	if p.allowed(ctx, what) {
		return ""
	}
	return fmt.Sprintf("user %v must have \"get\" permission on all objects of the referenced paramKind (kind=%s, apiVersion=%s)", user, kind.Kind, kind.APIVersion)
}

// mayUseRef returns the reason why a user may not refer to parameters of a policy: by name one has
// to be allowed to get them, by a selector to list them; without a namespace, in all
// namespaces. Where they are unknown, the question is about everything.
func (p ParamAccess) mayUseRef(ctx context.Context, user *authx.Identity, name string, policy func() (*admissionregistrationv1.ParamKind, bool), ref *admissionregistrationv1.ParamRef) string {
	what, problem := everything(), ""
	kind, found := policy()
	switch {
	case !found:
		problem = "get policy " + name
	case kind != nil:
		what, problem = p.resourceOf(kind)
	}
	what.User, what.Verb, what.Namespace, what.Name = user, "get", ref.Namespace, ref.Name
	if ref.Name == "" {
		what.Verb = "list"
	}
	switch {
	case p.allowed(ctx, what):
		return ""
	case problem != "":
		return fmt.Sprintf("unable to %s to determine minimum required permissions and user %v does not have %q permission for all groups, versions and resources", problem, user, what.Verb)
	}
	return fmt.Sprintf("user %v does not have %q permission on the object referenced by paramRef", user, what.Verb)
}

// everything returns a request for all resources of all groups.
func everything() authx.Attributes {
	return authx.Attributes{APIGroup: "*", APIVersion: "*", Resource: "*", ResourceRequest: true}
}

// resourceOf returns the resource of a kind, or all that it may be, unknown ones last.
func (p ParamAccess) resourceOf(kind *admissionregistrationv1.ParamKind) (what authx.Attributes, problem string) {
	what = everything()
	gv, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return what, fmt.Sprintf("parse paramKind &{%s %s}", kind.APIVersion, kind.Kind)
	}
	what.APIGroup, what.APIVersion = gv.Group, gv.Version
	// Resources of this server take precedence: the policy would read them.
	if r := p.Catalogue.LookupKind(gv.WithKind(kind.Kind)); r != nil && !r.Off {
		what.Resource = r.Plural
		return what, ""
	}
	if there, _, ok := p.RemoteKinds.Find(gv.WithKind(kind.Kind)); ok {
		what.Resource = there.Resource
		return what, ""
	}
	return what, fmt.Sprintf("resolve paramKind &{%s %s}", kind.APIVersion, kind.Kind)
}

// allowed reports whether the authorizer allows a request. An error counts as a denial.
func (p ParamAccess) allowed(ctx context.Context, what authx.Attributes) bool {
	d, _, err := p.Authorizer.Authorize(ctx, &what)
	return err == nil && d == authx.Allow
}
