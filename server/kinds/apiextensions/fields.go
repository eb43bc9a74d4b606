package apiextensions

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

var (
	columnTypes   = []string{"boolean", "date", "integer", "number", "string"}
	columnFormats = []string{"byte", "date", "date-time", "double", "float", "int32", "int64", "password"}
)

// maxSelectable bounds the selectable fields of a version.
const maxSelectable = 8

func validateColumn(c *apiext.CustomResourceColumnDefinition, p *field.Path) (errs field.ErrorList) {
	errs = rules.RequiredIf(errs, c.Name == "", p.Child("name"), "")
	types := "must be one of " + strings.Join(columnTypes, ",")
	switch {
	case c.Type == "":
		errs = append(errs, field.Required(p.Child("type"), types))
	case !slices.Contains(columnTypes, c.Type):
		errs = append(errs, field.Invalid(p.Child("type"), c.Type, types))
	}
	if c.Format != "" && !slices.Contains(columnFormats, c.Format) {
		errs = append(errs, field.Invalid(p.Child("format"), c.Format, "must be one of "+strings.Join(columnFormats, ",")))
	}
	return append(errs, validatePath(c.JSONPath, p.Child("JSONPath"), "")...)
}

// validatePath checks a required simple JSONPath, which must begin with one of the prefixes in within, if
// there are any.
func validatePath(path string, p *field.Path, where string, within ...string) field.ErrorList {
	begins := func(prefix string) bool { return strings.HasPrefix(path, prefix) }
	switch {
	case path == "":
		return field.ErrorList{field.Required(p, "")}
	case path[0] != '.':
		return field.ErrorList{field.Invalid(p, path, "must be a simple json path starting with .")}
	case where != "" && !slices.ContainsFunc(within, begins):
		return field.ErrorList{field.Invalid(p, path, "should be a json path under "+where)}
	}
	return nil
}

func validateSubresources(s *apiext.CustomResourceSubresources, p *field.Path) field.ErrorList {
	if s == nil || s.Scale == nil {
		return nil
	}
	errs := validatePath(s.Scale.SpecReplicasPath, p.Child("scale.specReplicasPath"), ".spec", ".spec.")
	errs = append(errs, validatePath(s.Scale.StatusReplicasPath, p.Child("scale.statusReplicasPath"), ".status", ".status.")...)
	if selector := s.Scale.LabelSelectorPath; selector != nil && *selector != "" {
		errs = append(errs, validatePath(*selector, p.Child("scale.labelSelectorPath"), "either .spec or .status", ".spec.", ".status.")...)
	}
	return errs
}

// validateSelectable checks the selectable fields against the schema in the same place. many allows more than
// the usual number.
func (c common) validateSelectable(many bool, p *field.Path) (errs field.ErrorList) {
	if len(c.selectable) == 0 {
		return nil
	}
	at := p.Child("selectableFields")
	above := p.Root() == p // it is the spec itself
	switch {
	case above && c.schema == nil:
		return field.ErrorList{field.Invalid(at, "", "may only be set when validations.schema is included")}
	case !above && (c.schema == nil || c.schema.OpenAPIV3Schema == nil):
		return field.ErrorList{field.Invalid(at, "", "may only be set when `version.schema.openAPIV3Schema` is not included")}
	}
	tree, err := pathTree(c.schema.OpenAPIV3Schema)
	if err != nil {
		errs = append(errs, field.Invalid(p.Child("schema.openAPIV3Schema"), "", err.Error()))
	}
	if tree == nil { // then any path leads nowhere
		tree = &structuralschema.Structural{}
	}
	seen := sets.New[string]()
	for i := range rules.Until(&errs, c.selectable) {
		errs = append(errs, validateSelectableField(c.selectable[i].JSONPath, tree, seen, at.Index(i).Child("jsonPath"))...)
	}
	if len(seen) > maxSelectable && !many {
		errs = append(errs, field.TooMany(at, len(seen), maxSelectable))
	}
	return errs
}

func validateSelectableField(path string, tree *structuralschema.Structural, seen sets.Set[string], p *field.Path) (errs field.ErrorList) {
	if path == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	to, found, err := cel.ValidFieldPath(path, tree, cel.WithFieldPathAllowArrayNotation(false))
	if err == nil && to == nil { // the library gives up on names of 64 KB
		err = errors.New("does not refer to a valid field")
	}
	if err != nil {
		return field.ErrorList{field.Invalid(p, path, fmt.Sprintf("is an invalid path: %v", err))}
	}
	errs = rules.InvalidIf(errs, to.Root().String() == "metadata", p, path, "must not point to fields in metadata")
	errs = rules.InvalidIf(errs, found == nil || !slices.Contains([]string{"string", "boolean", "integer"}, found.Type), p, path, "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.")
	errs = rules.DuplicateIf(errs, seen.Has(to.String()), p, path)
	seen.Insert(to.String())
	return errs
}

// pathTree returns a schema for the library to follow paths in. It is given an end wherever
// anything may follow, which the library does not expect.
func pathTree(s *apiext.JSONSchemaProps) (*structuralschema.Structural, error) {
	tree, err := structuralschema.NewStructural(s)
	if err != nil || tree == nil {
		return nil, err
	}
	closeEnds(tree)
	return tree, nil
}

func closeEnds(s *structuralschema.Structural) {
	for _, p := range s.Properties {
		closeEnds(&p) // ends are behind pointers
	}
	if s.Items != nil {
		closeEnds(s.Items)
	}
	if s.AdditionalProperties == nil {
		return
	}
	if s.AdditionalProperties.Structural == nil {
		s.AdditionalProperties.Structural = &structuralschema.Structural{}
		return
	}
	closeEnds(s.AdditionalProperties.Structural)
}
