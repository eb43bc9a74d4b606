package verbs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestPrettyForms: the forms that are made for people hold what the plain form holds, for
// single objects, lists and tables, whether they are large or small.
func TestPrettyForms(t *testing.T) {
	s := newSite(t)
	s.Put("namespaces", "", "ns", `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"ns","uid":"u"}}`)
	for i := range 40 {
		s.Put("configmaps", "ns", fmt.Sprint("c", i), servertest.ConfigMap(fmt.Sprint("c", i), "", strings.Repeat("some text ", 1+i*100)))
	}
	base := "/api/v1/namespaces/ns/configmaps"
	const asTable, asPartial = "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	for _, tc := range []struct{ path, accept string }{
		{base, "application/json"}, {base + "/c1", "application/json"}, {base + "/c39", "application/json"},
		{base, asTable}, {base + "?includeObject=Object", asTable}, {base + "?labelSelector=none", asTable}, {base, asPartial},
		{base + "?labelSelector=none", asPartial}, {base + "/none", "application/json"}, {base + "?limit=3", "application/json"},
	} {
		_, _, plain := s.Fetch(t, tc.path, "Accept", tc.accept)
		sep := "?"
		if strings.Contains(tc.path, "?") {
			sep = "&"
		}
		_, header, pretty := s.Fetch(t, tc.path+sep+"pretty=true", "Accept", tc.accept)
		var want bytes.Buffer
		if err := json.Indent(&want, bytes.TrimSpace(plain), "", "  "); err != nil {
			t.Fatal(err)
		}
		if header.Get("Content-Type") != "application/json" || !bytes.Equal(pretty, want.Bytes()) {
			t.Errorf("%s as %s: %s is %.200q", tc.path, tc.accept, header.Get("Content-Type"), pretty)
		}
		code, _, document := s.Fetch(t, tc.path, "Accept", strings.Replace(tc.accept, "json", "yaml", 1))
		if code == http.StatusNotAcceptable {
			continue
		}
		wantYAML, err := yaml.JSONToYAML(plain)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(document, wantYAML) {
			t.Errorf("%s as YAML: %.200q, not %.200q", tc.path, document, wantYAML)
		}
	}
}

// TestPrettyDeep: indentation enlarges deeply nested objects at most by a factor, in
// a list and alone.
func TestPrettyDeep(t *testing.T) {
	s := newSite(t)
	s.Put("namespaces", "", "ns", `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"ns","uid":"u"}}`)
	deep := strings.Repeat(`{"a":`, 9000) + `1` + strings.Repeat(`}`, 9000)
	for i := range 3 {
		s.Put("controllerrevisions.apps", "ns", fmt.Sprint("r", i),
			fmt.Sprintf(`{"kind":"ControllerRevision","apiVersion":"apps/v1","metadata":{"name":"r%d","namespace":"ns","uid":"u%d"},"data":%s,"revision":1}`, i, i, deep))
	}
	base := "/apis/apps/v1/namespaces/ns/controllerrevisions"
	for _, tc := range []struct {
		path, accept string
		items        int
	}{
		{base + "/r0?pretty=true", "application/json", 1}, {base + "?pretty=true", "application/json", 3},
		{base + "?pretty=true&includeObject=Object", "application/json;as=Table;v=v1;g=meta.k8s.io", 3},
		{base + "/r0", "application/yaml", 1}, {base, "application/yaml", 3},
	} {
		code, _, body := s.Fetch(t, tc.path, "Accept", tc.accept)
		if limit := tc.items * (len(deep) + 2000) * (2*jsoncodec.MaxIndent + 2); code != http.StatusOK || len(body) > limit || len(body) < tc.items*len(deep) {
			t.Errorf("%s as %s: %d, %d bytes of at most %d", tc.path, tc.accept, code, len(body), limit)
		}
	}
}
