package schema_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/kube-openapi/pkg/spec3"
	openapiproto "k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/util/proto/validation"

	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/schema"
	"github.com/rowlock/rowlock/server/schema/gnostic"
)

func documents() *schema.Documents {
	return schema.NewDocuments(kinds.NewCatalogue(builtin.Resources()), "v1.32.0")
}

func get(t testing.TB, h http.HandlerFunc, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h(w, r)
	return w
}

func TestIndexLeadsToEveryDocument(t *testing.T) {
	d := documents()
	w := get(t, d.ServeV3, "/openapi/v3")
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &index); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"api", "api/v1", "apis", "apis/apps", "apis/apps/v1", "version", "openid/v1/jwks"} {
		if _, ok := index.Paths[want]; !ok {
			t.Errorf("no document %q", want)
		}
	}
	for key, item := range index.Paths {
		w := get(t, d.ServeV3, item.ServerRelativeURL, "Accept", "application/json")
		if w.Code != 200 || w.Header().Get("Cache-Control") != "public, immutable" {
			t.Errorf("%s: %d %v", key, w.Code, w.Header())
			continue
		}
		var doc spec3.OpenAPI
		if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		if strings.HasSuffix(key, "/v1") && strings.HasPrefix(key, "api") {
			checkReferences(t, key, w.Body.String(), &doc)
		}
	}
}

// checkReferences demands that every reference in a document leads somewhere in it.
func checkReferences(t *testing.T, key, text string, doc *spec3.OpenAPI) {
	t.Helper()
	const prefix = `"#/components/schemas/`
	for rest := text; ; {
		i := strings.Index(rest, prefix)
		if i < 0 {
			return
		}
		rest = rest[i+len(prefix):]
		name := rest[:strings.IndexByte(rest, '"')]
		if doc.Components.Schemas[name] == nil {
			t.Errorf("%s: reference to absent %s", key, name)
			return
		}
	}
}

func TestDocumentCaching(t *testing.T) {
	d := documents()
	w := get(t, d.ServeV3, "/openapi/v3/apis/apps/v1")
	etag := w.Header().Get("Etag")
	if w := get(t, d.ServeV3, "/openapi/v3/apis/apps/v1", "If-None-Match", etag); w.Code != http.StatusNotModified {
		t.Errorf("same etag: %d", w.Code)
	}
	w = get(t, d.ServeV3, "/openapi/v3/apis/apps/v1?hash=OLD")
	if w.Code != http.StatusMovedPermanently || w.Header().Get("Location") != "/openapi/v3/apis/apps/v1?hash="+strings.Trim(etag, `"`) {
		t.Errorf("old hash: %d %v", w.Code, w.Header())
	}
	if w := get(t, d.ServeV3, "/openapi/v3/apis/none.example/v1"); w.Code != http.StatusNotFound {
		t.Errorf("unknown group: %d", w.Code)
	}
	for _, path := range []string{"/openapi/v3/", "/openapi/v3/apis/apps/v1/", "/openapi/v3/apis/none.example/v1"} {
		if w := get(t, d.ServeV3, path, "Accept", "text/html"); w.Code != http.StatusNotFound || w.Body.Len() > 0 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := get(t, d.ServeV3, "/openapi/v3/apis/apps/v1", "Accept", "text/html"); w.Code != http.StatusNotAcceptable {
		t.Errorf("html: %d", w.Code)
	}
	if w := get(t, d.ServeV2, "/openapi/v2", "Accept-Encoding", "gzip"); w.Header().Get("Content-Encoding") != "gzip" || w.Body.Bytes()[0] != 0x1f {
		t.Error("not compressed")
	}
}

// gnostic itself parses the JSON form; the protobuf form must have the same content.
func TestSwaggerProtobuf(t *testing.T) {
	d := documents()
	text := get(t, d.ServeV2, "/openapi/v2", "Accept", "application/json")
	want, err := openapi_v2.ParseDocument(text.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	w := get(t, d.ServeV2, "/openapi/v2", "Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
	if got := w.Header().Get("Content-Type"); got != "application/com.github.proto-openapi.spec.v2.v1.0+protobuf" {
		t.Errorf("type %q", got)
	}
	got := &openapi_v2.Document{}
	if err := proto.Unmarshal(w.Body.Bytes(), got); err != nil {
		t.Fatal(err)
	}
	if len(got.GetPaths().GetPath()) != len(want.GetPaths().GetPath()) {
		t.Fatalf("%d paths, want %d", len(got.GetPaths().GetPath()), len(want.GetPaths().GetPath()))
	}
	same(t, "document", got, want)
	gotModels, err := openapiproto.NewOpenAPIData(got)
	if err != nil {
		t.Fatal(err)
	}
	pod := gotModels.LookupModel("io.k8s.api.core.v1.Pod")
	good := map[string]any{"metadata": map[string]any{"name": "p"}, "spec": map[string]any{
		"containers": []any{map[string]any{"name": "c", "image": "i", "ports": []any{map[string]any{"containerPort": int64(80)}},
			"resources": map[string]any{"limits": map[string]any{"cpu": "1"}}}}}}
	if errs := validation.ValidateModel(good, pod, "Pod"); len(errs) > 0 {
		t.Error(errs)
	}
	good["spec"].(map[string]any)["colour"] = "red"
	if errs := validation.ValidateModel(good, pod, "Pod"); len(errs) != 1 {
		t.Errorf("unknown field: %v", errs)
	}
}

// TestOpenAPI3Protobuf: the Protobuf form of a document has the tag of the JSON form, and equals that of gnostic.
func TestOpenAPI3Protobuf(t *testing.T) {
	d := documents()
	text := get(t, d.ServeV3, "/openapi/v3/apis/apps/v1", "Accept", "application/json")
	want, err := gnostic.Encode(text.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, accept := range []string{
		"application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
		"application/com.github.proto-openapi.spec.v3.v1.0+protobuf, application/json",
	} {
		w := get(t, d.ServeV3, "/openapi/v3/apis/apps/v1", "Accept", accept)
		if got := w.Header().Get("Content-Type"); got != "application/com.github.proto-openapi.spec.v3.v1.0+protobuf" {
			t.Errorf("type %q", got)
		}
		if w.Header().Get("Etag") != text.Header().Get("Etag") {
			t.Errorf("tag %s", w.Header().Get("Etag"))
		}
		if !bytes.Equal(w.Body.Bytes(), want) || len(want) == 0 {
			t.Errorf("%d bytes, want %d others", w.Body.Len(), len(want))
		}
	}
	if w := get(t, d.ServeV3, "/openapi/v3/apis/none/v1", "Accept", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"); w.Code != http.StatusNotFound {
		t.Errorf("an unknown document: %d", w.Code)
	}
}

// same compares two messages but for the order of maps and the spelling of YAML.
func same(t *testing.T, what string, got, want proto.Message) {
	t.Helper()
	for _, m := range []proto.Message{got, want} {
		normalise(t, m.ProtoReflect())
	}
	if proto.Equal(got, want) {
		return
	}
	g, w := got.ProtoReflect(), want.ProtoReflect()
	fields := w.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if g.Get(f).Equal(w.Get(f)) {
			continue
		}
		if f.IsList() && g.Get(f).List().Len() == w.Get(f).List().Len() && f.Message() != nil {
			for j := range w.Get(f).List().Len() {
				same(t, what+"."+string(f.Name()), g.Get(f).List().Get(j).Message().Interface(), w.Get(f).List().Get(j).Message().Interface())
			}
		} else if f.Message() != nil && !f.IsList() {
			same(t, what+"."+string(f.Name()), g.Get(f).Message().Interface(), w.Get(f).Message().Interface())
		} else {
			t.Errorf("%s.%s: got %v, want %v", what, f.Name(), g.Get(f), w.Get(f))
		}
	}
}

func normalise(t *testing.T, m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Name() == "yaml":
			var tree any
			if err := yaml.Unmarshal([]byte(v.String()), &tree); err != nil {
				t.Errorf("%q: %v", v.String(), err)
			}
			text, _ := json.Marshal(tree)
			m.Set(f, protoreflect.ValueOfString(string(text)))
		case f.IsList() && f.Message() != nil:
			l := v.List()
			for i := range l.Len() {
				normalise(t, l.Get(i).Message())
			}
		case f.Message() != nil:
			normalise(t, v.Message())
		}
		return true
	})
}

func BenchmarkIndex(b *testing.B) {
	for b.Loop() {
		d := documents()
		d.ServeV3(httptest.NewRecorder(), httptest.NewRequest("GET", "/openapi/v3", nil))
	}
}

func BenchmarkSwaggerProtobuf(b *testing.B) {
	for b.Loop() {
		d := documents()
		r := httptest.NewRequest("GET", "/openapi/v2", nil)
		r.Header.Set("Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
		d.ServeV2(httptest.NewRecorder(), r)
	}
}
