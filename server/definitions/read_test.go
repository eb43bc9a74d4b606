package definitions_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/e2e/bench/operators"
	"github.com/rowlock/rowlock/server/definitions"
)

// TestRead: Read returns the same as a decoder, except for schemas; digests differ where schemas
// do.
func TestRead(t *testing.T) {
	set, codec := operators.New(2), newCluster(t).cache.JSON()
	for i := range 40 {
		d, err := set.At(i)
		if err != nil {
			t.Fatal(err)
		}
		got, digests, err := definitions.Read(codec, d.Body)
		if err != nil {
			t.Fatal(err)
		}
		want := &apiextensionsv1.CustomResourceDefinition{}
		if _, err := codec.Decode(d.Body, want, codecs.Ignore); err != nil {
			t.Fatal(err)
		}
		for i := range want.Spec.Versions {
			want.Spec.Versions[i].Schema = &apiextensionsv1.CustomResourceValidation{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: %s", d.Name, diff)
		}
		if len(digests) != len(d.Versions) {
			t.Errorf("%s: %d digests of %q", d.Name, len(digests), d.Versions)
		}
	}
	for _, text := range []string{``, `{}`, `{"spec":{}}`, `{"spec":{"versions":{}}}`, `{"spec":{"versions":[]}}`, `{"spec":{"versions":[1,{"name":"v1"},{"schema":{}}]}}`, `{"spec":{"versions":[{"name":"v1","schema":`} {
		if _, digests, _ := definitions.Read(codec, []byte(text)); len(digests) > 0 {
			t.Errorf("%s has digests", text)
		}
	}
}

// TestSchemaDigest: another schema alone makes another resource, and another digest.
func TestSchemaDigest(t *testing.T) {
	c := newCluster(t)
	crd := lamps(apiextensionsv1.ConditionTrue, "v1")
	c.set(crd.Name, crd)
	first := c.resource("v1")
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Required = []string{"spec"}
	c.set(crd.Name, crd)
	second := c.resource("v1")
	if first == second || definitions.Digest(first) == definitions.Digest(second) || definitions.Digest(second) == "" {
		t.Error("another schema is taken for the same")
	}
	if definitions.Digest(c.catalogue.Lookup("", "v1", "pods")) != "" {
		t.Error("a built-in resource has a schema of a definition")
	}
	if text := string(c.follower.OpenAPI(second)); len(text) < 10 {
		t.Errorf("described as %q", text)
	}
}
