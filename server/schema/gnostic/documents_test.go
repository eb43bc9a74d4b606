package gnostic_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/schema"
	"github.com/rowlock/rowlock/server/schema/gnostic"
	"github.com/rowlock/rowlock/server/schema/structural"
)

const protobuf = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"

// parts are the parts of documents that were compared before. What documents share is compared once, for
// gnostic takes many seconds for all of them.
type parts map[string]bool

// fresh returns an object without the members, and members of members, that are known.
func (p parts) fresh(t *testing.T, text json.RawMessage) json.RawMessage {
	t.Helper()
	var members map[string]json.RawMessage
	decode(t, text, &members)
	for name, value := range members {
		switch name {
		case "components", "get", "put", "post", "delete", "patch":
			members[name] = p.fresh(t, value)
		case "paths", "schemas", "properties", "responses":
			var named map[string]json.RawMessage
			decode(t, value, &named)
			maps.DeleteFunc(named, func(_ string, v json.RawMessage) bool { return p.knows(v) })
			for name, v := range named {
				named[name] = p.fresh(t, v)
			}
			members[name] = encode(t, named)
		case "parameters":
			var list []json.RawMessage
			decode(t, value, &list)
			members[name] = encode(t, slices.DeleteFunc(list, p.knows))
		case "requestBody":
			if p.knows(value) {
				delete(members, name)
			}
		}
	}
	return encode(t, members)
}

func (p parts) knows(text json.RawMessage) bool {
	known := p[string(text)]
	p[string(text)] = true
	return known
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func encode(t *testing.T, v any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestDocuments: every document of the oldest and of the newest release, with all versions served, has the same content in
// Protobuf as gnostic's parse of its JSON form.
func TestDocuments(t *testing.T) {
	known := parts{}
	for _, v := range []release.Version{release.Oldest, release.Newest} {
		resources := builtin.Config{Release: v}.Resources()
		for i, r := range resources {
			on := *r
			on.Off = false
			resources[i] = &on
		}
		d := schema.NewDocuments(kinds.NewCatalogue(resources), v.String())
		get := func(path, accept string) []byte {
			t.Helper()
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("Accept", accept)
			w := httptest.NewRecorder()
			d.ServeV3(w, r)
			if w.Code != http.StatusOK || accept == protobuf && w.Header().Get("Content-Type") != protobuf {
				t.Fatalf("%s: %d %v", path, w.Code, w.Header())
			}
			return w.Body.Bytes()
		}
		var index struct{ Paths map[string]any }
		decode(t, get("/openapi/v3", "application/json"), &index)
		if len(index.Paths) < 60 {
			t.Fatalf("%s: %d documents", v, len(index.Paths))
		}
		for _, key := range slices.Sorted(maps.Keys(index.Paths)) {
			text := get("/openapi/v3/"+key, "application/json")
			wire, err := gnostic.Encode(text)
			if err != nil {
				t.Errorf("%s %s: %v", v, key, err)
				continue
			}
			if !bytes.Equal(get("/openapi/v3/"+key, protobuf), wire) {
				t.Errorf("%s %s: something else is served", v, key)
			}
			text = known.fresh(t, text)
			want, err := openapi_v3.ParseDocument(text)
			if err != nil {
				t.Fatalf("%s %s: %v", v, key, err)
			}
			compare(t, string(text), want)
		}
	}
}

// TestDefinition: the same for the document of a definition whose schema has every field.
func TestDefinition(t *testing.T) {
	var props apiextensionsv1.JSONSchemaProps
	decode(t, []byte(`{"type":"object","description":"d","example":{"a":[1]},"externalDocs":{"url":"u"},
		"x-kubernetes-validations":[{"rule":"self.n <= 3","message":"m","reason":"FieldValueInvalid"}],"required":["n"],"minProperties":1,"maxProperties":9007199254740993,
		"properties":{"n":{"type":"integer","format":"int64","default":3,"minimum":-1,"exclusiveMinimum":true,"maximum":1e21,"multipleOf":0.5},
		 "s":{"type":"string","default":"2001-01-01","enum":["2001-01-01","yes","ü☃😀","a: b"],"pattern":"^\\d","minLength":0,"maxLength":64,"nullable":true},
		 "b":{"type":"boolean","default":false,"enum":[true,false]},"f":{"type":"number","default":2.5,"enum":[2.5,1e-7]},
		 "o":{"type":"object","default":{"a":{"b":[1,null]}},"x-kubernetes-preserve-unknown-fields":true,"not":{"required":["z"]}},
		 "l":{"type":"array","default":["a"],"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"minItems":0,"maxItems":7,
		  "items":{"type":"object","required":["k"],"properties":{"k":{"type":"string","default":""}}}},
		 "q":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]},
		 "e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
		 "m":{"type":"object","x-kubernetes-map-type":"atomic","additionalProperties":{"type":"string"}},
		 "x-odd":{"type":"object","additionalProperties":true},"none":{"type":"object","oneOf":[{"required":["a"]},{"properties":{"a":{"enum":["x"]}}}],"properties":{"a":{"type":"string"}}}}}`), &props)
	version := &apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &props}}
	for _, v := range release.All() {
		text, err := structural.OpenAPI(version, false, v)
		if err != nil {
			t.Fatal(err)
		}
		want, err := openapi_v3.ParseDocument([]byte(document(string(text))))
		if err != nil {
			t.Fatalf("gnostic refuses %s: %v", text, err)
		}
		compare(t, document(string(text)), want)
	}
}
