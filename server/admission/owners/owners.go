// Package owners holds the admission plugin OwnerReferencesPermissionEnforcement.
//
// Only a user who may delete an object changes its owner references, on which garbage collection depends; and
// only a user who may update the finalizers of the owner sets blockOwnerDeletion.
package owners

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds"
)

// Permissions is the plugin.
type Permissions struct {
	admission.CreatesAndUpdates
	Authorizer  authx.Authorizer
	Catalogue   *kinds.Catalogue
	RemoteKinds admission.RemoteKinds // nil: only kinds of the catalogue
}

var _ admission.Validator = Permissions{}

// Name implements admission.Plugin.
func (Permissions) Name() string { return "OwnerReferencesPermissionEnforcement" }

func ownersOf(obj runtime.Object) []metav1.OwnerReference {
	if m, ok := obj.(metav1.Object); ok {
		return m.GetOwnerReferences()
	}
	return nil
}

// Validate implements admission.Validator.
func (p Permissions) Validate(ctx context.Context, a *admission.Attributes) error {
	if _, ok := a.Object.(metav1.Object); !ok || a.Is("", "pods", "status") {
		return nil // the status of a pod cannot change its owners
	}
	now, before := ownersOf(a.Object), ownersOf(a.Old)
	if slices.EqualFunc(now, before, func(x, y metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(x, y) }) {
		return nil
	}
	if a.Operation != admission.Create {
		d, reason, err := p.Authorizer.Authorize(ctx, &authx.Attributes{
			User: a.User, Verb: "delete", Namespace: a.Namespace, APIGroup: a.Resource.Group, APIVersion: a.Resource.Version,
			Resource: a.Resource.Plural, Subresource: a.Subresource, Name: a.Name, ResourceRequest: true,
		})
		if d != authx.Allow {
			return a.Forbid(fmt.Errorf("cannot set an ownerRef on a resource you can't delete: %v, %v", reason, err))
		}
	}
	blocking := newlyBlocking(now, before)
	if len(blocking) == 0 || p.mayFinalize(ctx, a, "*", "*", "*", "", "*") == nil {
		return nil
	}
	steps := kinds.Steps(ctx)
	for _, ref := range blocking {
		if err := steps.Spend(ctx, decisionSteps); err != nil {
			return err
		}
		owner, namespaced, err := p.owner(ref)
		if err != nil {
			return a.Forbid(fmt.Errorf("cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion %s Kind %s: %w", ref.APIVersion, ref.Kind, err))
		}
		namespace := ""
		if namespaced {
			namespace = a.Namespace
		}
		if err := p.mayFinalize(ctx, a, owner.Group, owner.Version, owner.Resource, namespace, ref.Name); err != nil {
			return a.Forbid(fmt.Errorf("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: %w", err))
		}
	}
	return nil
}

// decisionSteps is the cost of authorizing a reference, in steps of a write, which thus has enough for about a thousand: an authorizer may
// be a webhook.
const decisionSteps = 16 << 10

// newlyBlocking returns the references that hold up the owner's deletion and did not.
func newlyBlocking(now, before []metav1.OwnerReference) []metav1.OwnerReference {
	blocks := func(r metav1.OwnerReference) bool { return r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion }
	did := make(map[types.UID]bool, len(before))
	for _, ref := range before {
		if blocks(ref) {
			did[ref.UID] = true
		}
	}
	var out []metav1.OwnerReference
	for _, ref := range now {
		if blocks(ref) && !did[ref.UID] {
			out = append(out, ref)
		}
	}
	return out
}

// owner finds the resource of an owner.
func (p Permissions) owner(ref metav1.OwnerReference) (what schema.GroupVersionResource, namespaced bool, err error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return what, false, err
	}
	if r := p.Catalogue.LookupKind(gv.WithKind(ref.Kind)); r != nil && !r.Off {
		return gv.WithResource(r.Plural), r.Namespaced, nil
	}
	if what, namespaced, ok := p.RemoteKinds.Find(gv.WithKind(ref.Kind)); ok {
		return what, namespaced, nil
	}
	return what, false, &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: gv.Group, Kind: ref.Kind}, SearchedVersions: []string{gv.Version}}
}

// mayFinalize returns nil if the user may change the finalizers of an object.
func (p Permissions) mayFinalize(ctx context.Context, a *admission.Attributes, group, version, plural, namespace, name string) error {
	d, reason, err := p.Authorizer.Authorize(ctx, &authx.Attributes{
		User: a.User, Verb: "update", Namespace: namespace, APIGroup: group, APIVersion: version,
		Resource: plural, Subresource: "finalizers", Name: name, ResourceRequest: true,
	})
	if d == authx.Allow {
		return nil
	}
	return fmt.Errorf("%v, %v", reason, err)
}
