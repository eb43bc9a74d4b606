package owners_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/owners"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
)

// grants are a user's rights, as VERB NAMESPACE/RESOURCE/SUBRESOURCE/NAME.
type grants []string

func (g grants) Authorize(_ context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	if slices.Contains(g, fmt.Sprintf("%s %s/%s/%s/%s", a.Verb, a.Namespace, a.Resource, a.Subresource, a.Name)) {
		return authx.Allow, "", nil
	}
	return authx.NoOpinion, "no rule", errors.New("no role")
}

// counted allows what does not name all owners, and counts the decisions.
type counted struct{ n int }

func (c *counted) Authorize(_ context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	c.n++
	if a.Name == "*" {
		return authx.NoOpinion, "no rule", nil
	}
	return authx.Allow, "", nil
}

// TestDecisionsAreBounded: a client that lists many owners does not have the authorizer, which may be a webhook, decide about all of them.
func TestDecisionsAreBounded(t *testing.T) {
	const bound = 1024
	catalogue := kinds.NewCatalogue(builtin.Resources())
	configMaps := catalogue.Lookup("", "v1", "configmaps")
	for count, enough := range map[int]bool{bound - 24: true, 20 * bound: false} {
		blocks, obj := true, &corev1.ConfigMap{}
		for i := range count {
			name := fmt.Sprint("d", i)
			obj.OwnerReferences = append(obj.OwnerReferences, metav1.OwnerReference{
				APIVersion: "apps/v1", Kind: "Deployment", Name: name, UID: types.UID(name), BlockOwnerDeletion: &blocks,
			})
		}
		decisions := &counted{}
		p := owners.Permissions{Authorizer: decisions, Catalogue: catalogue}
		err := p.Validate(kinds.WithRequested(t.Context(), configMaps), &admission.Attributes{
			Operation: admission.Create, Resource: configMaps, Namespace: "n", Name: "x", Object: obj,
		})
		if enough && err != nil || !enough && !apierrors.IsRequestEntityTooLargeError(err) || decisions.n > bound+1 {
			t.Errorf("%d owners: %d decisions, then %v", count, decisions.n, err)
		}
	}
}

// elsewhere serves namespaced Boxes and Shelves that are not.
func elsewhere(kind schema.GroupVersionKind) (what schema.GroupVersionResource, namespaced, ok bool) {
	plural := map[string]string{"Box": "boxes", "Shelf": "shelves"}[kind.Kind]
	return kind.GroupVersion().WithResource(plural), kind.Kind == "Box", kind.Group == "far.example" && plural != ""
}

func TestPermissions(t *testing.T) {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	ref := func(apiVersion, kind, name string, blocks bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(name), BlockOwnerDeletion: &blocks}
	}
	owned := func(refs ...metav1.OwnerReference) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", OwnerReferences: refs}}
	}
	const (
		front    = `configmaps "x" is forbidden: `
		undead   = front + "cannot set an ownerRef on a resource you can't delete: no rule, no role"
		unfinal  = front + "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: no rule, no role"
		nothing  = "<nil>"
		deletes  = "delete n/configmaps//x"
		finishes = "update n/deployments/finalizers/d"
	)
	free, blocking := ref("apps/v1", "Deployment", "d", false), ref("apps/v1", "Deployment", "d", true)
	for name, c := range map[string]struct {
		now, before *corev1.ConfigMap
		grants      grants
		want        string
	}{
		"nothing owned":         {owned(), nil, nil, nothing},
		"new, owned":            {owned(free), nil, nil, nothing},
		"given away":            {owned(free), owned(), nil, undead},
		"given, may delete":     {owned(free), owned(), grants{deletes}, nothing},
		"taken back":            {owned(), owned(free), nil, undead},
		"as before":             {owned(blocking), owned(blocking), nil, nothing},
		"new, blocks":           {owned(blocking), nil, nil, unfinal},
		"new, may block":        {owned(blocking), nil, grants{finishes}, nothing},
		"may block anything":    {owned(blocking), nil, grants{"update /*/finalizers/*"}, nothing},
		"begins to block":       {owned(blocking), owned(free), grants{deletes}, unfinal},
		"blocks still":          {owned(blocking, ref("v1", "Pod", "p", false)), owned(blocking), grants{deletes}, nothing},
		"cluster-wide owner":    {owned(ref("v1", "Node", "d", true)), nil, grants{"update /nodes/finalizers/d"}, nothing},
		"owner elsewhere":       {owned(ref("far.example/v1", "Box", "d", true)), nil, nil, unfinal},
		"of another kind there": {owned(ref("far.example/v1", "Lid", "d", true)), nil, grants{"update n/boxes/finalizers/d"}, front + `cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion far.example/v1 Kind Lid: no matches for kind "Lid" in version "far.example/v1"`},
		"may block elsewhere":   {owned(ref("far.example/v1", "Box", "d", true)), nil, grants{"update n/boxes/finalizers/d"}, nothing},
		"wide owner elsewhere":  {owned(ref("far.example/v1", "Shelf", "d", true)), nil, grants{"update n/shelves/finalizers/d"}, unfinal},
		"unknown owner": {owned(ref("x/v1", "Y", "d", true)), nil, nil,
			front + `cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion x/v1 Kind Y: no matches for kind "Y" in version "x/v1"`},
	} {
		a := &admission.Attributes{Operation: admission.Create, Resource: catalogue.Lookup("", "v1", "configmaps"), Namespace: "n", Name: "x", Object: c.now}
		if c.before != nil {
			a.Operation, a.Old = admission.Update, c.before
		}
		p := owners.Permissions{Authorizer: c.grants, Catalogue: catalogue, RemoteKinds: elsewhere}
		if err := p.Validate(t.Context(), a); fmt.Sprint(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
