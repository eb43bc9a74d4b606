package apiextensions

import (
	"context"
	"reflect"
	"regexp"
	"slices"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/schema/structural"
)

// Nearly all parts of nearly all schemas are plain: they cannot violate any structural rule, wherever they
// are. One walk that allocates nothing detects that. Only the defaults and the rules of a plain schema
// remain, and trees and types are made of these alone. The checks themselves, which also make the error
// texts, handle everything uncertain.

// plainParts are the parts of a plain schema that still need checks.
type plainParts struct {
	ruled     *ruledParts             // nil: there are no rules
	defaulted *apiext.JSONSchemaProps // the schema without all that has no default; nil: there are none
}

// ruledParts leads to the schemas that have rules.
type ruledParts struct {
	properties    map[string]*ruledParts
	items, values *ruledParts
}

// plainWalk goes through a schema as long as it is plain.
type plainWalk struct {
	patterns map[string]bool        // those that were checked
	room     apiext.JSONSchemaProps // for a look at one
}

// plainOf returns the parts of a plain schema, nil for one that may not be plain.
func plainOf(s *apiext.JSONSchemaProps) *plainParts {
	w := &plainWalk{patterns: map[string]bool{}}
	parts, ok := w.root(s)
	if !ok {
		return nil
	}
	return &parts
}

func (w *plainWalk) root(s *apiext.JSONSchemaProps) (parts plainParts, ok bool) {
	if s.Type != "object" || s.AdditionalProperties != nil {
		return parts, false
	}
	for _, name := range [...]string{"metadata", "kind", "apiVersion"} {
		p, there := s.Properties[name]
		switch {
		case !there:
		case name == "metadata" && !w.onlyType(&p, "object"):
			return parts, false
		case name != "metadata" && (p.Type != "string" || p.Default != nil):
			return parts, false
		}
	}
	return w.node(s)
}

// onlyType reports whether a schema has nothing but a type.
func (w *plainWalk) onlyType(s *apiext.JSONSchemaProps, typ string) bool {
	if s.Type != typ {
		return false
	}
	w.room = *s
	w.room.Type = ""
	return reflect.ValueOf(&w.room).Elem().IsZero()
}

func (w *plainWalk) node(s *apiext.JSONSchemaProps) (parts plainParts, ok bool) {
	if !plainKeywords(s) || !w.plainTypes(s) || !plainLists(s) || !w.plainPattern(s.Pattern) {
		return parts, false
	}
	if len(s.XValidations) > 0 {
		parts.ruled = &ruledParts{}
	}
	var below apiext.JSONSchemaProps // all properties share one variable, because they are large
	var name string
	var defaulted map[string]apiext.JSONSchemaProps
	for name, below = range s.Properties {
		of, ok := w.node(&below)
		if !ok {
			return parts, false
		}
		if of.ruled != nil {
			ruled := parts.rules()
			if ruled.properties == nil {
				ruled.properties = map[string]*ruledParts{}
			}
			ruled.properties[name] = of.ruled
		}
		if of.defaulted != nil {
			if defaulted == nil {
				defaulted = map[string]apiext.JSONSchemaProps{}
			}
			defaulted[name] = *of.defaulted
		}
	}
	var items plainParts
	if s.Items != nil {
		if items, ok = w.node(s.Items.Schema); !ok {
			return parts, false
		}
		if items.ruled != nil {
			parts.rules().items = items.ruled
		}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		values, ok := w.node(s.AdditionalProperties.Schema)
		if !ok {
			return parts, false
		}
		if values.ruled != nil {
			parts.rules().values = values.ruled
		} // a default there fills in nothing, and is not checked
	}
	parts.defaulted = withDefaults(s, defaulted, items.defaulted)
	return parts, true
}

func (p *plainParts) rules() *ruledParts {
	if p.ruled == nil {
		p.ruled = &ruledParts{}
	}
	return p.ruled
}

// withDefaults returns a schema with only its parts that have defaults, or all of one that has a default itself;
// nil if there is none.
func withDefaults(s *apiext.JSONSchemaProps, properties map[string]apiext.JSONSchemaProps, items *apiext.JSONSchemaProps) *apiext.JSONSchemaProps {
	if s.Default == nil && properties == nil && items == nil {
		return nil
	}
	some := *s
	if s.Default == nil {
		some.Properties, some.Items, some.AdditionalProperties = properties, nil, nil
		if items != nil {
			some.Items = &apiext.JSONSchemaPropsOrArray{Schema: items}
		}
	}
	return &some
}

// plainKeywords reports whether a schema has no keyword of those that may not be there, or not everywhere.
func plainKeywords(s *apiext.JSONSchemaProps) bool {
	return s.ID == "" && s.Schema == "" && s.Ref == nil && s.PatternProperties == nil && s.Dependencies == nil && s.AdditionalItems == nil && s.Definitions == nil &&
		!s.UniqueItems && s.Not == nil && len(s.AllOf) == 0 && len(s.OneOf) == 0 && !s.XEmbeddedResource
}

// plainTypes reports whether a schema has a type, and parts as that type has them.
func (w *plainWalk) plainTypes(s *apiext.JSONSchemaProps) bool {
	keeps := s.XPreserveUnknownFields != nil
	if keeps && !*s.XPreserveUnknownFields || s.XIntOrString && (keeps || s.Type != "") {
		return false
	}
	if len(s.AnyOf) > 0 && !(len(s.AnyOf) == 2 && w.onlyType(&s.AnyOf[0], "integer") && w.onlyType(&s.AnyOf[1], "string")) {
		return false
	}
	if s.Type == "" && !s.XIntOrString && !keeps || s.Type != "" && !slices.Contains(openAPITypes, s.Type) {
		return false
	}
	if others := s.AdditionalProperties; others != nil && (len(s.Properties) > 0 || others.Schema == nil && !others.Allows) {
		return false
	}
	if (len(s.Properties) > 0 || s.AdditionalProperties != nil) && s.Type != "object" {
		return false
	}
	return (s.Items != nil) == (s.Type == "array") && (s.Items == nil || s.Items.Schema != nil && len(s.Items.JSONSchemas) == 0)
}

// plainLists reports whether lists and maps may merge by the schema.
func plainLists(s *apiext.JSONSchemaProps) bool {
	if s.XListType == nil && s.XListMapKeys == nil && s.XMapType == nil {
		return true
	}
	return len(validateMapType(s, nil)) == 0 && len(validateListType(s, tolerance{}, nil)) == 0 && len(validateKeyed(s, nil)) == 0
}

func (w *plainWalk) plainPattern(pattern string) bool {
	if pattern == "" {
		return true
	}
	ok, known := w.patterns[pattern]
	if !known {
		_, err := regexp.Compile(pattern)
		ok = err == nil
		w.patterns[pattern] = ok
	}
	return ok
}

// rest checks the rest of a plain schema. It is false for one whose defaults do not hold,
// which the other checks report.
func (p *plainParts) rest(ctx context.Context, w *walk, s *apiext.JSONSchemaProps, at *field.Path) bool {
	if p.defaulted != nil {
		tree, err := structuralschema.NewStructural(p.defaulted)
		if err != nil {
			return false
		}
		if wrong, err := structural.ValidateDefaults(ctx, at, tree, !w.t.unprunedDefaults, w.t.release); err != nil || len(wrong) > 0 {
			return false
		}
	}
	if p.ruled != nil {
		w.only = true
		w.node(ctx, s, place{path: at, root: true, rules: rootScope(s), ruled: p.ruled})
	}
	return true
}
