package configfile_test

import (
	"strings"
	"testing"

	"github.com/rowlock/rowlock/authx/configfile"
)

type thing struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Parts      []part `json:"parts"`
}

type part struct {
	Name string `json:"name"`
}

const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: Thing\n"

func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		head + "parts: [{name: a}]": "",
		`{"apiVersion":"apiserver.config.k8s.io/v1beta1","kind":"Thing","parts":[{"name":"a"}]}`: "",
		head + "parts: [{name: a, foo: 1}]":                  `strict decoding error: unknown field "parts[0].foo"`,
		head + "parts: [{Name: a}]":                          `strict decoding error: unknown field "parts[0].Name"`,
		head + "parts: [{name: a}]\nparts: [{name: a}]":      `strict decoding error: yaml: unmarshal errors:`,
		head + "parts: 5":                                    "cannot unmarshal number",
		"kind: Thing\nparts: []":                             "Object 'apiVersion' is missing in",
		"parts: []":                                          "Object 'Kind' is missing in",
		strings.Replace(head, "Thing", "Other", 1):           `no kind "Other" is registered for version "apiserver.config.k8s.io/v1"`,
		strings.Replace(head, "v1", "v2", 1):                 `no kind "Thing" is registered for version "apiserver.config.k8s.io/v2"`,
		strings.Replace(head, "apiserver.config", "core", 1): "no kind",
		"{":  "couldn't get version/kind; json parse error",
		"[]": "couldn't get version/kind; json parse error",
	} {
		var into thing
		err := configfile.Decode([]byte(text), "Thing", []string{"v1", "v1beta1"}, &into)
		if want == "" && (err != nil || len(into.Parts) != 1 || into.Parts[0].Name != "a") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestOtherFiles: errors do not quote files given by mistake.
func TestOtherFiles(t *testing.T) {
	for _, text := range []string{
		"s3cret,alice,1\n", `"s3cret`, "token: s3cret\nlist: [s3cret]\n", `{"token":"s3cret"}`, "kind: Config\ntoken: s3cret\n",
		head + "parts: s3cret", head + "parts: [s3cret]",
	} {
		var into thing
		if err := configfile.Decode([]byte(text), "Thing", []string{"v1"}, &into); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
