package discovery_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/yaml"
	"github.com/rowlock/rowlock/server/discovery"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/release"
)

var update = flag.Bool("update", false, "write the golden files")

func newHandler(t testing.TB, c *kinds.Catalogue, but ...func(*discovery.Config)) *discovery.Handler {
	t.Helper()
	config := discovery.Config{
		Catalogue: c,
		Codecs:    []codecs.Codec{jsoncodec.Codec{}, yaml.Codec{}},
		Address:   "192.0.2.1:6443",
		Version:   version.Info{Major: "1", Minor: "32"},
		Fail: func(w http.ResponseWriter, _ *http.Request, err error) {
			s, ok := err.(apierrors.APIStatus)
			if !ok {
				t.Errorf("not an API error: %v", err)
				return
			}
			w.WriteHeader(int(s.Status().Code))
			fmt.Fprint(w, s.Status().Message)
		},
	}
	for _, change := range but {
		change(&config)
	}
	h, err := discovery.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func get(h http.Handler, method, path, accept string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const aggregatedV2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// The documents are golden: what clients compare must not change by accident.
func TestDocuments(t *testing.T) {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	h := newHandler(t, catalogue)
	paths := []string{"/api", "/apis", "/version"}
	seen := map[string]bool{}
	for _, r := range catalogue.All() {
		path := "/apis/" + r.Group + "/" + r.Version
		if r.Group == "" {
			path = "/api/v1"
		}
		if !seen[path] {
			seen[path] = true
			paths = append(paths, path)
		}
	}
	for _, path := range paths {
		golden(t, strings.ReplaceAll(strings.Trim(path, "/"), "/", "_"), get(h, "GET", path, "").Body.Bytes())
	}
	everything := builtin.Resources()
	if _, err := kinds.Enable(release.Default, everything, map[string]string{"api/all": ""}, true, func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	all := newHandler(t, kinds.NewCatalogue(everything))
	for _, r := range everything {
		if path := "/apis/" + r.Group + "/" + r.Version; r.Group != "" && !seen[path] {
			seen[path] = true
			golden(t, strings.ReplaceAll(strings.Trim(path, "/"), "/", "_"), get(all, "GET", path, "").Body.Bytes())
		}
	}
	golden(t, "aggregated_core", get(h, "GET", "/api", aggregatedV2).Body.Bytes())
	golden(t, "aggregated", get(h, "GET", "/apis", aggregatedV2).Body.Bytes())
}

// TestSingle: without the document that has all, clients get the single ones.
func TestSingle(t *testing.T) {
	h := newHandler(t, kinds.NewCatalogue(builtin.Resources()), func(c *discovery.Config) { c.Single = true })
	for path, kind := range map[string]string{"/api": `"APIVersions"`, "/apis": `"APIGroupList"`} {
		w := get(h, "GET", path, aggregatedV2+",application/json")
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || !strings.Contains(w.Body.String(), kind) {
			t.Errorf("%s: %d, %s: %.200s", path, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
		if w := get(h, "GET", path, aggregatedV2); w.Code != http.StatusNotAcceptable {
			t.Errorf("%s in one document alone: %d", path, w.Code)
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var indented bytes.Buffer
	if err := json.Indent(&indented, got, "", " "); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, got)
	}
	file := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(file, indented.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, indented.Bytes()) {
		t.Errorf("%s differs; run with -update and look at the difference", file)
	}
}

func TestRoutes(t *testing.T) {
	h := newHandler(t, kinds.NewCatalogue(builtin.Resources()))
	const notFound, notAllowed = "the server could not find the requested resource", "the server does not allow this method on the requested resource"
	for _, c := range []struct {
		method, path, accept string
		code                 int
		contentType, body    string
	}{
		{"GET", "/apis/apps/", "", 200, "application/json", `"name":"apps"`},
		{"GET", "/api/v1/", "", 200, "application/json", `"groupVersion":"v1"`},
		{"GET", "/version/", "", 200, "application/json", `"minor": "32"`},
		{"GET", "/version", "application/json;as=Table;v=v1;g=meta.k8s.io", 200, "application/json", `"minor": "32"`},
		{"GET", "/version", "application/yaml", 406, "", "406: Not Acceptable\n\nAvailable representations: application/json"},
		{"POST", "/version", "text/html", 405, "", notAllowed},
		{"GET", "/version/x", "", 404, "", notFound},
		{"GET", "/apis/none.example", "", 404, "text/plain; charset=utf-8", "404 page not found"},
		{"GET", "/apis/none.example/v1", "", 404, "text/plain; charset=utf-8", "404 page not found"},
		{"GET", "/apis/apps/v9", "", 404, "", notFound},
		{"GET", "/api/v2", "", 404, "", notFound},
		{"POST", "/apis/apps/v1", "", 405, "", notAllowed},
		{"DELETE", "/api/v1", "", 405, "", notAllowed},
		{"HEAD", "/api", "", 405, "", notAllowed},
		{"POST", "/apis/apps", "", 200, "application/json", `"APIGroup"`},
		{"GET", "/apis/apps", "application/yaml", 200, "application/yaml", "kind: APIGroup"},
		{"GET", "/apis/apps", "text/html", 406, "", "only the following media types are accepted: application/json, application/yaml"},
		{"GET", "/apis/apps/v1", "text/html", 406, "", "Available representations: application/json, application/yaml"},
		{"GET", "/apis/apps/v1", aggregatedV2, 406, "", "only the following media types are accepted"},
		{"GET", "/apis", strings.ReplaceAll(aggregatedV2, "v=v2", "v=v3"), 406, "", "only the following media types are accepted"},
		{"GET", "/apis", strings.ReplaceAll(aggregatedV2, "v=v2", "v=v3") + ",application/json", 200, "application/json", `"APIGroupList"`},
		{"GET", "/apis", aggregatedV2 + ",application/json", 200, aggregatedV2, `"apidiscovery.k8s.io/v2"`},
		{"GET", "/apis", strings.ReplaceAll(aggregatedV2, "v=v2", "v=v2beta1"), 200, strings.ReplaceAll(aggregatedV2, "v=v2", "v=v2beta1"), `"apidiscovery.k8s.io/v2beta1"`},
		{"GET", "/apis/apps", aggregatedV2 + ",application/json", 200, "application/json", `"APIGroup"`},
	} {
		w := get(h, c.method, c.path, c.accept)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.body) || c.contentType != "" && w.Header().Get("Content-Type") != c.contentType {
			t.Errorf("%s %s (%s): %d %s %.300s", c.method, c.path, c.accept, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
	}
}

func TestServes(t *testing.T) {
	for path, want := range map[string]bool{
		"/api": true, "/api/": true, "/api/v1": true, "/api/v1/pods": false,
		"/apis": true, "/apis/apps": true, "/apis/apps/v1/": true, "/apis/apps/v1/deployments": false,
		"/version": true, "/version/x": true, "/versions": false, "/": false, "": false, "/healthz": false,
	} {
		if got := discovery.Serves(path); got != want {
			t.Errorf("Serves(%q) = %v", path, got)
		}
	}
}

func TestETag(t *testing.T) {
	h := newHandler(t, kinds.NewCatalogue(builtin.Resources()))
	first := get(h, "GET", "/apis", aggregatedV2)
	etag := first.Header().Get("ETag")
	if len(etag) != 2+128 || first.Header().Get("Vary") != "Accept" || first.Header().Get("Cache-Control") != "public" {
		t.Errorf("headers: %v", first.Header())
	}
	if w := get(h, "GET", "/apis", aggregatedV2, "If-None-Match", etag); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("unchanged document: %d with %d bytes", w.Code, w.Body.Len())
	}
	if w := get(h, "GET", "/apis", aggregatedV2, "If-None-Match", `"other"`); w.Code != http.StatusOK {
		t.Errorf("changed document: %d", w.Code)
	}
}

// Documents follow the catalogue, and custom resources have documents of their own.
func TestCatalogueChanges(t *testing.T) {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	h := newHandler(t, catalogue)
	before := get(h, "GET", "/apis", aggregatedV2).Header().Get("ETag")
	if w := get(h, "GET", "/apis/shop.example/v1", ""); w.Code != http.StatusNotFound {
		t.Errorf("before it is there: %d", w.Code)
	}
	catalogue.Set(append(builtin.Resources(), &kinds.Resource{
		Group: "shop.example", Version: "v1", Plural: "parcels", Singular: "parcel", Kind: "Parcel", ListKind: "ParcelList",
		Namespaced: true, Schema: kinds.AsStored{}, Verbs: []string{"delete", "get"},
		Storage:      &kinds.Storage{Key: "parcels.shop.example", GVK: gvk("shop.example", "v1", "Parcel")},
		Subresources: []kinds.Subresource{{Name: "status", Kind: "Parcel", Verbs: []string{"get"}}},
	}))
	w := get(h, "POST", "/apis/shop.example/v1", "")
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"name":"parcels/status"`) {
		t.Errorf("group version: %d %s", w.Code, w.Body)
	}
	if w := get(h, "GET", "/apis/shop.example/v2", ""); w.Code != 404 || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("unknown version: %d %s", w.Code, w.Body)
	}
	all := get(h, "GET", "/apis", aggregatedV2)
	if all.Header().Get("ETag") == before || !strings.Contains(all.Body.String(), `"responseKind":{"group":"shop.example","version":"v1","kind":"Parcel"}`) {
		t.Errorf("aggregated document did not follow")
	}
}

func gvk(group, version, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
}
