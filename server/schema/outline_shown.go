package schema

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/schema/gnostic"
)

// embed gives resources the fields of every resource.
func (s *outlined) embed(root bool) {
	for i := range s.properties {
		s.properties[i].of.embed(false)
	}
	if s.items != nil {
		s.items.embed(false)
	}
	if s.values != nil {
		s.values.embed(false)
	}
	of := embeddedFields()
	switch {
	case root:
		s.embedded, s.places[keywordEmbedded] = false, place{} // it is not inside of anything
		of = rootFields()
	case !s.embedded:
		return
	}
	s.properties = slices.DeleteFunc(s.properties, func(p outlinedProperty) bool {
		return slices.ContainsFunc(of, func(f outlinedProperty) bool { return bytes.Equal(f.name, p.name) })
	})
	s.properties = append(s.properties, of...)
	s.sortProperties()
	s.places[keywordProperties].end = 1
}

// lossy is the function of that name for an outline.
func (s *outlined) lossy(text []byte) {
	if s.nullable {
		s.places[keywordType] = place{}
	}
	preserve := s.has(keywordPreserve)
	if preserve || !s.has(keywordType) && !s.has(keywordIntOrString) {
		s.items, s.properties = nil, nil
		s.places[keywordItems], s.places[keywordProperties] = place{}, place{}
	}
	if typ := text[s.places[keywordType].at:s.places[keywordType].end]; s.items == nil && string(typ) == `"array"` || preserve && string(typ) == `"object"` {
		s.places[keywordType] = place{}
	}
	if !s.needsSome(text) {
		s.places[keywordRequired] = place{}
	} else if s.embedded {
		s.places[keywordRequired].end = max(s.places[keywordRequired].end, 1)
	}
	for i := range s.properties {
		if p := s.properties[i].of; p != nil {
			p.lossy(text)
		}
	}
	if s.items != nil {
		s.items.lossy(text)
	}
	if s.values != nil {
		s.values.lossy(text)
	}
}

func (s *outlined) needsSome(text []byte) bool {
	if s.values != nil && s.values.nullable {
		return false
	}
	for range s.required(text) {
		return true
	}
	return false
}

// required yields the names of required properties except nullable ones.
func (s *outlined) required(text []byte) func(yield func(quoted []byte) bool) {
	return func(yield func([]byte) bool) {
		apiVersion, kind, more := false, false, true
		if p := s.places[keywordRequired]; p.end > 1 {
			scan.Loose.Elements(text, int(p.at), func(at int) (int, bool) {
				end, _ := scan.String(text, at)
				name := text[at+1 : end-1]
				apiVersion, kind = apiVersion || string(name) == "apiVersion", kind || string(name) == "kind"
				i, found := slices.BinarySearchFunc(s.properties, name, func(p outlinedProperty, name []byte) int { return bytes.Compare(p.name, name) })
				if found && s.properties[i].of != nil && s.properties[i].of.nullable {
					return end, true
				}
				more = yield(text[at:end])
				return end, more
			})
		}
		if s.embedded && more && !apiVersion {
			more = yield([]byte(`"apiVersion"`))
		}
		if s.embedded && more && !kind {
			yield([]byte(`"kind"`))
		}
	}
}

// rootFields and embeddedFields are the fields of resources, and of resources embedded in them.
var (
	rootFields = sync.OnceValue(func() []outlinedProperty {
		kind, partial := metav1.TypeMeta{}.SwaggerDoc(), metav1.PartialObjectMetadata{}.SwaggerDoc()
		return fixedFields(kind["apiVersion"], kind["kind"], partial["metadata"])
	})
	embeddedFields = sync.OnceValue(func() []outlinedProperty { return fixedFields("", "", "") })
)

func fixedFields(apiVersion, kind, metadata string) (out []outlinedProperty) {
	for _, f := range []struct {
		name, description string
		schema            tree
	}{
		{"apiVersion", apiVersion, tree{"type": "string"}},
		{"kind", kind, tree{"type": "string"}},
		{"metadata", metadata, tree{"$ref": definitionRef + metaName("ObjectMeta")}},
	} {
		if f.description != "" {
			f.schema["description"] = f.description
		}
		text, _ := json.Marshal(f.schema) // strings always encode
		wire, _ := gnostic.EncodeSwaggerSchema(text)
		out = append(out, outlinedProperty{name: []byte(f.name), fixed: &fixedPart{text, wire}})
	}
	return out
}
