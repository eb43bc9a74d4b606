package webhook

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1beta1 "k8s.io/api/authorization/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/authx"
)

// TestBetaQuestion holds our form of v1beta1 to the package of that version.
func TestBetaQuestion(t *testing.T) {
	t.Parallel()
	z := &Authorizer{gvk: schema.GroupVersionKind{Group: "authorization.k8s.io", Version: "v1beta1", Kind: "SubjectAccessReview"}}
	selected, err := labels.Parse("app in (a,b),!gone")
	if err != nil {
		t.Fatal(err)
	}
	requirements, _ := selected.Requirements()
	user := &authx.Identity{Name: "u", UID: "7", Groups: []string{"g", "h"}, Extra: map[string][]string{"k": {"v", "w"}}}
	for name, a := range map[string]*authx.Attributes{
		"nobody":    {},
		"a path":    {User: user, Verb: "get", Path: "/metrics"},
		"no groups": {User: &authx.Identity{Name: "u"}, Verb: "get", Path: "/metrics"},
		"a resource": {
			User: user, ResourceRequest: true, Verb: "list", APIGroup: "apps", APIVersion: "v1", Namespace: "n", Resource: "deployments", Subresource: "scale", Name: "d",
			FieldRequirements: fields.OneTermEqualSelector("metadata.name", "d").Requirements(), LabelRequirements: requirements,
		},
	} {
		got, err := json.Marshal(z.review(a))
		if err != nil {
			t.Fatal(err)
		}
		spec := specOf(a)
		theirs := &authorizationv1beta1.SubjectAccessReview{
			TypeMeta: metav1.TypeMeta{Kind: "SubjectAccessReview", APIVersion: "authorization.k8s.io/v1beta1"},
			Spec: authorizationv1beta1.SubjectAccessReviewSpec{
				ResourceAttributes:    (*authorizationv1beta1.ResourceAttributes)(spec.ResourceAttributes),
				NonResourceAttributes: (*authorizationv1beta1.NonResourceAttributes)(spec.NonResourceAttributes),
				User:                  spec.User, Groups: spec.Groups, UID: spec.UID, Extra: map[string]authorizationv1beta1.ExtraValue{},
			},
		}
		for k, v := range spec.Extra {
			theirs.Spec.Extra[k] = authorizationv1beta1.ExtraValue(v)
		}
		want, err := json.Marshal(theirs)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
