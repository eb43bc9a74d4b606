package custom

import (
	"strings"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// labelOf returns the field selector label of a path such as ".spec.color".
func labelOf(path string) string { return strings.TrimPrefix(path, ".") }

// fields returns the selectable fields of all versions: the cache has their values in the stored version.
func (d *Definition) fields() []kinds.SelectableField {
	var out []kinds.SelectableField
	seen := rules.Seen[string]{}
	for i := range d.spec.Versions {
		for _, f := range d.spec.Versions[i].SelectableFields {
			label := labelOf(f.JSONPath)
			if !seen.Again(label) {
				out = append(out, kinds.SelectableField{Label: label, Path: steps(f.JSONPath)})
			}
		}
	}
	return out
}

// labels returns the field selector labels that clients of the version may use.
func (v *Version) labels() map[string]string {
	out := map[string]string{}
	for _, f := range v.spec.SelectableFields {
		label := labelOf(f.JSONPath)
		out[label] = label
	}
	return out
}
