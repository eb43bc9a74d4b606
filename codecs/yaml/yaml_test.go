package yaml_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/yaml"
)

var configMap = codecs.Expected{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}}

func TestReadBody(t *testing.T) {
	head := "apiVersion: v1\nkind: ConfigMap\n"
	handled := `ConfigMap in version "v1" cannot be handled as a ConfigMap: `
	unrecognized := "the object provided is unrecognized (must be of type ConfigMap): "
	for _, tc := range []struct {
		body     string
		s        codecs.Strictness
		err      string
		warnings []string
	}{
		{body: head + "metadata:\n  name: y1\nextra: 1\n", s: codecs.Warn, warnings: []string{`unknown field "extra"`}},
		{body: head + "metadata:\n  name: y2\n  extra: 1\ndata:\n  a: \"1\"\n  a: \"2\"\n", s: codecs.Strict,
			err: handled + "strict decoding error: yaml: unmarshal errors:\n  line 8: key \"a\" already set in map, unknown field \"metadata.extra\""},
		{body: head + "metadata:\n  name: y3\ndata:\n  a: \"1\"\n  a: \"2\"\n", s: codecs.Warn, warnings: []string{`line 7: key "a" already set in map`}},
		{body: head + "metadata:\n  name: y3\ndata:\n  a: \"1\"\n  a: \"2\"\n", s: codecs.Ignore},
		{body: head + "metadata:\n  name: y5\n data: x\n",
			err: unrecognized + "yaml: line 4: did not find expected key (61706956657273696f6e3a2076310a6b696e643a20436f6e6669674d6170 ...)"},
		{body: head + "metadata:\n  name: y\n", err: handled + "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.name of type string"},
		{body: head + "data:\n  n: 5\n", err: handled + "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"},
		{body: "# only a comment\n", s: codecs.Strict},
		{body: "", s: codecs.Strict},
		{body: head + "---\nnonsense: [\n", s: codecs.Strict},
		{body: `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "y9"}}`, s: codecs.Strict},
		{body: "just words\n", err: unrecognized + "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" } (6a75737420776f7264730a)"},
	} {
		obj := &corev1.ConfigMap{}
		_, problems, err := codecs.ReadBody(yaml.Codec{}, []byte(tc.body), configMap, obj, tc.s)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(tc.err, got); diff != "" {
			t.Errorf("%q: %s", tc.body, diff)
		}
		if err == nil {
			if diff := cmp.Diff(tc.warnings, codecs.Warnings(problems)); diff != "" {
				t.Errorf("%q: %s", tc.body, diff)
			}
		}
	}
}

func TestEncode(t *testing.T) {
	obj := &corev1.ConfigMap{Data: map[string]string{"on": "yes", "n": "010", "text": "two\nlines\n"}}
	obj.Kind, obj.APIVersion = "ConfigMap", "v1"
	got, err := yaml.Codec{}.Encode([]byte("---\n"), obj)
	if err != nil {
		t.Fatal(err)
	}
	want := "---\napiVersion: v1\ndata:\n  \"n\": \"010\"\n  \"on\": \"yes\"\n  text: |\n    two\n    lines\nkind: ConfigMap\nmetadata: {}\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "a: b", "a: &x [1]\nb: *x", "kind: ConfigMap\ndata:\n  a: |\n    x\n", "- 1\n- 2", "? a\n: b", "<<: {a: b}\na: c", "!!binary aGk=", "1: 2\ntrue: x", "a: 1e400", "\xff", "---\n---\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if strings.Count(string(data), "*") > 8 {
			return // aliases multiply; the reader bounds them, but slowly
		}
		obj := &corev1.ConfigMap{}
		if _, _, err := codecs.ReadBody(yaml.Codec{}, data, configMap, obj, codecs.Warn); err != nil {
			return
		}
		out, err := yaml.Codec{}.Encode(nil, obj)
		if err != nil {
			t.Fatal(err)
		}
		again := &corev1.ConfigMap{}
		if _, err := (yaml.Codec{}).Decode(out, again, codecs.Strict); err != nil {
			t.Fatalf("%q -> %q: %v", data, out, err)
		}
		if diff := cmp.Diff(obj, again); diff != "" {
			t.Fatalf("%q -> %q: %s", data, out, diff)
		}
	})
}
