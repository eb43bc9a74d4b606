package apiextensions

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"testing"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/e2e/bench/operators"
)

// typeNumber is another one each time that the type of a rule is made.
var typeNumber = regexp.MustCompile(`selfType[0-9]+`)

// bothWays checks a schema, which may be plain, and checks it as one that is not.
func bothWays(t *testing.T, s *apiext.JSONSchemaProps, tol tolerance) (quick, whole []string) {
	v, p := &apiext.CustomResourceValidation{OpenAPIV3Schema: s}, field.NewPath("spec")
	before := s.DeepCopy()
	for _, err := range checkSchema(t.Context(), v, false, tol, "v1", p) {
		quick = append(quick, typeNumber.ReplaceAllString(err.Error(), "selfType"))
	}
	if !reflect.DeepEqual(s, before) {
		t.Error("the checks changed what they checked")
	}
	var root field.ErrorList
	if s.Nullable {
		root = field.ErrorList{field.Forbidden(p.Child("openAPIV3Schema.nullable"), "nullable cannot be true at the root")}
	}
	w := &walk{t: tol, weights: weights{}}
	for _, err := range w.whole(t.Context(), s, p.Child("openAPIV3Schema"), root) {
		whole = append(whole, typeNumber.ReplaceAllString(err.Error(), "selfType"))
	}
	slices.Sort(quick) // the library goes through defaults in any order
	slices.Sort(whole)
	return quick, whole
}

// inwardSchema reads a schema in the form of the checks.
func inwardSchema(t testing.TB, text []byte) *apiext.JSONSchemaProps {
	one, out := &apiextensionsv1.JSONSchemaProps{}, &apiext.JSONSchemaProps{}
	if err := json.Unmarshal(text, one); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(one, out, nil); err != nil {
		t.Fatal(err)
	}
	return out
}

// odd makes schemas that are plain for the most part.
type odd struct {
	*rand.Rand
	oddness int // of a thousand keywords
}

func (o odd) one(of ...any) any { return of[o.IntN(len(of))] }

func (o odd) schema(depth int) map[string]any {
	s := map[string]any{}
	switch kind := o.IntN(10); {
	case kind < 4 && depth > 0:
		s["type"] = "object"
		if o.IntN(4) == 0 {
			s["additionalProperties"] = o.one(o.schema(depth-1), o.schema(depth-1), true)
			break
		}
		properties := map[string]any{}
		for range o.IntN(5) {
			properties[o.one("a", "b", "c", "metadata", "kind", "apiVersion", "name").(string)] = o.schema(depth - 1)
		}
		s["properties"] = properties
		if o.IntN(6) == 0 {
			s["x-kubernetes-map-type"] = o.one("atomic", "granular")
		}
	case kind < 6 && depth > 0:
		s["type"], s["items"] = "array", o.schema(depth-1)
		if o.IntN(3) == 0 {
			s["x-kubernetes-list-type"] = o.one("atomic", "set", "map")
			s["x-kubernetes-list-map-keys"] = o.one([]string{"a"}, []string{"name"}, []string{"a", "a"})
		}
	case kind < 7:
		s["x-kubernetes-int-or-string"] = true
		s["anyOf"] = []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}
	case kind < 8:
		s["x-kubernetes-preserve-unknown-fields"] = true
	default:
		s["type"] = o.one("string", "integer", "boolean", "number")
	}
	if o.IntN(4) == 0 {
		s["default"] = o.one("x", 1, 1.5, true, map[string]any{"a": "x", "q": 1}, []any{"x", "x"}, map[string]any{}, nil)
	}
	if o.IntN(5) == 0 {
		s["x-kubernetes-validations"] = []any{map[string]any{"rule": o.one("true", "self.a == 'x'", "has(self.a)", "self == oldSelf", "self.size() < 3", "", "self.all(x, x == 1)")}}
	}
	for name, value := range map[string]any{
		"description": "d", "title": "t", "format": o.one("date", "int32", "odd"), "nullable": true, "maximum": 3, "minLength": 2, "pattern": o.one("^a+$", "(", "x{2}"),
		"maxItems": 4, "maxProperties": 2, "enum": []any{"x", 1}, "required": []string{"a"}, "example": 1, "multipleOf": 2, "externalDocs": map[string]any{"url": "u"},
	} {
		if o.IntN(12) == 0 {
			s[name] = value
		}
	}
	for name, value := range map[string]any{
		"type": o.one("null", "odd", "", "array", "object"), "id": "i", "$schema": "s", "$ref": "r", "uniqueItems": true, "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": o.one(true, false),
		"x-kubernetes-int-or-string": true, "allOf": []any{map[string]any{"minLength": 1}}, "oneOf": []any{map[string]any{"required": []string{"a"}}}, "not": map[string]any{"type": "string"},
		"anyOf": o.one([]any{map[string]any{"type": "string"}}, []any{map[string]any{"type": "integer"}, map[string]any{"type": "string", "title": "t"}}, []any{map[string]any{"required": []string{"a"}}}),
		"items": o.one([]any{map[string]any{"type": "string"}}, map[string]any{"type": "string"}), "additionalItems": true, "definitions": map[string]any{}, "dependencies": map[string]any{}, "patternProperties": map[string]any{},
		"properties": map[string]any{"a": map[string]any{"type": "string"}}, "additionalProperties": o.one(true, false, map[string]any{"type": "string"}),
		"x-kubernetes-list-type": o.one("odd", "map", "set"), "x-kubernetes-map-type": "odd", "x-kubernetes-list-map-keys": []string{"a"},
	} {
		if o.IntN(1000) < o.oddness {
			s[name] = value
		}
	}
	return s
}

// TestPlainSchemas: the errors of a schema are the same with and without the check for plain schemas.
func TestPlainSchemas(t *testing.T) {
	seed := rand.Uint64()
	plains, passes := 0, 0
	for i := range 2400 {
		o := odd{rand.New(rand.NewPCG(seed, uint64(i))), []int{0, 0, 2, 20}[i%4]}
		tree := o.schema(4)
		if i%3 > 0 {
			tree = map[string]any{"type": "object", "properties": map[string]any{"spec": tree, "metadata": map[string]any{"type": "object"}}}
		}
		text, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		s := inwardSchema(t, text)
		for _, tol := range []tolerance{{}, {unprunedDefaults: true, looseSets: true, looseKeys: true, oddTypes: true}, {looseSchema: true}} {
			quick, whole := bothWays(t, s, tol)
			if !reflect.DeepEqual(quick, whole) {
				t.Fatalf("seed %d %d: %s\nwith %+v, if plain: %q\nwhole: %q", seed, i, text, tol, quick, whole)
			}
			if len(whole) == 0 {
				passes++
			}
		}
		if plainOf(s) != nil {
			plains++
		}
	}
	if plains < 120 || passes < 360 {
		t.Errorf("of 2400 schemas %d are plain, and %d of 7200 checks pass", plains, passes)
	}
}

// TestSchemasInUseArePlain: the schemas of operators are.
func TestSchemasInUseArePlain(t *testing.T) {
	set := operators.New(1)
	for i := range 40 {
		made, err := set.At(i)
		if err != nil {
			t.Fatal(err)
		}
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := json.Unmarshal(made.Body, d); err != nil {
			t.Fatal(err)
		}
		in, err := inward(d)
		if err != nil {
			t.Fatal(err)
		}
		for s := range schemas(&in.Spec) {
			if plainOf(s) == nil {
				t.Errorf("%s is taken for a schema that is not plain", made.Name)
			}
			if quick, whole := bothWays(t, s, tolerance{}); len(quick)+len(whole) > 0 {
				t.Errorf("%s: %q, and %q as a whole", made.Name, quick, whole)
			}
		}
	}
}

// TestPlainKnowsEveryKeyword: a new keyword of schemas must be classified as plain or not.
func TestPlainKnowsEveryKeyword(t *testing.T) {
	if n := reflect.TypeFor[apiext.JSONSchemaProps]().NumField(); n != 44 {
		t.Errorf("a schema has %d keywords", n)
	}
}
