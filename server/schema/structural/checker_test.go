package structural

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/release"
)

// schemas and values with nearly everything that they can contain.
var (
	checkedSchemas = []string{
		`{}`,
		`{"type":"string","minLength":2,"maxLength":4,"pattern":"^a"}`,
		`{"type":"string","format":"date-time"}`,
		`{"format":"date-time"}`,
		`{"type":"integer","minimum":1,"maximum":3,"exclusiveMaximum":true}`,
		`{"type":"integer","maximum":2.5}`,
		`{"type":"integer","minimum":-1e19}`,
		`{"type":"number","minimum":0.5,"exclusiveMinimum":true,"maximum":9007199254740993}`,
		`{"type":"number","multipleOf":0.5}`,
		`{"type":"boolean","nullable":true}`,
		`{"type":"string","enum":["a","é",null],"nullable":true}`,
		`{"enum":[1,1.5,{"a":1},[1]]}`,
		`{"type":"array","minItems":1,"maxItems":2,"items":{"type":"integer"}}`,
		`{"type":"object","required":["a"],"maxProperties":2,"properties":{"a":{"type":"string","nullable":true},"b":{"type":"object","additionalProperties":{"type":"integer"}}}}`,
		`{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}`,
		`{"type":"object","properties":{"a":{}},"oneOf":[{"required":["a"]},{"required":["b"]}],"not":{"required":["c"]}}`,
		`{"type":"string","allOf":[{"minLength":1},{"anyOf":[{"pattern":"^a"},{"pattern":"b$"}]}]}`,
		`{"minItems":1,"minProperties":1}`,
		`{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string"}}}`,
	}
	checkedValues = []string{
		`null`, `true`, `0`, `1`, `2`, `3`, `1.5`, `0.5`, `1e20`, `-9223372036854775808`, `""`, `"a"`, `"é"`, `"abc"`, `"abcde"`, `"2020-01-01T00:00:00Z"`,
		`[]`, `[1]`, `[1,2]`, `[1,2,3]`, `[null]`, `["a"]`, `{}`, `{"a":null}`, `{"a":"x"}`, `{"a":1}`, `{"b":{"c":1}}`, `{"a":"x","b":{"c":"d"}}`, `{"a":1,"b":2,"c":3}`, `{"c":1}`,
	}
)

// FuzzChecker compares the checker's verdicts and errors with the library's.
func FuzzChecker(f *testing.F) {
	for _, s := range checkedSchemas {
		for _, v := range checkedValues {
			f.Add([]byte(s), []byte(v))
		}
	}
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		v1 := apiextensionsv1.JSONSchemaProps{}
		var v any
		if len(schema) > 1<<14 || json.Unmarshal(schema, &v1) != nil || utiljson.Unmarshal(value, &v) != nil {
			return
		}
		props := apiextensions.JSONSchemaProps{}
		if apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&v1, &props, nil) != nil {
			return
		}
		if _, err := structuralschema.NewStructural(&props); err != nil { // no definition has such
			return
		}
		for _, of := range []release.Version{release.Default, release.Newest} {
			compareWithLibrary(t, &props, of, v, fmt.Sprintf("%v: %s for %s", of, value, schema))
		}
	})
}

// compareWithLibrary compares verdicts and errors for a value, as a release gives them, with those of the library.
func compareWithLibrary(t *testing.T, props *apiextensions.JSONSchemaProps, of release.Version, v any, what string) {
	q, err := newValues(props, of)
	if err != nil {
		return
	}
	openAPI, err := openAPIOf(props, of)
	if err != nil {
		t.Fatal(err)
	}
	want := validation.ValidateCustomResource(nil, v, validation.NewSchemaValidatorFromOpenAPI(openAPI))
	if !of.Has(release.NumberRanges) {
		want = slices.DeleteFunc(want, func(e *field.Error) bool { return outOfRange.MatchString(e.Detail) })
	}
	if got := q().valid(v); got != (len(want) == 0) {
		t.Fatalf("%s: valid is %v; the library finds %v", what, got, want)
	}
	got, complete := q().findErrors(t.Context(), nil, v, nil)
	if !complete {
		return
	}
	for _, list := range []field.ErrorList{got, want} { // properties have no order
		slices.SortFunc(list, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s:\n%s", what, diff)
	}
}
