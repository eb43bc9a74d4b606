package codecs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/munnerz/goautoneg"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The types that package forms lists.
var (
	types      = []string{JSON, YAML, Protobuf}
	typesCBOR  = []string{JSON, YAML, Protobuf, CBOR}
	patchTypes = []string{PatchJSON, PatchMerge, PatchStrategic, PatchApplyYAML}
)

func TestNegotiate(t *testing.T) {
	builtin := Offer{Types: types, Transforms: ResourceTransforms}
	custom := Offer{Types: types, Plain: []string{JSON, YAML}, Transforms: ResourceTransforms}
	as := func(kind, version string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "meta.k8s.io", Version: version, Kind: kind}
	}
	table := ";as=Table;v=v1;g=meta.k8s.io"
	partial := ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	for _, tc := range []struct {
		accept string
		offer  Offer
		want   Form // zero: 406
	}{
		{"", builtin, Form{Type: JSON}},
		{"*/*", builtin, Form{Type: JSON}},
		{"*", builtin, Form{Type: JSON}},
		{"application/*", builtin, Form{Type: JSON}},
		{"application/yaml", builtin, Form{Type: YAML}},
		{"application/vnd.kubernetes.protobuf, application/json", builtin, Form{Type: Protobuf}},
		{"application/json, application/vnd.kubernetes.protobuf", builtin, Form{Type: JSON}},
		{"application/vnd.kubernetes.protobuf", custom, Form{}},
		{"application/vnd.kubernetes.protobuf, */*", custom, Form{Type: JSON}},
		{"application/vnd.kubernetes.protobuf" + partial, custom, Form{Type: Protobuf, As: as("PartialObjectMetadata", "v1")}},
		{"text/html, application/xhtml+xml, */*;q=0.8", builtin, Form{Type: JSON}},
		{"text/html, application/json;q=0.5", builtin, Form{Type: JSON}},
		{"application/json;q=0.2, application/yaml;q=0.9", builtin, Form{Type: YAML}},
		{"application/yaml;q=0.3, application/json;q=0.3", builtin, Form{Type: YAML}},
		{"application/json;q=0", builtin, Form{Type: JSON}},
		{"application/json;charset=utf-8", builtin, Form{Type: JSON}},
		{"application/json;pretty=1", builtin, Form{Type: JSON, Pretty: true}},
		{"application/yaml;pretty=1", builtin, Form{Type: YAML}},
		{"application/json;stream=watch", builtin, Form{Type: JSON}},
		{"application/json;stream=other", builtin, Form{}},
		{"text/html", builtin, Form{}},
		{"nonsense", builtin, Form{}},
		{"a/b/c, application/json/", builtin, Form{Type: JSON}},
		{"application/cbor", builtin, Form{}},
		{"application/cbor", Offer{Types: typesCBOR}, Form{Type: CBOR}},
		{"application/json" + table, builtin, Form{Type: JSON, As: as("Table", "v1")}},
		{"application/json" + table, Offer{Types: types, Transforms: PartialTransforms}, Form{}},
		{"application/json" + table, Offer{Types: types}, Form{}},
		{"application/json;as=Table;v=v9;g=meta.k8s.io, application/json", builtin, Form{Type: JSON}},
		{"application/json;as=Table;v=v1beta1;g=meta.k8s.io", builtin, Form{Type: JSON, As: as("Table", "v1beta1")}},
		{"application/json;as=Table", builtin, Form{}},
		{"application/yaml" + table, builtin, Form{Type: YAML, As: as("Table", "v1")}},
		{"application/vnd.kubernetes.protobuf" + table, builtin, Form{}},
		{"*/*" + table, builtin, Form{Type: JSON, As: as("Table", "v1")}},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept", tc.accept)
		got, err := Negotiate(r, tc.offer)
		if (err != nil) != (tc.want == Form{}) {
			t.Errorf("%q: %v", tc.accept, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q: %s", tc.accept, diff)
		}
		if err != nil && err.Error() != "only the following media types are accepted: "+strings.Join(tc.offer.Types, ", ") {
			t.Errorf("%q: %v", tc.accept, err)
		}
	}
}

func TestNegotiateWatch(t *testing.T) {
	offer := Offer{Types: typesCBOR, Transforms: ResourceTransforms}
	for accept, want := range map[string]string{
		"":                      "application/json",
		"application/json":      "application/json",
		Protobuf:                "application/vnd.kubernetes.protobuf;stream=watch",
		"application/cbor":      "application/cbor-seq",
		"application/yaml, */*": "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch, application/cbor-seq",
	} {
		r := httptest.NewRequest("GET", "/?watch=1&pretty=1", nil)
		r.Header.Set("Accept", accept)
		form, err := NegotiateWatch(r, offer)
		got := form.StreamType()
		if err != nil {
			got = err.Error()
		}
		if got != want || form.Pretty {
			t.Errorf("%q: %v, %v", accept, got, form)
		}
	}
}

func TestPretty(t *testing.T) {
	for _, tc := range []struct {
		query, agent string
		want         bool
	}{
		{"", "curl/8.5", true}, {"", "Wget/1.2", true}, {"", "Mozilla/5.0 (X11)", true}, {"", "Mozilla/4.0", false}, {"", "kubectl/v1.32", false},
		{"pretty=true", "kubectl", true}, {"pretty=1", "", true}, {"pretty=false", "curl/8", false}, {"pretty=nonsense", "curl/8", false},
		{"pretty", "curl/8", true}, {"pretty=", "x", false}, {"x=pretty", "x", false}, {"dryRun&pretty=true", "x", true},
	} {
		r := httptest.NewRequest("GET", "/?"+tc.query, nil)
		r.Header.Set("User-Agent", tc.agent)
		if form := NegotiateError(r, types); form != (Form{Type: JSON, Pretty: tc.want}) {
			t.Errorf("%q %q: %v", tc.query, tc.agent, form)
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Accept", "application/xml")
	if form := NegotiateError(r, types); form != (Form{Type: JSON, Pretty: true}) {
		t.Errorf("not negotiable: %v", form)
	}
}

func TestRoutes(t *testing.T) {
	for _, tc := range []struct{ method, accept, want string }{
		{"GET", "", ""}, {"GET", "*/*", ""}, {"GET", "text/html, */*;q=0.8", ""}, {"GET", "application/json;as=Table;v=v1;g=meta.k8s.io", ""},
		{"GET", "application/*", "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{"POST", "application/xml", "415: Unsupported Media Type\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
	} {
		r := httptest.NewRequest(tc.method, "/", nil)
		r.Header.Set("Accept", tc.accept)
		got := ""
		if err := Acceptable(r, types); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%v: %q", tc, got)
		}
	}
	for contentType, ok := range map[string]bool{
		PatchMerge: true, PatchMerge + "; charset=utf-8": true, PatchApplyYAML: true,
		"": false, "text/plain": false, "application/merge-patch+yaml": false, "*/*": false,
	} {
		r := httptest.NewRequest("PATCH", "/", strings.NewReader("{}"))
		r.Header.Set("Content-Type", contentType)
		err := Consumable(r, patchTypes)
		if (err == nil) != ok || err != nil && err.Error() != "415: Unsupported Media Type" {
			t.Errorf("%q: %v", contentType, err)
		}
	}
	if _, err := PatchType(PatchStrategic, []string{PatchJSON, PatchMerge, PatchApplyYAML}); err == nil ||
		err.Error() != "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml" {
		t.Error(err)
	}
	for contentType, want := range map[string]string{
		"": JSON, JSON: JSON, "application/json; charset=utf-8": JSON, "Application/YAML": YAML, Protobuf + ";charset=utf-8": Protobuf,
		"text/plain": "", "not a type": "", PatchMerge: "",
	} {
		got, err := BodyType(contentType, types)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v", contentType, got, err)
		}
		if err != nil && (apierrors.ReasonForError(err) != metav1.StatusReasonUnsupportedMediaType || !strings.HasSuffix(err.Error(), "include: application/json, application/yaml, application/vnd.kubernetes.protobuf")) {
			t.Error(err)
		}
	}
}

// TestParameters: a header of nothing but parameters is not compared with itself.
func TestParameters(t *testing.T) {
	var header strings.Builder
	header.WriteString("application/json")
	for i := range 100_000 {
		fmt.Fprintf(&header, ";%x=1", i)
	}
	got := parseAccept(header.String())
	if len(got) != 1 || len(got[0].params) != maxParams {
		t.Errorf("%d clauses, %d parameters are kept, want %d", len(got), len(got[0].params), maxParams)
	}
}

// TestClauses: of a header of nothing but clauses the first are read. What that costs is counted in allocated bytes.
func TestClauses(t *testing.T) {
	for header, want := range map[string]string{
		strings.Repeat("a/b,", maxClauses-1) + JSON: JSON,
		strings.Repeat("a/b,", maxClauses) + JSON:   "",
		strings.Repeat(",", 1<<20) + JSON:           "",
		JSON + strings.Repeat(",a/b", 1<<18):        JSON,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept", header)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		form, err := Negotiate(r, Offer{Types: types})
		accepted := Accepted(r, types...)
		runtime.ReadMemStats(&after)
		if form.Type != want || (err == nil) != (want != "") || accepted != want {
			t.Errorf("%.20s of %d bytes: %v, %v, %q", header, len(header), form, err, accepted)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 256<<10 {
			t.Errorf("%.20s of %d bytes: %d bytes are allocated", header, len(header), n)
		}
	}
	var long strings.Builder
	long.WriteString(JSON)
	for i := 0; long.Len() <= maxContentType; i++ {
		if _, err := BodyType(long.String(), types); err != nil {
			t.Fatalf("a Content-Type of %d bytes: %v", long.Len(), err)
		}
		fmt.Fprintf(&long, ";p%d=%s", i, strings.Repeat("a", 500))
	}
	if _, err := BodyType(long.String(), types); err == nil {
		t.Errorf("a Content-Type of %d bytes is read", long.Len())
	}
}

// FuzzAccept holds the parser against the one stock servers use.
func FuzzAccept(f *testing.F) {
	for _, s := range []string{"", "*/*", "a/b;q=0.5, */*;q=1, c/*", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "a;b=c", "*;q=x", "a/b;q=1=2;c==;d=;=e", "a/b/ , / ,,;", "a/b;q= 1", "a/b;x=1;x=2",
		"a/*,b/b;q=.1,*/*,c/c;q=2,d/d,e/e,f/*,g/g;q=0,h/h,i/i,j/*;q=.5,k/k,l/l,m/m;q=.5,*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if strings.Count(header, ",") >= maxClauses || strings.Count(header, ";") > maxParams {
			return
		}
		want := goautoneg.ParseAccept(header)
		got := parseAccept(header)
		if len(want) != len(got) {
			t.Fatalf("%q: %v, want %v", header, got, want)
		}
		for i, c := range got {
			params := map[string]string{}
			for _, p := range c.params {
				params[p.name] = p.value
			}
			w := want[i]
			if c.main != w.Type || c.sub != w.SubType || c.q != w.Q && w.Q == w.Q || len(params) != len(w.Params) {
				t.Fatalf("%q: %v, want %v", header, got, want)
			}
			for k, v := range w.Params {
				if params[k] != v {
					t.Fatalf("%q: %v, want %v", header, got, want)
				}
			}
		}
		r := &http.Request{Header: http.Header{"Accept": {header}, "Content-Type": {header}}, URL: httptest.NewRequest("GET", "/", nil).URL}
		_, _ = Negotiate(r, Offer{Types: typesCBOR, Transforms: ResourceTransforms})
		_ = Acceptable(r, append(typesCBOR, JSON+";stream=watch"))
		_, _ = BodyType(header, typesCBOR)
	})
}
