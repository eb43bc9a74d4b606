package codecs_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/google/go-cmp/cmp"
	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/json"
)

func TestReadBodyErrors(t *testing.T) {
	want := codecs.Expected{
		GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Known: func(gvk schema.GroupVersionKind) (runtime.Object, bool) {
			if gvk.Kind == "Secret" {
				return &corev1.Secret{}, true
			}
			return nil, gvk.Kind == "Deployment" || gvk == schema.GroupVersionKind{Group: "old", Version: "v1", Kind: "ConfigMap"}
		},
	}
	unrecognized := "the object provided is unrecognized (must be of type ConfigMap): "
	parse := unrecognized + "couldn't get version/kind; json parse error: "
	handled := `ConfigMap in version "v1" cannot be handled as a ConfigMap: `
	goType := `Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }`
	for _, tc := range []struct{ body, err string }{
		{``, parse + "unexpected end of JSON input (<empty>)"},
		{`{`, parse + "unexpected end of JSON input ({)"},
		{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}} trailing`,
			parse + `invalid character 't' after top-level value ({"apiVersion":"v1","kind":"Con ...)`},
		{`[]`, parse + "json: cannot unmarshal array into " + goType + " (5b5d)"},
		{`"text"`, parse + "json: cannot unmarshal string into " + goType + " (227465787422)"},
		{`{"apiVersion":"a/b/c","kind":"ConfigMap"}`, unrecognized + `unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c","kind":" ...)`},
		{`{"apiVersion":"v1","kind":"Secret"}`, `Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion`},
		{`{"apiVersion":"v1","kind":"Secret","data":{"a":"!"}}`, `Secret in version "v1" cannot be handled as a ConfigMap: illegal base64 data at input byte 0`},
		{`{"apiVersion":"apps/v1","kind":"Deployment"}`, `Deployment in version "v1" cannot be handled as a ConfigMap: converting (v1.Deployment) to (core.ConfigMap): unknown conversion`},
		{`{"apiVersion":"v2"}`, `ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "v2" in scheme "pkg/api/legacyscheme/scheme.go:30"`},
		{`{"apiVersion":"","kind":"Nothing"}`, `Nothing in version "v1" cannot be handled as a ConfigMap: no kind "Nothing" is registered for version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30"`},
		{`{"apiVersion":"old/v1"}`, `the API version in the data (old/v1) does not match the expected API version (v1)`},
		{`{"metadata":{"name":5}}`, handled + "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string"},
		{`{"metadata":{"labels":["a"]}}`, handled + "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string"},
		{`{"data":{"a":{"b":"c"}}}`, handled + "json: cannot unmarshal object into Go struct field ConfigMap.data of type string"},
		{`{"data":{"a":"1"},"data":{"b":"1"},"Data":{}}`, handled + `strict decoding error: duplicate field "data", unknown field "Data"`},
		{`{"metadata":{"colour":"red"},"dta":{}}`, handled + `strict decoding error: unknown field "metadata.colour", unknown field "dta"`},
		{`null`, ""},
		{`{}`, ""},
		{`{"KIND":"Secret"}`, `Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion`},
	} {
		obj := &corev1.ConfigMap{}
		_, _, err := codecs.ReadBody(json.Codec{}, []byte(tc.body), want, obj, codecs.Strict)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(tc.err, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tc.body, diff)
		}
		if err == nil && (obj.Kind != "ConfigMap" || obj.APIVersion != "v1") {
			t.Errorf("%s: kind and version not filled in: %v", tc.body, obj.TypeMeta)
		}
	}
}

// TestSchemes: kinds of the groups that extend a server are not known to the others, nor
// the others to them.
func TestSchemes(t *testing.T) {
	for _, tc := range []struct{ want, body, err string }{
		{"apiregistration.k8s.io", `{"apiVersion":"v1"}`, `APIService in version "v1" cannot be handled as a APIService: no kind "APIService" is registered for version "v1" in scheme "pkg/apiserver/scheme/scheme.go:28"`},
		{"apiregistration.k8s.io", `{"apiVersion":"apiregistration.k8s.io/v1beta1"}`, `the API version in the data (apiregistration.k8s.io/v1beta1) does not match the expected API version (apiregistration.k8s.io/v1)`},
		{"apiextensions.k8s.io", `{"apiVersion":"apps/v1"}`, `APIService in version "v1" cannot be handled as a APIService: no kind "APIService" is registered for version "apps/v1" in scheme "pkg/apiserver/apiserver.go:53"`},
		{"apps", `{"apiVersion":"apiextensions.k8s.io/v1"}`, `APIService in version "v1" cannot be handled as a APIService: no kind "APIService" is registered for version "apiextensions.k8s.io/v1" in scheme "pkg/api/legacyscheme/scheme.go:30"`},
	} {
		want := codecs.Expected{
			GVK:   schema.GroupVersionKind{Group: tc.want, Version: "v1", Kind: "APIService"},
			Known: func(schema.GroupVersionKind) (runtime.Object, bool) { return nil, true },
		}
		_, _, err := codecs.ReadBody(json.Codec{}, []byte(tc.body), want, &corev1.ConfigMap{}, codecs.Ignore)
		if err == nil || err.Error() != tc.err {
			t.Errorf("%s for %s: %v", tc.body, tc.want, err)
		}
	}
}

func TestWarnings(t *testing.T) {
	got := codecs.Warnings([]string{
		"yaml: unmarshal errors:\n  line 7: key \"a\" already set in map\n  line 9: key \"b\" already set in map",
		"error converting YAML to JSON: yaml: unmarshal errors:\n  line 1: key \"c\" already set in map",
		`unknown field "d"`,
	})
	want := []string{`line 7: key "a" already set in map`, `line 9: key "b" already set in map`, `line 1: key "c" already set in map`, `unknown field "d"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
