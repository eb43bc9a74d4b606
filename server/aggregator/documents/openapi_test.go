package documents_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// described answers for OpenAPI with what it is given ("" is a 404), and for discovery with
// lists.
func described(swagger, index func() string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		var text string
		switch r.URL.Path {
		case "/openapi/v2":
			text = swagger()
		case "/openapi/v3":
			text = index()
		default:
			old(rw, r)
			return
		}
		tag := fmt.Sprintf(`"%d"`, len(text))
		switch {
		case text == "":
			http.NotFound(rw, r)
		case r.Header.Get("If-None-Match") == tag:
			rw.WriteHeader(http.StatusNotModified)
		default:
			rw.Header().Set("ETag", tag)
			fmt.Fprint(rw, text)
		}
	}
}

func text(s string) func() string { return func() string { return s } }

// Of the list of documents of version 3 those count that APIServices leave to the server. The other
// server sends the documents themselves to the client.
func TestIndex(t *testing.T) {
	w := newWorld(t)
	w.serve("one", described(text(""), text(`{"paths":{"apis/a.example/v1":{"serverRelativeURL":"/openapi/v3/apis/a.example/v1?hash=ABC"},
		"apis/a.example":{"serverRelativeURL":"/openapi/v3/apis/a.example?hash=D"},"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=E"},
		"version":{"serverRelativeURL":"/x"},"apis/b.example/v1":{"serverRelativeURL":"http://evil.example/?hash=`+strings.Repeat("x", 300)+`"}}}`)))
	w.leave("a.example", "v1", "one")
	w.leave("b.example", "v1", "one")
	var got map[string]string
	w.until("three documents", func() bool { got, _ = w.OpenAPI3(); return len(got) == 3 })
	if want := map[string]string{"apis/a.example/v1": "ABC", "apis/a.example": "D", "apis/b.example/v1": ""}; !maps.Equal(got, want) {
		t.Errorf("index %v", got)
	}
	if w.count("one /openapi/v3 as system:aggregator ") == 0 {
		t.Error("it was asked as another user")
	}
	for path, want := range map[string]int{"apis/a.example/v1": 200, "apis/apps/v1": 404} {
		rec := httptest.NewRecorder()
		w.ServeOpenAPI3(rec, httptest.NewRequest(http.MethodGet, "/openapi/v3/"+path, nil), path)
		if rec.Code != want {
			t.Errorf("%s: %d", path, rec.Code)
		}
	}
	if !slices.Equal(w.proxied, []string{"v1.a.example /openapi/v3/apis/a.example/v1"}) {
		t.Errorf("proxied: %v", w.proxied)
	}
	w.drop("a.example", "v1")
	w.until("one document", func() bool { got, _ = w.OpenAPI3(); return len(got) == 1 })
}

const swagger = `{"swagger":"2.0","info":{"title":"x"},"paths":{
	"/apis/a.example/v1/namespaces/{namespace}/widgets":{"parameters":[{"$ref":"#/parameters/ns"}],"post":{"operationId":"create","consumes":["application/json"],"produces":["application/json","application/yaml"],
		"parameters":[{"in":"body","name":"body","required":true,"schema":{"$ref":"#/definitions/Widget"}},{"in":"query","name":"dryRun","type":"string","uniqueItems":true}],
		"responses":{"201":{"description":"Created","schema":{"$ref":"#/definitions/Widget"}},"401":{"description":"Unauthorized"}},
		"x-kubernetes-action":"post","x-kubernetes-group-version-kind":{"group":"a.example","version":"v1","kind":"Widget"}}},
	"/apis/a.example/v1/":{"get":{"responses":{"200":{"description":"OK"}}}},
	"/apis/apps/v1/deployments":{"get":{"responses":{"200":{"description":"a lie"}}}},
	"/apis/a.example/v10/more":{"get":{"responses":{"200":{"description":"not left to it"}}}}},
	"parameters":{"ns":{"in":"path","name":"namespace","required":true,"type":"string"},"unused":{"in":"query","name":"u","type":"string"}},
	"definitions":{"Widget":{"type":"object","properties":{"spec":{"$ref":"#/definitions/Spec"}},"x-kubernetes-group-version-kind":[{"group":"a.example","version":"v1","kind":"Widget"}]},
	"Spec":{"type":"object","description":"how it is","properties":{"size":{"type":"integer","default":3}}},"Unused":{"type":"object"}}}`

// The document of version 2 is kept as long as the server has none that is better, and
// fetched again when it has changed.
func TestSwagger(t *testing.T) {
	w := newWorld(t)
	now := make(chan string, 1)
	now <- swagger
	current := func() string { s := <-now; now <- s; return s }
	w.serve("one", described(current, text(`{"paths":{}}`)))
	w.leave("a.example", "v1", "one")
	size := func() int {
		list, _ := w.OpenAPI2()
		if len(list) == 0 {
			return 0
		}
		return list[0].Size
	}
	w.until("a document", func() bool { return size() > 0 })
	first, number := w.OpenAPI2()
	for range 3 { // tags spare the answer
		before := w.count("one /openapi/v2")
		w.until("asked again", func() bool { return w.count("one /openapi/v2") > before })
	}
	if again, same := w.OpenAPI2(); same != number || again[0] != first[0] {
		t.Error("an unchanged document was taken for another")
	}
	<-now
	now <- "{"
	before := w.count("one /openapi/v2")
	w.until("asked again", func() bool { return w.count("one /openapi/v2") > before })
	before = w.count("one /apis as")
	w.until("the answer is judged", func() bool { return w.count("one /apis as") > before })
	if size() != first[0].Size {
		t.Error("what cannot be read took the place of what could")
	}
	<-now
	now <- strings.ReplaceAll(swagger, "how it is", "how it is meant to be")
	w.leave("a.example", "v1", "one")
	w.until("the new document", func() bool { return size() > first[0].Size })
	w.drop("a.example", "v1")
	w.until("no document", func() bool { return size() == 0 })
}

// For a server without documents of version 3 they are converted from version 2.
func TestConverted(t *testing.T) {
	w := newWorld(t)
	w.serve("one", described(text(swagger), text("")))
	w.leave("a.example", "v1", "one")
	var index map[string]string
	w.until("a document", func() bool { index, _ = w.OpenAPI3(); return len(index) > 0 })
	get := func(query, accept string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/openapi/v3/apis/a.example/v1"+query, nil)
		r.Header.Set("Accept", accept)
		rec := httptest.NewRecorder()
		w.ServeOpenAPI3(rec, r, "apis/a.example/v1")
		return rec
	}
	rec := get("?hash="+index["apis/a.example/v1"], "application/json")
	var doc any
	if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil || rec.Code != 200 || rec.Header().Get("Cache-Control") != "public, immutable" {
		t.Fatalf("%d %v %v", rec.Code, err, rec.Header())
	}
	at := func(path ...string) string {
		node := doc
		for _, name := range path {
			m, _ := node.(map[string]any)
			node = m[name]
		}
		b, _ := json.Marshal(node)
		return string(b)
	}
	widgets := []string{"paths", "/apis/a.example/v1/namespaces/{namespace}/widgets"}
	for want, path := range map[string][]string{
		`{"$ref":"#/components/schemas/Widget"}`: append(widgets, "post", "requestBody", "content", "application/json", "schema"),
		`true`:                                   append(widgets, "post", "requestBody", "required"),
		`{"$ref":"#/components/schemas/Widget"} `: append(widgets, "post", "responses", "201", "content", "application/yaml", "schema"),
		`[{"$ref":"#/components/parameters/ns"}]`: append(widgets, "parameters"),
		`"Widget"`:                             append(widgets, "post", "x-kubernetes-group-version-kind", "kind"),
		`{"$ref":"#/components/schemas/Spec"}`: {"components", "schemas", "Widget", "properties", "spec"},
		`{"type":"string"}`:                    {"components", "parameters", "ns", "schema"},
		`{"default":3,"type":"integer"}`:       {"components", "schemas", "Spec", "properties", "size"},
		`null`:                                 {"components", "schemas", "Unused"},
		`null `:                                {"paths", "/apis/apps/v1/deployments"},
		`null  `:                               {"paths", "/apis/a.example/v10/more"},
		`[{"in":"query","name":"dryRun","schema":{"type":"string","uniqueItems":true}}]`: append(widgets, "post", "parameters"),
	} {
		if got := at(slices.Clone(path)...); got != strings.TrimSpace(want) {
			t.Errorf("%v: %s, want %s", path, got, want)
		}
	}
	if rec := get("?hash=OTHER", "application/json"); rec.Code != http.StatusMovedPermanently {
		t.Errorf("another hash: %d", rec.Code)
	}
	if rec := get("", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"); rec.Code != 200 || !strings.HasSuffix(rec.Header().Get("Content-Type"), "+protobuf") {
		t.Errorf("protobuf: %d %v", rec.Code, rec.Header())
	}
	if rec := get("", "text/html"); rec.Code != http.StatusNotAcceptable {
		t.Errorf("html: %d", rec.Code)
	}
}
