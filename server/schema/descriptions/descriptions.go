// Package descriptions finds the sentences that describe the API types, their fields
// and the values of their enumerations.
//
// The sentences belong to the projects that declare the types: to the OpenAPI definitions that some of them
// publish, and to the types' own SwaggerDoc. data/descriptions.txt has them, which go generate takes from the packages
// in go.mod; the server embeds it compressed. The few that are in neither are in our own words.
//
// Reading them all costs some tens of milliseconds and a few megabytes, so it happens when the first client requests an
// OpenAPI document. The caller drops the Library after use.
package descriptions

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/release/words"
	"github.com/rowlock/rowlock/server/removed"
)

// Library holds the descriptions by Go type.
type Library struct {
	types      map[string]reflect.Type // by name, see Name
	stands     map[string]string       // the first name of types of all versions, by their names without it
	documented map[string]described    // from the types' own SwaggerDoc, by name
	published  map[string]described    // from OpenAPI definitions, by name
	words      words.Words             // of the release, where they differ from those of the types
	release    release.Version
	values     map[string]map[string]string // sentences by the name of an enumeration, then by value
}

// described is the description of one type.
type described struct {
	text   string
	fields map[string]string // by JSON name
}

// Read makes the library of a release.
func Read(v release.Version) (*Library, error) {
	types, err := linkedTypes()
	if err != nil {
		return nil, fmt.Errorf("finding the API types: %w", err)
	}
	texts, err := words.Of(v)
	if err != nil {
		return nil, err
	}
	own, published, err := embedded()
	if err != nil {
		return nil, fmt.Errorf("reading the descriptions of API types: %w", err)
	}
	l := newLibrary(types, own, published, texts)
	l.release = v
	return l, nil
}

func newLibrary(types map[string]reflect.Type, documented, published map[string]described, words words.Words) *Library {
	l := &Library{types: types, documented: documented, published: published, words: words, values: map[string]map[string]string{}, stands: map[string]string{}}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(types))) {
		l.stands[unversioned(name)] = name
	}
	for name, values := range ownValues {
		l.values[name] = maps.Clone(values)
	}
	for name, d := range l.published {
		if t := types[name]; t != nil {
			l.readValues(t, d)
		}
	}
	return l
}

// shortened reports whether SwaggerDoc has only the part of a text before a "---", or lacks its backslashes.
func shortened(documented, text string) bool {
	plain := func(text string) string { return strings.ReplaceAll(text, `\`, "") }
	cut, ends := strings.CutSuffix(documented, " ")
	return ends && strings.HasPrefix(text, cut) || plain(documented) == plain(text)
}

// corePackage begins the names of the types that are published by a library of an older release.
const corePackage = "k8s.io/api/core/v1."

// Name returns the library's name for a type: the path that Kubernetes gave to its package, a dot, its own name.
func Name(t reflect.Type) string { return removed.PackagePath(t.PkgPath()) + "." + t.Name() }

// describing returns the name of the entry that describes the type of a name.
func describing(name string, t reflect.Type) string {
	if by := removed.Describing(t.PkgPath()); by != removed.PackagePath(t.PkgPath()) {
		return by + "." + t.Name()
	}
	return name
}

// Type describes a type, or returns "".
func (l *Library) Type(name string) string {
	text := l.published[name].text
	if t := l.typeOf(name); t != nil && (text == "" || l.outdated(name)) {
		if documented := l.documented[name].text; documented != "" && !shortened(documented, text) {
			text = l.words.Text(describing(name, t), "", documented)
		}
	}
	text = cmp.Or(text, ownTypes[name])
	return text
}

// typeOf returns the Go type of a name, or nil if there is none. For a type of a version without Go types, it is
// the type of the first version that has it.
func (l *Library) typeOf(name string) reflect.Type {
	if t := l.types[name]; t != nil {
		return t
	}
	return l.types[l.stands[unversioned(name)]]
}

// unversioned returns the name of a type without the version of its package.
func unversioned(name string) string {
	dot := strings.LastIndexByte(name, '.')
	return path.Dir(name[:dot]) + name[dot:]
}

// outdated reports whether the published form of a type is older than the release.
func (l *Library) outdated(name string) bool {
	return l.release.Emulated() && strings.HasPrefix(name, corePackage)
}

// Field describes a field of a type by its JSON name, or returns "". The values are
// those of the enumeration that the field holds, if it holds one.
func (l *Library) Field(name, field string, values []string) string {
	text, _ := splitValues(l.published[name].fields[field])
	t := l.typeOf(name)
	if t != nil && (text == "" || l.outdated(name)) {
		if documented := l.fieldDoc(name, t, field); documented != "" && !shortened(documented, text) {
			text = documented
		}
	}
	text = cmp.Or(text, ownFields[name][field])
	if len(values) == 0 {
		return text
	}
	var sentences map[string]string
	if f, ok := fieldOf(t, field); ok {
		sentences = l.values[Name(bare(f.Type))]
	}
	return text + joinValues(values, sentences)
}

// LacksValues returns the values that the release does not have of the enumeration that a field holds, or a list of it.
func (l *Library) LacksValues(name, field string) []string {
	f, ok := fieldOf(l.typeOf(name), field)
	if !ok {
		return nil
	}
	return release.TypeOf(f.Type, l.release).Lacks(l.release)
}

// readValues reads the values of enumerations from a published definition. Other types have fields of the
// same enumerations.
func (l *Library) readValues(t reflect.Type, d described) {
	for field, text := range d.fields {
		_, sentences := splitValues(text)
		if len(sentences) == 0 {
			continue
		}
		if f, ok := fieldOf(t, field); ok {
			name := Name(bare(f.Type))
			if l.values[name] == nil {
				l.values[name] = map[string]string{}
			}
			maps.Copy(l.values[name], sentences)
		}
	}
}

// Descriptions of fields that hold an enumeration end with a list of its values.
const (
	valuesHead  = "\n\nPossible enum values:"
	valuesStart = "\n - `\""
	valuesEnd   = "\"`"
)

// splitValues takes the list of values from a description.
func splitValues(text string) (rest string, sentences map[string]string) {
	rest, list, found := strings.Cut(text, valuesHead)
	if !found {
		return text, nil
	}
	sentences = map[string]string{}
	for item := range strings.SplitSeq(list, valuesStart) {
		if value, sentence, ok := strings.Cut(item, valuesEnd); ok {
			sentences[value] = strings.TrimSpace(sentence)
		}
	}
	return rest, sentences
}

// joinValues makes the list of values, with the sentences that there are.
func joinValues(values []string, sentences map[string]string) string {
	var b strings.Builder
	b.WriteString(valuesHead)
	for _, v := range values {
		b.WriteString(valuesStart + v + valuesEnd)
		if sentence := sentences[v]; sentence != "" {
			b.WriteString(" " + sentence)
		}
	}
	return b.String()
}
