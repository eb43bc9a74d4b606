package policy_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/policy"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
)

// asker records questions, and always gives one answer.
type asker struct {
	asked   []string
	message authx.Decision
	err     error
}

func (a *asker) Authorize(_ context.Context, q *authx.Attributes) (authx.Decision, string, error) {
	a.asked = append(a.asked, fmt.Sprintf("%s %s/%s/%s %s/%s", q.Verb, q.APIGroup, q.APIVersion, q.Resource, q.Namespace, q.Name))
	return a.message, "", a.err
}

// policies are stored policies, by name; the value is what they take.
type policies map[string]*admissionregistrationv1.ParamKind

func (p policies) Get(_ context.Context, storage, _, name string) (kinds.Object, error) {
	if name == "unreadable" {
		return nil, errors.New("the database is away")
	}
	kind, ok := p[name]
	if !ok || storage != "validatingadmissionpolicies.admissionregistration.k8s.io" {
		return nil, nil
	}
	return vap(kind), nil
}

func (policies) List(context.Context, string, string, func([]byte) bool) ([]kinds.Object, error) {
	return nil, nil
}

func kind(apiVersion, name string) *admissionregistrationv1.ParamKind {
	return &admissionregistrationv1.ParamKind{APIVersion: apiVersion, Kind: name}
}

func vap(k *admissionregistrationv1.ParamKind) *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{ParamKind: k},
	}
}

func bound(to string, ref *admissionregistrationv1.ParamRef) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: to, ParamRef: ref},
	}
}

// elsewhere serves Boxes, and claims to serve Secrets, which are served here.
func elsewhere(kind schema.GroupVersionKind) (what schema.GroupVersionResource, namespaced, ok bool) {
	plural := map[string]string{"Box": "boxes", "Secret": "lies"}[kind.Kind]
	return kind.GroupVersion().WithResource(plural), true, plural != ""
}

func TestParametersAreAskedFor(t *testing.T) {
	const (
		who     = `user &{vera u1 [devs] map[]} `
		refused = `spec.paramRef: Forbidden: ` + who + `does not have "%s" permission on the object referenced by paramRef`
		all     = ` to determine minimum required permissions and ` + who + `does not have "get" permission for all groups, versions and resources`
	)
	stored := policies{
		"secrets": kind("v1", "Secret"), "none": nil, "widgets": kind("example.org/v1", "Widget"), "odd": kind("a/b/c", "Odd"), "deployments": kind("apps/v1", "Deployment"),
		"boxes": kind("far.example/v1", "Box"),
	}
	named, selected := &admissionregistrationv1.ParamRef{Name: "s", Namespace: "ns"}, &admissionregistrationv1.ParamRef{Selector: &metav1.LabelSelector{}}
	for name, c := range map[string]struct {
		obj, old       runtime.Object
		sub            string
		asked, message string // "": nothing is asked
	}{
		"a kind":                         {obj: vap(kind("v1", "Secret")), asked: "get /v1/secrets */*", message: `spec.paramKind: Forbidden: ` + who + `must have "get" permission on all objects of the referenced paramKind (kind=Secret, apiVersion=v1)`},
		"a kind of a group":              {obj: vap(kind("apps/v1", "Deployment")), asked: "get apps/v1/deployments */*", message: `(kind=Deployment, apiVersion=apps/v1)`},
		"an unknown kind":                {obj: vap(kind("example.org/v1", "Widget")), asked: "get example.org/v1/* */*", message: `(kind=Widget, apiVersion=example.org/v1)`},
		"a kind that does not parse":     {obj: vap(kind("a/b/c", "Odd")), asked: "get */*/* */*", message: `(kind=Odd, apiVersion=a/b/c)`},
		"a kind elsewhere":               {obj: vap(kind("far.example/v1", "Box")), asked: "get far.example/v1/boxes */*", message: `(kind=Box, apiVersion=far.example/v1)`},
		"a name of a kind elsewhere":     {obj: bound("boxes", named), asked: "get far.example/v1/boxes ns/s", message: fmt.Sprintf(refused, "get")},
		"no kind":                        {obj: vap(nil)},
		"the kind that it had":           {obj: vap(kind("v1", "Secret")), old: vap(kind("v1", "Secret"))},
		"another kind than it had":       {obj: vap(kind("v1", "Secret")), old: vap(kind("v1", "ConfigMap")), asked: "get /v1/secrets */*", message: "kind=Secret"},
		"a kind where there was none":    {obj: vap(kind("v1", "Secret")), old: vap(nil), asked: "get /v1/secrets */*", message: "kind=Secret"},
		"a status":                       {obj: vap(kind("v1", "Secret")), old: vap(nil), sub: "status"},
		"a name":                         {obj: bound("secrets", named), asked: "get /v1/secrets ns/s", message: fmt.Sprintf(refused, "get")},
		"a name anywhere":                {obj: bound("deployments", &admissionregistrationv1.ParamRef{Name: "s"}), asked: "get apps/v1/deployments /s", message: fmt.Sprintf(refused, "get")},
		"a selector":                     {obj: bound("secrets", selected), asked: "list /v1/secrets /", message: fmt.Sprintf(refused, "list")},
		"a name of a policy without":     {obj: bound("none", named), asked: "get */*/* ns/s", message: fmt.Sprintf(refused, "get")},
		"a name of no policy":            {obj: bound("gone", named), asked: "get */*/* ns/s", message: "unable to get policy gone" + all},
		"a name of an unreadable policy": {obj: bound("unreadable", named), asked: "get */*/* ns/s", message: "unable to get policy unreadable" + all},
		"a name of an unknown kind":      {obj: bound("widgets", named), asked: "get example.org/v1/* ns/s", message: "unable to resolve paramKind &{example.org/v1 Widget}" + all},
		"a name of an odd kind":          {obj: bound("odd", named), asked: "get */*/* ns/s", message: "unable to parse paramKind &{a/b/c Odd}" + all},
		"a name that it had":             {obj: bound("secrets", named), old: bound("secrets", named.DeepCopy()), asked: "get /v1/secrets ns/s", message: fmt.Sprintf(refused, "get")},
		"no name":                        {obj: bound("secrets", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			catalogue := kinds.NewCatalogue(builtin.Resources())
			a := &admission.Attributes{Operation: admission.Create, Object: c.obj, Old: c.old, Subresource: c.sub, User: &authx.Identity{Name: "vera", UID: "u1", Groups: []string{"devs"}}}
			a.Resource = catalogue.Lookup("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies")
			ask := func(z *asker) error {
				return policy.ParamAccess{Authorizer: z, Catalogue: catalogue, RemoteKinds: elsewhere, Objects: stored}.Validate(context.Background(), a)
			}
			for _, no := range []*asker{{}, {message: authx.Deny}, {message: authx.Allow, err: errors.New("the webhook is away")}} {
				err := ask(no)
				if c.asked == "" {
					if err != nil || len(no.asked) != 0 {
						t.Errorf("%v after %q", err, no.asked)
					}
					continue
				}
				if len(no.asked) != 1 || no.asked[0] != c.asked {
					t.Errorf("asked %q, want %q", no.asked, c.asked)
				}
				var st *apierrors.StatusError
				if !errors.As(err, &st) || st.ErrStatus.Code != http.StatusUnprocessableEntity || !strings.Contains(err.Error(), c.message) {
					t.Errorf("%v, want %q", err, c.message)
				}
			}
			if err := ask(&asker{message: authx.Allow}); err != nil {
				t.Errorf("who may is refused: %v", err)
			}
			a.User = &authx.Identity{Name: "root", Groups: []string{authx.GroupMasters}}
			if z := (&asker{}); ask(z) != nil || len(z.asked) != 0 {
				t.Errorf("masters were asked about: %q", z.asked)
			}
		})
	}
}

// TestReadingOfMutators: policies that change objects are read for like those that refuse.
func TestReadingOfMutators(t *testing.T) {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	mutator := &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	mutator.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "Secret"}
	bound := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	bound.Spec.PolicyName, bound.Spec.ParamRef = "p", &admissionregistrationv1.ParamRef{Namespace: "ns", Selector: &metav1.LabelSelector{}}
	for _, c := range []struct {
		plural, field, asks string
		obj, old            runtime.Object
		operation           admission.Operation
	}{
		{"mutatingadmissionpolicies", "spec.paramKind", "get /v1/secrets */*", mutator, nil, admission.Create},
		{"mutatingadmissionpolicies", "", "", mutator, mutator.DeepCopy(), admission.Update},
		{"mutatingadmissionpolicybindings", "spec.paramRef", "list */*/* ns/", bound, nil, admission.Create},
	} {
		who := &asker{message: authx.NoOpinion}
		r := policy.ParamAccess{Authorizer: who, Catalogue: catalogue, Objects: policies{}}
		err := r.Validate(context.Background(), &admission.Attributes{
			Operation: c.operation, Resource: catalogue.Lookup("admissionregistration.k8s.io", "v1alpha1", c.plural),
			Object: c.obj, Old: c.old, User: &authx.Identity{Name: "paula"},
		})
		if got := strings.Join(who.asked, "; "); got != c.asks {
			t.Errorf("%s: asked %q, want %q", c.plural, got, c.asks)
		}
		if (err != nil) != (c.field != "") || err != nil && !strings.Contains(err.Error(), c.field+": Forbidden: ") {
			t.Errorf("%s: %v, want %q", c.plural, err, c.field)
		}
	}
}
