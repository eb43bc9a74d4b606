package schema_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/kinds/custom"
	"github.com/rowlock/rowlock/server/schema"
)

// defined makes the resources of a definition with a status and a scale.
func defined(t *testing.T, group, plural, kind, field string) []*kinds.Resource {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	text := fmt.Sprintf(`{"spec":{"group":%q,"scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true,
"subresources":{"status":{},"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n"}},
"schema":{"openAPIV3Schema":{"type":"object","description":"What it is.","properties":{"spec":{"type":"object","properties":{"n":{"type":"integer"},%q:{"type":"string"}}}}}}}]},
"status":{"acceptedNames":{"plural":%q,"singular":%q,"kind":%q,"listKind":"%sList"}}}`, group, field, plural, strings.ToLower(kind), kind, kind)
	if err := json.Unmarshal([]byte(text), crd); err != nil {
		t.Fatal(err)
	}
	d, err := custom.From(crd, 1, nil, custom.Source{
		Read: func(string) (*apiextensionsv1.CustomResourceDefinitionVersion, int, error) {
			return &crd.Spec.Versions[0], len(text), nil
		},
		Digests: map[string]custom.Digest{"v1": {field[0]}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return d.Resources
}

// describing makes documents of a catalogue; whole: without the function that compares schemas.
func describing(c *kinds.Catalogue, whole bool) *schema.Documents {
	d := schema.NewDocuments(c, "v1.32.0")
	d.CustomSchema = func(r *kinds.Resource) json.RawMessage {
		text, _ := r.Schema.(*custom.Version).OpenAPI()
		return text
	}
	if !whole {
		d.CustomDigest = func(r *kinds.Resource) string {
			if v, ok := r.Schema.(*custom.Version); ok {
				return v.Digest()
			}
			return ""
		}
	}
	return d
}

// TestPartsAreTheWhole: the document of version 2 is the same whether it is assembled from
// parts or made as a whole, also after a definition was changed, added and removed.
func TestPartsAreTheWhole(t *testing.T) {
	lamps, boats := defined(t, "example.com", "lamps", "Lamp", "color"), defined(t, "sea.example.com", "boats", "Boat", "sail")
	catalogue := kinds.NewCatalogue(append(append(builtin.Resources(), lamps...), boats...))
	parts, whole := describing(catalogue, false), describing(catalogue, true)
	for _, step := range [][]*kinds.Resource{
		nil,
		append(defined(t, "example.com", "lamps", "Lamp", "watts"), boats...),
		append(defined(t, "example.com", "oars", "Oar", "length"), boats...),
		boats,
		{},
	} {
		if step != nil {
			catalogue.Set(append(builtin.Resources(), step...))
		}
		var got, want any
		for d, into := range map[*schema.Documents]*any{parts: &got, whole: &want} {
			if err := json.Unmarshal(get(t, d.ServeV2, "/openapi/v2", "Accept", "application/json").Body.Bytes(), into); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("with %d custom resources, in parts instead of whole:\n%.2000s", len(step), diff)
		}
		one, two := &openapi_v2.Document{}, &openapi_v2.Document{}
		for d, into := range map[*schema.Documents]*openapi_v2.Document{parts: one, whole: two} {
			w := get(t, d.ServeV2, "/openapi/v2", "Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
			if err := proto.Unmarshal(w.Body.Bytes(), into); err != nil {
				t.Fatal(err)
			}
		}
		byName := protocmp.SortRepeated(func(a, b *openapi_v2.NamedPathItem) bool { return a.Name < b.Name })
		schemas := protocmp.SortRepeated(func(a, b *openapi_v2.NamedSchema) bool { return a.Name < b.Name })
		if diff := cmp.Diff(two, one, protocmp.Transform(), byName, schemas); diff != "" {
			t.Fatalf("in protobuf, in parts instead of whole:\n%.2000s", diff)
		}
	}
}

// TestPartsAreServed: an assembled document is one gzip stream for clients that accept it, may be read from
// the middle, and has another tag when its contents differ.
func TestPartsAreServed(t *testing.T) {
	catalogue := kinds.NewCatalogue(append(builtin.Resources(), defined(t, "example.com", "lamps", "Lamp", "color")...))
	d := describing(catalogue, false)
	plain := get(t, d.ServeV2, "/openapi/v2")
	packed := get(t, d.ServeV2, "/openapi/v2", "Accept-Encoding", "gzip")
	zr, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	zr.Multistream(false)
	text, err := io.ReadAll(zr)
	if err != nil || !bytes.Equal(text, plain.Body.Bytes()) {
		t.Fatalf("%d bytes instead of %d: %v", len(text), plain.Body.Len(), err)
	}
	if rest := packed.Body.Len(); rest > 0 {
		t.Errorf("%d bytes behind the end of the stream", rest)
	}
	for _, from := range []int{1, len(text) / 2, len(text) - 3} {
		some := get(t, d.ServeV2, "/openapi/v2", "Range", fmt.Sprintf("bytes=%d-", from))
		if some.Code != 206 || !bytes.Equal(some.Body.Bytes(), text[from:]) {
			t.Errorf("from byte %d on: %d, %d bytes", from, some.Code, some.Body.Len())
		}
	}
	// Each of many ranges may take unpacking a piece.
	if all := get(t, d.ServeV2, "/openapi/v2", "Range", fmt.Sprintf("bytes=0-0,%d-%d,1-1", len(text)*4/5, len(text)*4/5)); all.Code != 200 || all.Body.Len() != len(text) {
		t.Errorf("of several ranges: %d, %d bytes", all.Code, all.Body.Len())
	}
	tag := func(w *httptest.ResponseRecorder) string { return w.Header().Get("Etag") }
	catalogue.Set(append(builtin.Resources(), defined(t, "example.com", "lamps", "Lamp", "watts")...))
	after := get(t, d.ServeV2, "/openapi/v2")
	if tag(after) == tag(plain) || tag(plain) != tag(packed) || !strings.Contains(after.Body.String(), "watts") {
		t.Errorf("tags %s, %s, and %s after a change", tag(plain), tag(packed), tag(after))
	}
}

// TestTagsOfCustomKinds: the index has the tag of a document that has not been requested yet; the tag differs
// if the schema does, and is the same at each server.
func TestTagsOfCustomKinds(t *testing.T) {
	location := func(d *schema.Documents) string {
		var index struct {
			Paths map[string]struct{ ServerRelativeURL string }
		}
		if err := json.Unmarshal(get(t, d.ServeV3, "/openapi/v3").Body.Bytes(), &index); err != nil {
			t.Fatal(err)
		}
		return index.Paths["apis/example.com/v1"].ServerRelativeURL
	}
	with := func(field string) *schema.Documents {
		return describing(kinds.NewCatalogue(append(builtin.Resources(), defined(t, "example.com", "lamps", "Lamp", field)...)), false)
	}
	d := with("color")
	path := location(d)
	if w := get(t, d.ServeV3, path); w.Code != 200 || !strings.Contains(w.Body.String(), `"color"`) {
		t.Errorf("%s: %d", path, w.Code)
	}
	if location(d) != path {
		t.Error("once it is made the document has another tag")
	}
	if other := with("color"); get(t, other.ServeV3, path).Code != 200 {
		t.Error("another server does not know the tag")
	}
	if location(with("watts")) == path {
		t.Error("the tag is the same for another schema")
	}
}

// TestDocumentsOfDefinitions: documents have the operations of custom kinds, as those of a stock server, and not the
// discovery of their groups and versions.
func TestDocumentsOfDefinitions(t *testing.T) {
	d := describing(kinds.NewCatalogue(append(builtin.Resources(), defined(t, "example.com", "lamps", "Lamp", "color")...)), false)
	paths := func(text []byte) map[string]any {
		var document struct{ Paths map[string]any }
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		return document.Paths
	}
	one := get(t, d.ServeV3, "/openapi/v3/apis/example.com/v1").Body.Bytes()
	for text, in := range map[string]struct {
		document      []byte
		with, without string
	}{
		"the index":       {get(t, d.ServeV3, "/openapi/v3").Body.Bytes(), "apis/example.com/v1 apis/apps apis/apps/v1", "apis/example.com"},
		"version 3":       {one, "/apis/example.com/v1/namespaces/{namespace}/lamps", "/apis/example.com/v1/"},
		"version 2":       {get(t, d.ServeV2, "/openapi/v2").Body.Bytes(), "/apis/example.com/v1/namespaces/{namespace}/lamps /apis/apps/ /apis/apps/v1/", "/apis/example.com/ /apis/example.com/v1/"},
		"a built-in kind": {get(t, d.ServeV3, "/openapi/v3/apis/apps/v1").Body.Bytes(), "/apis/apps/v1/", "/apis/apps/"},
	} {
		all := paths(in.document)
		for _, path := range strings.Fields(in.with) {
			if all[path] == nil {
				t.Errorf("%s lacks %s", text, path)
			}
		}
		for _, path := range strings.Fields(in.without) {
			if all[path] != nil {
				t.Errorf("%s has %s", text, path)
			}
		}
	}
	if w := get(t, d.ServeV3, "/openapi/v3/apis/example.com"); w.Code != http.StatusNotFound {
		t.Errorf("the group: %d", w.Code)
	}
	var document struct {
		Info       map[string]string
		Components map[string]any
	}
	if err := json.Unmarshal(one, &document); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}, document.Info); diff != "" {
		t.Error(diff)
	}
	if len(document.Components) != 1 || document.Components["schemas"] == nil {
		t.Errorf("components %v", slices.Collect(maps.Keys(document.Components)))
	}
}
