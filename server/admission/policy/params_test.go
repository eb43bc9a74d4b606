package policy_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/server/kinds/custom"
	"github.com/rowlock/rowlock/server/release"
)

// caps is a definition whose objects were stored as v1, and are stored as v2 by now.
const caps = `
spec:
  group: example.com
  scope: Cluster
  names: {plural: caps, kind: Cap, singular: cap, listKind: CapList}
  versions:
  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {most: {type: integer}, mode: {type: string}}}}}}}
  - {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {max: {type: integer}, mode: {type: string, default: strict}}}}}}}
  - {name: v1beta1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
`

// renaming is a conversion webhook that renames the field max of v1 to most.
type renaming struct{ away bool }

func (c *renaming) Convert(_ context.Context, to schema.GroupVersion, objs []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if c.away {
		return nil, errors.New("the webhook is away")
	}
	for _, u := range objs {
		spec := u.Object["spec"].(map[string]any)
		if u.GetAPIVersion() == "example.com/v1" {
			spec["most"] = spec["max"]
			delete(spec, "max")
		}
		u.SetAPIVersion(to.String())
	}
	return objs, nil
}

// TestCustomParameters: a policy sees a custom parameter in the version of its paramKind, with defaults, whatever version it is
// stored in; a failed conversion refuses the writes of that moment, and no later ones.
func TestCustomParameters(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(caps), crd); err != nil {
		t.Fatal(err)
	}
	crd.Status.AcceptedNames = crd.Spec.Names
	webhook := &renaming{}
	definition, err := custom.New(crd, 1000, webhook, release.Default)
	if err != nil {
		t.Fatal(err)
	}
	const spec = `"paramKind":{"apiVersion":"example.com/v2","kind":"Cap"},"validations":[{"expression":"params.spec.most == 5 && params.spec.mode == 'strict' && params.apiVersion == 'example.com/v2'"}]`
	const binding = deny + `,"paramRef":{"name":"a","parameterNotFoundAction":"Deny"}`
	c := newCluster(t, definition.Resources...)
	c.set("caps.example.com", "", "a", `{"apiVersion":"example.com/v1","kind":"Cap","metadata":{"name":"a","uid":"u"},"spec":{"max":5}}`)
	c.policy("p", spec, binding)
	for i, step := range []struct{ away, refused bool }{{true, true}, {true, true}, {false, false}, {true, false}} { // what was converted once is kept
		webhook.away = step.away
		if _, err := c.create(nil); (err != nil) != step.refused || err != nil && !strings.Contains(err.Error(), "the webhook is away") {
			t.Errorf("step %d: the write ends with %v", i, err)
		}
	}
	c.policy("p", strings.Replace(spec, "v2", "v1beta1", 1), binding)
	if _, err := c.create(nil); err == nil || !strings.Contains(err.Error(), "failed to find resource referenced by paramKind") {
		t.Errorf("a version that is not served: %v", err)
	}
}
