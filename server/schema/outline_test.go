package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/e2e/bench/operators"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/kinds/custom"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/schema"
	"github.com/rowlock/rowlock/server/schema/structural"
)

// sameAsRewritten compares the output of an outline of a schema with that of the way through OpenAPI 3, byte
// by byte. It returns whether there is an outline.
func sameAsRewritten(t *testing.T, text []byte) bool {
	t.Helper()
	asJSON, wire := schema.Outline(text)
	v := &apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{}}
	if json.Unmarshal(text, &v.Schema.OpenAPIV3Schema) != nil || v.Schema.OpenAPIV3Schema == nil {
		if asJSON != nil && json.Valid(text) {
			t.Fatalf("an outline of what is no schema: %s", text)
		}
		return false
	}
	version3, err := structural.OpenAPI(v, false, release.Default)
	if asJSON == nil || err != nil { // an invalid schema is another matter
		return false
	}
	wantJSON, wantWire, err := schema.Rewritten(version3)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(asJSON, wantJSON) {
		t.Fatalf("%s\nis published as\n%s\ninstead of\n%s", text, asJSON, wantJSON)
	}
	if !bytes.Equal(wire, wantWire) {
		t.Fatalf("%s\nis published in protobuf as\n%q\ninstead of\n%q", text, wire, wantWire)
	}
	return true
}

// oddSchemas have constructs that no operator's definitions have.
var oddSchemas = []string{
	`{"type":"object"}`, `{}`, `{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"string"}}}`,
	`{"type":"object","nullable":true,"properties":{"a":{"type":"string"}}}`,
	`{"type":"object","required":["a","b"],"properties":{"a":{"type":"string","nullable":true},"b":{"type":"string"},"kind":{"type":"integer","nullable":true},"metadata":{"type":"object","properties":{"name":{"type":"string","pattern":"^a"}}}}}`,
	`{"type":"object","required":["a"],"additionalProperties":{"type":"string","nullable":true}}`, `{"type":"object","additionalProperties":false}`, `{"type":"object","additionalProperties":true}`,
	`{"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true,"required":["kind","spec"],"properties":{"spec":{"type":"object"},"kind":{"type":"string","enum":["A"]}}},"f":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}`,
	`{"type":"object","properties":{"a":{"type":"array"},"b":{"items":{"type":"string"},"type":"array","nullable":true},"c":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}}}`,
	`{"type":"object","properties":{"a":{"type":"number","maximum":1.50,"minimum":-1e3,"multipleOf":1e-9,"exclusiveMaximum":true,"exclusiveMinimum":false},"b":{"type":"integer","maximum":0,"minimum":-0,"maxLength":0},"c":{"type":"number","maximum":1e22,"minimum":123456789012345678}}}`,
	`{"type":"object","properties":{"a<b>&c":{"type":"string","description":"tab\t and \"quotes\" <b>&amp; é \u2028 \ud83d\ude00 \u00e9 \/ \b"},"é":{"type":"string","title":"","format":"x\u003cy"},"":{"type":"string"}}}`,
	`{"type":"object","properties":{"a":{"enum":["b","<",1,-5,true,null,"é"],"type":"string"},"b":{"enum":[1.5]},"c":{"enum":[{"a":1}]},"d":{"enum":[]},"z":{"type":"string"},"m":{"type":"string"}}}`,
	`{"type":"object","x-kubernetes-validations":[{"rule":"self.a < 1","message":"a & b","reason":"FieldValueInvalid","fieldPath":".a","optionalOldSelf":false},{"messageExpression":"'x'","rule":"true","message":""}],"properties":{"a":{"type":"integer"}}}`,
	`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"k":{"type":"string","default":"x"}}},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]},"b":{"type":"object","x-kubernetes-map-type":"atomic","default":{"x":1},"example":{"y":2},"externalDocs":{"url":"u"}}}}`,
	`{"type":"object","allOf":[{"required":["a"]}],"not":{"required":["b"],"properties":{"c":{"enum":["d"]}}},"oneOf":[{"required":["e"]},{"required":["f"]}]}`,
	`{"type":"object","required":["","a"],"properties":{"a":{"type":"string","enum":["\u007f\u0085é"],"x-kubernetes-validations":[{"rule":"self != '\u0085'"}]}}}`,
	` { "type" : "object" , "properties" : { "b" : { "type" : "string" } , "a" : { "type" : "boolean" } } } `,
	`{"type":"object","$ref":"x"}`, `{"type":"object","properties":{"a":{"type":null}}}`, `{"type":"object","Description":"x"}`, `{"type":"object","type":"object"}`, `[]`, `null`, `{"type":"object"`,
}

// TestOutlines: the output of an outline is, in each byte, that of the libraries' types.
func TestOutlines(t *testing.T) {
	for _, text := range oddSchemas {
		sameAsRewritten(t, []byte(text))
	}
	for _, d := range operated(t, 0, 40) {
		for i := range d.Spec.Versions {
			text, err := json.Marshal(d.Spec.Versions[i].Schema.OpenAPIV3Schema)
			if err != nil {
				t.Fatal(err)
			}
			if !sameAsRewritten(t, text) {
				t.Errorf("%s has no outline", d.Name)
			}
		}
	}
}

// TestOutlinesOfAnySchemas compares schemas that are thrown together.
func TestOutlinesOfAnySchemas(t *testing.T) {
	seed := rand.Uint64()
	some, outlined := thrown{rand.New(rand.NewPCG(seed, 0))}, 0
	const all = 5000
	for range all {
		text, err := json.Marshal(some.schema(0))
		if err != nil {
			t.Fatal(err)
		}
		if some.IntN(2) == 0 {
			text = bytes.ReplaceAll(text, []byte(`\u003c`), []byte(`<`))
		}
		if sameAsRewritten(t, text) {
			outlined++
		}
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
	if outlined < all/4 {
		t.Errorf("%d of %d have outlines, with seed %d", outlined, all, seed)
	}
}

// thrown throws schemas together.
type thrown struct{ *rand.Rand }

func (r thrown) one(of ...any) any { return of[r.IntN(len(of))] }

func (r thrown) name() string {
	return r.one("a", "b", "c", "kind", "metadata", "apiVersion", "spec", "é", "x<y").(string)
}

func (r thrown) names() (out []any) {
	for range r.IntN(4) {
		out = append(out, r.name())
	}
	return out
}

func (r thrown) schema(depth int) map[string]any {
	s := map[string]any{}
	maybe := func(name string, one, of int, value func() any) {
		if r.IntN(of) < one {
			s[name] = value()
		}
	}
	text := func() any { return r.one("", "some words", "a <b> & \"c\"\n", "é", "\u2028", "^[a-z]+$") }
	number := func() any { return r.one(0, 1, -1, 63, 1.5, 65535, 1e21, 1e-7) }
	count := func() any { return r.one(0, 1, 253, 1<<40) }
	yes := func() any { return r.IntN(4) > 0 }
	maybe("type", 5, 6, func() any { return r.one("object", "object", "array", "string", "integer", "number", "boolean", "") })
	for _, name := range []string{"description", "title", "format", "pattern"} {
		maybe(name, 1, 6, text)
	}
	for _, name := range []string{"maximum", "minimum", "multipleOf"} {
		maybe(name, 1, 12, number)
	}
	for _, name := range []string{"maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"} {
		maybe(name, 1, 12, count)
	}
	for _, name := range []string{"exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable", "x-kubernetes-int-or-string", "x-kubernetes-embedded-resource"} {
		maybe(name, 1, 10, yes)
	}
	maybe("x-kubernetes-preserve-unknown-fields", 1, 15, func() any { return true })
	maybe("x-kubernetes-list-type", 1, 10, func() any { return r.one("map", "set", "") })
	maybe("x-kubernetes-map-type", 1, 10, func() any { return r.one("atomic", "granular") })
	maybe("x-kubernetes-list-map-keys", 1, 10, func() any { return r.names() })
	maybe("x-kubernetes-validations", 1, 10, func() any {
		rule := map[string]any{"rule": text()}
		if r.IntN(2) == 0 {
			rule["message"], rule["optionalOldSelf"] = text(), yes()
		}
		if r.IntN(2) == 0 {
			rule["reason"], rule["fieldPath"], rule["messageExpression"] = text(), text(), text()
		}
		return []any{rule}
	})
	maybe("required", 1, 3, func() any { return r.names() })
	maybe("enum", 1, 8, func() any { return []any{text(), number(), r.one("x", true, nil, []any{1})} })
	maybe("default", 1, 12, func() any { return "x" })
	if depth > 3 {
		return s
	}
	below := func() any { return r.schema(depth + 1) }
	maybe("items", 1, 5, below)
	maybe("additionalProperties", 1, 6, func() any { return r.one(true, false, below(), below()) })
	maybe("properties", 2, 3, func() any {
		of := map[string]any{}
		for range r.IntN(4) {
			of[r.name()] = below()
		}
		return of
	})
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		maybe(name, 1, 25, func() any { return []any{below()} })
	}
	maybe("not", 1, 25, below)
	return s
}

// FuzzOutline compares all schemas that have an outline.
func FuzzOutline(f *testing.F) {
	for _, text := range oddSchemas {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) < 32<<10 && json.Valid(text) {
			sameAsRewritten(t, text)
		}
	})
}

// operated are definitions as operators have them, which were taken and have their names.
func operated(t testing.TB, from, n int) (out []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	set := operators.New(1)
	for i := range n {
		d, err := set.At(from + i)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := json.Unmarshal(d.Body, crd); err != nil {
			t.Fatal(err)
		}
		crd.Status.AcceptedNames = crd.Spec.Names
		out = append(out, crd)
	}
	return out
}

// asServed makes the resources of definitions, whose schemas are read from their texts.
func asServed(t testing.TB, definitions []*apiextensionsv1.CustomResourceDefinition) (out []*kinds.Resource) {
	t.Helper()
	for n, crd := range definitions {
		texts, digests := map[string][]byte{}, map[string]custom.Digest{}
		for i := range crd.Spec.Versions {
			v := &crd.Spec.Versions[i]
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			texts[v.Name], digests[v.Name] = text, custom.Digest{byte(n), byte(n >> 8), byte(i)}
		}
		d, err := custom.From(crd, 1, nil, custom.Source{
			Read: func(name string) (*apiextensionsv1.CustomResourceDefinitionVersion, int, error) {
				v := &apiextensionsv1.CustomResourceDefinitionVersion{}
				return v, len(texts[name]), json.Unmarshal(texts[name], v)
			},
			Text: func(name string) []byte {
				var v struct {
					Schema struct {
						OpenAPIV3Schema json.RawMessage `json:"openAPIV3Schema"`
					} `json:"schema"`
				}
				if json.Unmarshal(texts[name], &v) != nil {
					return nil
				}
				return v.Schema.OpenAPIV3Schema
			},
			Digests: digests,
		})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d.Resources...)
	}
	return out
}

func textOf(r *kinds.Resource) []byte { return r.Schema.(*custom.Version).Text() }

// BenchmarkVersion2 makes the document of version 2 of definitions of real size, in protobuf, from their
// texts, and by way of OpenAPI 3.
func BenchmarkVersion2(b *testing.B) {
	const definitions = 20
	catalogue := kinds.NewCatalogue(append(builtin.Resources(), asServed(b, operated(b, 0, definitions))...))
	for _, way := range []string{"outlines", "rewritten"} {
		for _, accept := range []string{"application/json", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"} {
			b.Run(fmt.Sprintf("%s/%s", way, accept[len(accept)-4:]), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					d := describing(catalogue, false)
					if way == "outlines" {
						d.CustomText = textOf
					}
					if w := get(b, d.ServeV2, "/openapi/v2", "Accept", accept, "Accept-Encoding", "gzip"); w.Code != 200 {
						b.Fatal(w.Code)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)/definitions, "ms/definition")
			})
		}
	}
}

// TestTextsAreTheDocument: the document of version 2 has the same bytes whether it is made from texts or from
// OpenAPI 3, in both forms.
func TestTextsAreTheDocument(t *testing.T) {
	catalogue := kinds.NewCatalogue(append(builtin.Resources(), asServed(t, operated(t, 40, 5))...))
	fromTexts, rewritten := describing(catalogue, false), describing(catalogue, false)
	fromTexts.CustomText = textOf
	for _, accept := range []string{"application/json", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", "application/json"} {
		one, two := get(t, fromTexts.ServeV2, "/openapi/v2", "Accept", accept), get(t, rewritten.ServeV2, "/openapi/v2", "Accept", accept)
		if !bytes.Equal(one.Body.Bytes(), two.Body.Bytes()) || one.Header().Get("Etag") != two.Header().Get("Etag") {
			t.Errorf("%s: %d and %d bytes differ", accept, one.Body.Len(), two.Body.Len())
		}
	}
}
