package schema_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"

	"github.com/rowlock/rowlock/server/schema"
)

// others are the documents of other servers in a test.
type others struct {
	hashes map[string]string
	parts  []*schema.Swagger
	number uint64
}

func (o *others) OpenAPI3() (map[string]string, uint64) { return o.hashes, o.number }
func (o *others) OpenAPI2() ([]*schema.Swagger, uint64) { return o.parts, o.number }
func (o *others) ServeOpenAPI3(w http.ResponseWriter, _ *http.Request, path string) {
	fmt.Fprint(w, "elsewhere: "+path)
}

func read(t *testing.T, text string) *schema.Swagger {
	t.Helper()
	s, err := schema.ReadSwagger([]byte(text), schema.SwaggerLimits{Values: 1000, Paths: 10}, func(path string) bool { return strings.HasPrefix(path, "/apis/x/") })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A part with a definition of its own, one that equals another server's but for its description, and one that
// does not.
func part(path, spec string) string {
	return `{"paths":{"` + path + `":{"parameters":[{"$ref":"#/parameters/namespace"}],"get":{"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/x.Thing"}}}}}},
		"parameters":{"namespace":{"name":"namespace","in":"path","required":true,"type":"string","description":"` + path + `"}},
		"definitions":{"x.Thing":{"type":"object","properties":{"description":{"type":"string"},"spec":{"$ref":"#/definitions/x.Spec"},"same":{"$ref":"#/definitions/x.Same"}}},
		"x.Spec":{"type":"` + spec + `"},"x.Same":{"type":"integer","description":"` + path + `"}}}`
}

func TestMerge(t *testing.T) {
	d, o := documents(), &others{}
	d.Others = o
	before := get(t, d.ServeV2, "/openapi/v2", "Accept", "application/json")
	o.parts, o.number = []*schema.Swagger{read(t, part("/apis/x/a", "string")), read(t, part("/apis/x/b", "number")), read(t, part("/apis/x/c", "number"))}, 1
	w := get(t, d.ServeV2, "/openapi/v2", "Accept", "application/json")
	if w.Header().Get("Etag") == before.Header().Get("Etag") {
		t.Fatal("what other servers say is not followed")
	}
	var doc any
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for want, path := range map[string][]string{
		`"string"`:                            {"definitions", "x.Spec", "type"},
		`"number"`:                            {"definitions", "x.Spec_v2", "type"},
		`null`:                                {"definitions", "x.Spec_v3"},
		`"/apis/x/a"`:                         {"definitions", "x.Same", "description"},
		`null `:                               {"definitions", "x.Same_v2"},
		`{"$ref":"#/definitions/x.Thing"}`:    {"paths", "/apis/x/b", "get", "responses", "200", "schema"},
		`{"$ref":"#/definitions/x.Spec"}`:     {"definitions", "x.Thing", "properties", "spec"},
		`[{"$ref":"#/parameters/namespace"}]`: {"paths", "/apis/x/c", "parameters"},
		`"apps"`:                              {"paths", "/apis/apps/", "get", "tags", "0"},
	} {
		if got := at(doc, path...); got != strings.TrimSpace(want) {
			t.Errorf("%v: %s, want %s", path, got, want)
		}
	}
	pb := get(t, d.ServeV2, "/openapi/v2", "Accept", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
	parsed := &openapi_v2.Document{}
	if err := proto.Unmarshal(pb.Body.Bytes(), parsed); err != nil || !strings.Contains(parsed.String(), "/apis/x/b") {
		t.Errorf("protobuf: %v", err)
	}
	o.parts, o.number = nil, 2
	if w := get(t, d.ServeV2, "/openapi/v2", "Accept", "application/json"); w.Header().Get("Etag") != before.Header().Get("Etag") {
		t.Error("the document of another server is kept for ever")
	}
}

func at(node any, path ...string) string {
	for _, name := range path {
		switch n := node.(type) {
		case map[string]any:
			node = n[name]
		case []any:
			node = n[0]
		default:
			node = nil
		}
	}
	b, _ := json.Marshal(node)
	return string(b)
}

// Documents of version 3 of other servers are in the list, but are served by those servers.
func TestElsewhere(t *testing.T) {
	d, o := documents(), &others{hashes: map[string]string{"apis/x/v1": "A B", "apis/y/v1": ""}, number: 1}
	d.Others = o
	list := get(t, d.ServeV3, "/openapi/v3").Body.String()
	for _, want := range []string{`"apis/x/v1":{"serverRelativeURL":"/openapi/v3/apis/x/v1?hash=A+B"}`, `"apis/y/v1":{"serverRelativeURL":"/openapi/v3/apis/y/v1"}`, `"apis/apps/v1":`} {
		if !strings.Contains(list, want) {
			t.Errorf("the list has no %s", want)
		}
	}
	if w := get(t, d.ServeV3, "/openapi/v3/apis/x/v1"); w.Body.String() != "elsewhere: apis/x/v1" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	o.hashes, o.number = nil, 2
	if strings.Contains(get(t, d.ServeV3, "/openapi/v3").Body.String(), "apis/x/v1") {
		t.Error("the list did not follow")
	}
	if w := get(t, d.ServeV3, "/openapi/v3/apis/x/v1"); w.Code != http.StatusNotFound {
		t.Errorf("gone: %d", w.Code)
	}
}

// A document that cannot become a part is refused when it is read: it would spoil the documents of all
// others.
func TestReadSwagger(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":         `{`,
		"another shape":   `{"paths":[]}`,
		"odd numbers":     `{"paths":{"/apis/x/a":{"get":{"responses":{"200":{"schema":{"maxLength":1e99}}}}}}}`,
		"too many values": `{"paths":{"/apis/x/a":[` + strings.Repeat("{},", 1000) + `{}]}}`,
		"too many paths":  `{"paths":{` + strings.TrimSuffix(strings.Repeat(`"/apis/x/%d":{},`, 11), ",") + `}}`,
	} {
		if name == "too many paths" {
			text = fmt.Sprintf(text, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
		}
		if _, err := schema.ReadSwagger([]byte(text), schema.SwaggerLimits{Values: 1000, Paths: 10}, func(string) bool { return true }); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

// TestReadDeepSwagger: a document of another server costs in proportion to its size, however deep its schemas are.
func TestReadDeepSwagger(t *testing.T) {
	const depth = 2000
	deep := strings.Repeat(`{"items":`, depth) + `{"description":"` + strings.Repeat("d", 1<<20) + `"}` + strings.Repeat(`}`, depth)
	text := `{"paths":{"/apis/x/a":{"get":{"responses":{"200":{"description":"OK","schema":` + deep + `}}}}}}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := schema.ReadSwagger([]byte(text), schema.SwaggerLimits{Values: 3 * depth, Paths: 10}, func(string) bool { return true })
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 60<<20 {
		t.Errorf("%d bytes for a document of %d", took, len(text))
	}
}

func FuzzReadSwagger(f *testing.F) {
	f.Add(part("/apis/x/a", "string"))
	f.Add(`{"paths":{"/apis/x/a":null},"definitions":{"a":{"$ref":"#/definitions/a"}}}`)
	f.Add(`{"paths":{"/apis/x/a":{"get":{"parameters":[{"in":"body"},7,{"$ref":"#/parameters/`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := schema.ReadSwagger([]byte(text), schema.SwaggerLimits{Values: 1000, Paths: 10}, func(string) bool { return true })
		if err != nil {
			return
		}
		c, err := s.Convert("x", time.Now)
		if err != nil {
			return
		}
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/openapi/v3/apis/x", nil))
		if w.Code != http.StatusOK || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
