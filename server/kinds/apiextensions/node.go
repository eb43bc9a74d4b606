package apiextensions

import (
	"cmp"
	"context"
	"iter"
	"slices"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var openAPITypes = []string{"array", "boolean", "integer", "number", "object", "string"}

func hasOddType(s *apiext.JSONSchemaProps) bool {
	return s.Type != "" && !slices.Contains(openAPITypes, s.Type)
}

// hasExtensions reports whether a schema has keywords that only structural schemas can have.
func hasExtensions(s *apiext.JSONSchemaProps) bool {
	return s.XEmbeddedResource || s.XPreserveUnknownFields != nil || s.XIntOrString || len(s.XListMapKeys) > 0 || s.XListType != nil || len(s.XValidations) > 0
}

// walk goes through a schema. Mistakes of rules are kept apart, for they come last.
type walk struct {
	t             tolerance
	unpriced      bool // the cost of single rules is not limited
	only          bool // only the paths to rules are checked
	schema, rules field.ErrorList
	cost          totalCost
	typing        int // cost of making the types of rules so far
	weights       weights
}

// place is the position of the walk in a schema.
type place struct {
	path      *field.Path
	root      bool
	inMeta    bool        // inside the schema of apiVersion, kind or metadata
	undefault string      // why there may be no defaults; "" where there may be
	loose     *field.Path // the outermost schema whose parts have no counterpart in an older object; nil: all have
	rules     *scope      // nil where rules cannot be compiled
	ruled     *ruledParts // where rules are, for a walk to these only
}

// value returns the place of a schema that only restricts the value of this one.
func (at place) value(p *field.Path) place {
	at.path, at.root, at.rules, at.ruled = p, false, nil, nil
	return at
}

// part returns the place of a schema of a part of the value.
func (at place) part(p *field.Path, rules *scope) place {
	at.path, at.root, at.rules = p, false, rules
	return at
}

// uncorrelated forbids rules below p to ask for old values.
func (at place) uncorrelated(p *field.Path) place {
	at.loose = cmp.Or(at.loose, p)
	return at
}

func (w *walk) forbid(p *field.Path, detail string) {
	w.schema = append(w.schema, field.Forbidden(p, detail))
}

func (w *walk) node(ctx context.Context, s *apiext.JSONSchemaProps, at place) {
	if s == nil || w.only && at.ruled == nil {
		return
	}
	before, p := len(w.schema), at.path
	w.keywords(s, at)
	if s.UniqueItems {
		w.forbid(p.Child("uniqueItems"), "uniqueItems cannot be set to true since the runtime complexity becomes quadratic")
	}
	w.properties(ctx, s, at)
	w.node(ctx, s.Not, at.value(p.Child("not")))
	for i := range s.AllOf {
		w.node(ctx, &s.AllOf[i], at.value(p.Child("allOf").Index(i)))
	}
	for i := range s.OneOf {
		w.node(ctx, &s.OneOf[i], at.value(p.Child("oneOf").Index(i)))
	}
	for i := range s.AnyOf {
		w.node(ctx, &s.AnyOf[i], at.value(p.Child("anyOf").Index(i)))
	}
	for name, d := range sorted(s.Definitions) {
		w.node(ctx, &d, at.value(p.Child("definitions").Key(name)))
	}
	w.items(ctx, s, at)
	for name, d := range sorted(s.Dependencies) {
		w.node(ctx, d.Schema, at.value(p.Child("dependencies").Key(name)))
	}
	if s.XPreserveUnknownFields != nil && !*s.XPreserveUnknownFields {
		w.schema = append(w.schema, field.Invalid(p.Child("x-kubernetes-preserve-unknown-fields"), false, "must be true or undefined"))
	}
	w.schema = append(w.schema, validateMapType(s, p)...)
	w.schema = append(w.schema, validateListType(s, w.t, p)...)
	if !w.t.looseKeys {
		w.schema = append(w.schema, validateKeyed(s, p)...)
	}
	w.schema = append(w.schema, validateRuleTexts(s, p.Child("x-kubernetes-validations"))...)
	// Faults of the schema here or below would cause confusing compile errors.
	if len(w.schema) == before && at.rules != nil && len(s.XValidations) > 0 {
		w.compile(ctx, s, at)
	}
}

// keywords refuses keywords of OpenAPI that structural schemas do not have.
func (w *walk) keywords(s *apiext.JSONSchemaProps, at place) {
	p := at.path
	if !w.t.oddTypes && hasOddType(s) {
		w.schema = append(w.schema, field.NotSupported(p.Child("type"), s.Type, openAPITypes))
	}
	if s.Default != nil && at.undefault != "" {
		w.forbid(p.Child("default"), "must not be set "+at.undefault)
	}
	for _, k := range []struct {
		set  bool
		name string
	}{
		{s.ID != "", "id"}, {s.AdditionalItems != nil, "additionalItems"}, {len(s.PatternProperties) > 0, "patternProperties"},
		{len(s.Definitions) > 0, "definitions"}, {s.Dependencies != nil, "dependencies"}, {s.Ref != nil, "$ref"},
	} {
		if k.set {
			w.forbid(p.Child(k.name), k.name+" is not supported")
		}
	}
	if s.Type == "null" {
		w.forbid(p.Child("type"), "type cannot be set to null, use nullable as an alternative")
	}
	if s.Items != nil && len(s.Items.JSONSchemas) > 0 {
		w.forbid(p.Child("items"), "items must be a schema object and not an array")
	}
	if at.inMeta && s.XEmbeddedResource {
		w.forbid(p.Child("x-kubernetes-embedded-resource"), "must not be used inside of resource meta")
	}
}

func (w *walk) properties(ctx context.Context, s *apiext.JSONSchemaProps, at place) {
	if others := s.AdditionalProperties; others != nil {
		p := at.path.Child("additionalProperties")
		if len(s.Properties) > 0 && (!others.Allows || others.Schema != nil) {
			w.forbid(p, "additionalProperties and properties are mutual exclusive")
		}
		below := at.part(p, at.rules.values(others.Schema))
		if at.inMeta {
			below.undefault = "inside additionalProperties applying to object metadata"
		}
		if w.only {
			below.ruled = at.ruled.values
		}
		w.node(ctx, others.Schema, below)
	}
	for name, property := range w.named(s, at) {
		below := at.part(at.path.Child("properties").Key(name), at.rules.property(&property, name))
		if !cel.MapIsCorrelatable(s.XMapType) {
			below = below.uncorrelated(at.path)
		}
		if (at.root || s.XEmbeddedResource) && (name == "metadata" || name == "kind" || name == "apiVersion") {
			below.inMeta = true
			if at.root {
				below.undefault = "in top-level " + name
			}
		}
		if w.only {
			below.ruled = at.ruled.properties[name]
		}
		w.node(ctx, &property, below)
	}
}

// named returns the properties of a schema that are walked through, in the order of their names.
func (w *walk) named(s *apiext.JSONSchemaProps, at place) iter.Seq2[string, apiext.JSONSchemaProps] {
	if !w.only {
		return sorted(s.Properties)
	}
	return func(yield func(string, apiext.JSONSchemaProps) bool) {
		for name := range sorted(at.ruled.properties) {
			if !yield(name, s.Properties[name]) {
				return
			}
		}
	}
}

func (w *walk) items(ctx context.Context, s *apiext.JSONSchemaProps, at place) {
	if s.Items == nil {
		return
	}
	if s.XListType == nil || *s.XListType != "map" { // items of other lists have no name
		at = at.uncorrelated(at.path)
	}
	p := at.path.Child("items")
	below := at.part(p, at.rules.items(s.Items.Schema))
	if w.only {
		below.ruled = at.ruled.items
	}
	w.node(ctx, s.Items.Schema, below)
	for i := range s.Items.JSONSchemas {
		one := &s.Items.JSONSchemas[i]
		w.node(ctx, one, at.part(p.Index(i), at.rules.items(one)))
	}
}
