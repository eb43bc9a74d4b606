// Package operators makes CustomResourceDefinitions of realistic size, shaped like those of twenty
// well-known kinds of operators, with descriptions, several served versions, rules, defaults,
// printer columns and subresources.
//
// The output depends only on a number; every definition passes validation, and every object of one
// is valid in all of its versions. All texts were written for this package.
package operators

import (
	"encoding/json"
	"fmt"
	"strings"
)

// perGroup is the number of definitions that share a group, as those of one operator do.
const perGroup = 10

// releases is the number of releases of the shared shapes: operators that were built with the same
// release describe a container in the same words.
const releases = 4

// Definition is a definition, and the path of its objects.
type Definition struct {
	Name     string // plural.group
	Group    string
	Plural   string
	Kind     string
	Versions []string // all served; the last one is stored
	Body     []byte   // the definition as JSON
	Path     string   // of its objects, with %s for the version; in namespace default if they are namespaced
	spec     json.RawMessage
}

// Set makes definitions of one cluster.
type Set struct{ number uint64 }

// New returns the set with a number.
func New(number uint64) *Set { return &Set{number: number} }

// At makes the definition with an index; the same index gives the same definition.
func (s *Set) At(i int) (*Definition, error) {
	f := &families[i%len(families)]
	nth := i / len(families) // in the family
	kind := f.kinds[nth%len(f.kinds)] + strings.ToUpper(string(rune('a'+nth/len(f.kinds)%26))) + fmt.Sprint(nth)
	d := &Definition{
		Group: fmt.Sprintf("%s-%d.operators.example.com", f.name, nth/perGroup), Kind: kind,
		Plural: strings.ToLower(kind) + "s", Versions: f.versions,
	}
	d.Name, d.Path = d.Plural+"."+d.Group, "/apis/"+d.Group+"/%s/namespaces/default/"+d.Plural
	if f.cluster {
		d.Path = "/apis/" + d.Group + "/%s/" + d.Plural
	}
	w := &writer{number: s.number<<32 + uint64(i), leaves: leftOut[min(nth%len(f.kinds), len(leftOut)-1)], release: (nth/perGroup + i%len(families)) % releases, own: f.name}
	sample := map[string]any{}
	var versions []any
	for n, name := range f.versions {
		// A later version has all fields of earlier ones.
		w.age = len(f.versions) - 1 - n
		schema, object := w.root(f, kind)
		versions = append(versions, f.version(name, n == len(f.versions)-1, schema))
		if n == 0 {
			sample = object
		}
	}
	var err error
	if d.Body, err = json.Marshal(d.document(f, versions)); err != nil {
		return nil, fmt.Errorf("definition %d: %w", i, err)
	}
	d.spec, err = json.Marshal(sample)
	return d, err
}

// document returns the definition with its versions.
func (d *Definition) document(f *family, versions []any) tree {
	scope := "Namespaced"
	if f.cluster {
		scope = "Cluster"
	}
	return tree{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": tree{"name": d.Name, "labels": tree{"operators.example.com/family": f.name}},
		"spec": tree{
			"group": d.Group, "scope": scope, "versions": versions,
			"names": tree{
				"kind": d.Kind, "listKind": d.Kind + "List", "plural": d.Plural, "singular": strings.ToLower(d.Kind),
				"shortNames": []string{"x" + strings.ToLower(d.Kind)}, "categories": []string{f.name},
			},
		},
	}
}

// Object returns an object of the definition in one of its versions, as JSON.
func (d *Definition) Object(version, name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"%s/%s","kind":%q,"metadata":{"name":%q,"labels":{"app":%q}},"spec":%s}`, d.Group, version, d.Kind, name, name, d.spec)
}
