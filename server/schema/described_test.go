package schema_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/schema"
)

// served returns the decoded definitions of the OpenAPI 2 document, which has all of them.
func served(t *testing.T) map[string]definition {
	t.Helper()
	var document struct{ Definitions map[string]definition }
	if err := json.Unmarshal(get(t, documents().ServeV2, "/openapi/v2").Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	return document.Definitions
}

type definition struct {
	Description *string
	Enum        []string
	Properties  map[string]definition
}

// TestEveryDescriptionIsFound holds the documents against the file of definitions, which marks the
// descriptions in the sources of the types.
func TestEveryDescriptionIsFound(t *testing.T) {
	have, checked := served(t), 0
	check := func(what string, fact, found definition) {
		if (fact.Description == nil) != (found.Description == nil) || found.Description != nil && *found.Description == "" {
			t.Errorf("%s: described in the sources: %v, in the document: %v", what, fact.Description != nil, found.Description != nil)
		}
		if fact.Description != nil {
			checked++
		}
	}
	for name, text := range schema.Undescribed {
		found, ok := have[name]
		if !ok {
			continue // no served kind refers to it
		}
		var fact definition
		if err := json.Unmarshal([]byte(text), &fact); err != nil {
			t.Fatal(err)
		}
		check(name, fact, found)
		for field := range fact.Properties {
			check(name+" "+field, fact.Properties[field], found.Properties[field])
		}
	}
	if checked < 2500 {
		t.Errorf("only %d descriptions were looked for", checked)
	}
}

// wordless are the enumerations whose values no source describes.
var wordless = []string{
	"io.k8s.api.batch.v1.PodFailurePolicyOnExitCodesRequirement operator",
	"io.k8s.api.core.v1.AzureDiskVolumeSource cachingMode",
	"io.k8s.api.core.v1.AzureDiskVolumeSource kind",
	"io.k8s.api.core.v1.NodeSelectorRequirement operator",
	"io.k8s.api.core.v1.PodSpec restartPolicy",
	"io.k8s.api.core.v1.ScopedResourceSelectorRequirement operator",
	"io.k8s.api.core.v1.Toleration operator",
}

// TestEveryValueIsDescribed: the description of a field has a sentence on each value of its
// enumeration.
func TestEveryValueIsDescribed(t *testing.T) {
	bare := map[string]bool{}
	for name, d := range served(t) {
		for field, p := range d.Properties {
			for _, value := range p.Enum {
				_, after, ok := strings.Cut(*p.Description, fmt.Sprintf("\n - `%q`", value))
				if !ok {
					t.Errorf("%s %s does not name %q", name, field, value)
				}
				if after == "" || after[0] != ' ' {
					bare[name+" "+field] = true
				}
			}
		}
	}
	if got := slices.Sorted(maps.Keys(bare)); !slices.Equal(got, wordless) {
		t.Errorf("enumerations with values without a description:\n%s", strings.Join(got, "\n"))
	}
}

// TestValuesOfConvertedConstants: an enumeration has the values that its constants name by a
// conversion, too.
func TestValuesOfConvertedConstants(t *testing.T) {
	all := served(t)
	for name, want := range map[string][]string{
		"io.k8s.api.networking.v1.HTTPIngressPath pathType": {"Exact", "ImplementationSpecific", "Prefix"},
		"io.k8s.api.discovery.v1.EndpointSlice addressType": {"FQDN", "IPv4", "IPv6"},
	} {
		kind, field, _ := strings.Cut(name, " ")
		if got := all[kind].Properties[field].Enum; !slices.Equal(got, want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestDataHoldsNoSentence: descriptions are read where their authors publish them, and no file of ours has
// any.
func TestDataHoldsNoSentence(t *testing.T) {
	for line := range strings.Lines(schema.DefinitionText()) {
		for _, text := range strings.Split(strings.TrimSuffix(line, "\n"), "\t")[1:] {
			if text == "" {
				continue // the oldest release does not have the type
			}
			var tree any
			if err := json.Unmarshal([]byte(text), &tree); err != nil {
				t.Fatal(err)
			}
			noSentence(t, "", tree)
		}
	}
}

// noSentence looks for text with blanks. Only values of enumerations may have them.
func noSentence(t *testing.T, key string, node any) {
	t.Helper()
	switch node := node.(type) {
	case map[string]any:
		for k, v := range node {
			if strings.Contains(k, " ") {
				t.Errorf("a name with blanks: %q", k)
			}
			noSentence(t, k, v)
		}
	case []any:
		for _, v := range node {
			noSentence(t, key, v)
		}
	case string:
		if key == "description" && node != "" || key != "enum" && strings.Contains(node, " ") {
			t.Errorf("%s: %q", key, node)
		}
	}
}

// TestDescriptionsAreReadWhenAskedFor: without a request for a document a server makes none of it, and with
// requests it makes the definitions once.
func TestDescriptionsAreReadWhenAskedFor(t *testing.T) {
	d := documents()
	if d.Made() != nil {
		t.Error("the definitions are made before they are asked for")
	}
	get(t, d.ServeV3, "/openapi/v3/apis/apps/v1")
	first := d.Made()
	if len(first) == 0 || first[0] != 0x1f || first[1] != 0x8b {
		t.Fatalf("%d bytes are kept, not compressed ones", len(first))
	}
	get(t, d.ServeV3, "/openapi/v3")
	get(t, d.ServeV2, "/openapi/v2")
	if again := d.Made(); &again[0] != &first[0] {
		t.Error("the definitions are made more than once")
	}
}

// TestDefinitionsForMerges: merges get definitions without waiting for descriptions.
func TestDefinitionsForMerges(t *testing.T) {
	const meta = "io.k8s.apimachinery.pkg.apis.meta.v1."
	found := schema.Definitions(release.Default, meta+"ObjectMeta")
	for _, name := range []string{"ObjectMeta", "OwnerReference", "ManagedFieldsEntry", "FieldsV1", "Time"} {
		if !json.Valid(found[meta+name]) {
			t.Errorf("%s: %q", name, found[meta+name])
		}
	}
	if len(found) != 5 {
		t.Errorf("%d definitions", len(found))
	}
}
