package apiextensions

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/e2e/bench/operators"
	"github.com/rowlock/rowlock/server/release"
)

// TestPasses: a schema that passed is recognized in any definition; the number of remembered ones has a bound,
// and those in use stay.
func TestPasses(t *testing.T) {
	var p passes
	one := func(i int) pass { return pass{text: [32]byte{byte(i), byte(i >> 8), byte(i >> 16)}} }
	p.add(one(0))
	if p.has(pass{text: one(0).text, status: true}) || !p.has(one(0)) {
		t.Error("a schema passed, or did not pass, for another kind of status")
	}
	for i := range 3 * passesKept {
		if p.add(one(i + 1)); i%1000 == 0 && !p.has(one(0)) {
			t.Fatalf("after %d others what is in use is forgotten", i)
		}
		if len(p.now)+len(p.before) > 2*passesKept {
			t.Fatalf("%d and %d are remembered", len(p.now), len(p.before))
		}
	}
	if p.has(one(1)) || !p.has(one(3*passesKept)) {
		t.Error("the oldest is remembered, or the newest is not")
	}
}

// TestPassed: a schema is known by its text alone where nothing was tolerated in it, and checks
// change nothing in what they check.
func TestPassed(t *testing.T) {
	read := func(schema string) *apiextensionsv1.CustomResourceDefinition {
		d := &apiextensionsv1.CustomResourceDefinition{}
		text := `{"metadata":{"name":"cs.b.example"},"spec":{"group":"b.example","names":{"plural":"cs","kind":"C"},"scope":"Cluster","versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":` + schema + `}}]}}`
		if err := json.Unmarshal([]byte(text), d); err != nil {
			t.Fatal(err)
		}
		defaultDefinition(d)
		return d
	}
	ctx := context.Background()
	known := func(d *apiextensionsv1.CustomResourceDefinition) bool {
		in, err := inward(d)
		if err != nil {
			t.Fatal(err)
		}
		return passed.has(pass{textsOf(d, in)[in.Spec.Validation], false})
	}
	const loose = `{"type":"object","properties":{"passed":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object"}}}}`
	d := read(loose)
	if known(d) || len(validateDefinition(ctx, release.Default, d)) == 0 || known(d) {
		t.Error("a schema that does not pass is known to")
	}
	if errs := validateDefinitionUpdate(ctx, release.Default, d, d); len(errs) > 0 || known(d) {
		t.Errorf("a schema that is tolerated: %v, or it passes anywhere", errs)
	}
	d = read(`{"type":"object","description":"passed"}`)
	if errs := validateDefinition(ctx, release.Default, d); len(errs) > 0 || !known(d) {
		t.Errorf("a schema that passes: %v, or it is not known", errs)
	}
	if d.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "another"; known(d) {
		t.Error("another text is known")
	}
	for _, empty := range []string{"dependencies", "definitions", "patternProperties", "properties"} {
		text := `{"type":"object","properties":{"in":{"type":"object","description":"` + empty + `"`
		alone := len(validateDefinition(ctx, release.Default, read(text+`,"`+empty+`":{}}}}`)))
		if errs := validateDefinition(ctx, release.Default, read(text+`}}}`)); len(errs) > 0 {
			t.Fatal(errs)
		}
		if errs := validateDefinition(ctx, release.Default, read(text+`,"`+empty+`":{}}}}`)); len(errs) != alone {
			t.Errorf("empty %s: %d errors, and %v once the schema without has passed", empty, alone, errs)
		}
	}
	set := operators.New(1)
	for i := range 20 {
		made, err := set.At(i)
		if err != nil {
			t.Fatal(err)
		}
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := json.Unmarshal(made.Body, d); err != nil {
			t.Fatal(err)
		}
		defaultDefinition(d)
		before := d.DeepCopy()
		if errs := validateDefinition(ctx, release.Default, d); len(errs) > 0 || !reflect.DeepEqual(d, before) {
			t.Errorf("%s: %v, or checks changed it", made.Name, errs)
		}
		in, err := inward(d)
		if texts := textsOf(d, in); err != nil || len(texts) == 0 || len(texts) != countSchemas(in) {
			t.Errorf("%s: %d texts, %v", made.Name, len(texts), err)
		}
	}
}

func countSchemas(d *apiext.CustomResourceDefinition) (n int) {
	for range schemas(&d.Spec) {
		n++
	}
	return n
}
