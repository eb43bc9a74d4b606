package operators

import (
	"bytes"
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rowlock/rowlock/server/kinds/apiextensions"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/schema/structural"
)

// TestDefinitions: a number always makes the same definitions; they pass validation, and their
// objects are valid, without unknown fields, in each version.
func TestDefinitions(t *testing.T) {
	sum := 0
	for i := range 2 * len(families) {
		d, err := New(1).At(i)
		if err != nil {
			t.Fatal(err)
		}
		again, err := New(1).At(i)
		if err != nil || !bytes.Equal(d.Body, again.Body) {
			t.Fatalf("%s is not the same when it is made again: %v", d.Name, err)
		}
		sum += len(d.Body)
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := json.Unmarshal(d.Body, crd); err != nil {
			t.Fatal(err)
		}
		strategy := apiextensions.CustomResourceDefinition(release.Default)
		strategy.Default(crd)
		strategy.PrepareForCreate(t.Context(), crd)
		if errs := strategy.Validate(t.Context(), crd); len(errs) > 0 {
			t.Errorf("%s: %v", d.Name, errs[:min(3, len(errs))])
			continue
		}
		for v := range crd.Spec.Versions {
			checkObject(t, d, &crd.Spec.Versions[v])
		}
	}
	if mean := sum / (2 * len(families)); mean < 50_000 || mean > 400_000 {
		t.Errorf("a definition has %d bytes on average", mean)
	}
}

func checkObject(t *testing.T, d *Definition, v *apiextensionsv1.CustomResourceDefinitionVersion) {
	t.Helper()
	schema, err := structural.New(v, false, release.Default)
	if err != nil {
		t.Fatalf("%s: %v", d.Name, err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(d.Object(v.Name, "one")); err != nil {
		t.Fatal(err)
	}
	unknown, err := schema.Coerce(u.Object)
	if err != nil || len(unknown) > 0 {
		t.Errorf("%s %s: unknown %v, %v", d.Name, v.Name, unknown, err)
	}
	schema.Default(u.Object)
	if errs := schema.Validate(t.Context(), nil, u.Object, nil); len(errs) > 0 {
		t.Errorf("%s %s: %v", d.Name, v.Name, errs[:min(3, len(errs))])
	}
}
