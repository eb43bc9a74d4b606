package apiextensions

import (
	"slices"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// wrongType returns the error about an extension that requires a type.
func wrongType(p *field.Path, got, detail string) *field.Error {
	if got == "" {
		return field.Required(p.Child("type"), detail)
	}
	return field.Invalid(p.Child("type"), got, detail)
}

func validateMapType(s *apiext.JSONSchemaProps, p *field.Path) (errs field.ErrorList) {
	if s.XMapType == nil {
		return nil
	}
	if s.Type != "object" {
		errs = append(errs, wrongType(p, s.Type, "must be object if x-kubernetes-map-type is specified"))
	}
	if kinds := []string{"atomic", "granular"}; !slices.Contains(kinds, *s.XMapType) {
		errs = append(errs, field.NotSupported(p.Child("x-kubernetes-map-type"), *s.XMapType, kinds))
	}
	return errs
}

func isList(s *apiext.JSONSchemaProps, kind string) bool {
	return s.XListType != nil && *s.XListType == kind
}

// looseSetItem returns the extension that is missing from items of a set, which must be
// whole to be distinguished; "" if nothing is.
func looseSetItem(s *apiext.JSONSchemaProps) string {
	if !isList(s, "set") || s.Items == nil || s.Items.Schema == nil {
		return ""
	}
	switch item := s.Items.Schema; {
	case item.Type == "array" && item.XListType != nil && *item.XListType != "atomic":
		return "x-kubernetes-list-type"
	case item.Type == "object" && (item.XMapType == nil || *item.XMapType != "atomic"):
		return "x-kubernetes-map-type"
	}
	return ""
}

func validateListType(s *apiext.JSONSchemaProps, t tolerance, p *field.Path) (errs field.ErrorList) {
	at := p.Child("x-kubernetes-list-type")
	if s.XListType != nil {
		if s.Type != "array" {
			errs = append(errs, wrongType(p, s.Type, "must be array if x-kubernetes-list-type is specified"))
		} else if missing := looseSetItem(s); missing != "" && !t.looseSets {
			// Stock servers show the list type of the items in both cases.
			errs = append(errs, field.Invalid(p.Child("items", missing), s.Items.Schema.XListType, "must be atomic as item of a list with x-kubernetes-list-type=set"))
		}
		if kinds := []string{"atomic", "set", "map"}; !slices.Contains(kinds, *s.XListType) {
			errs = append(errs, field.NotSupported(at, *s.XListType, kinds))
		}
	}
	if len(s.XListMapKeys) > 0 && !isList(s, "map") {
		const detail = "must be map if x-kubernetes-list-map-keys is non-empty"
		if s.XListType == nil {
			errs = append(errs, field.Required(at, detail))
		} else {
			errs = append(errs, field.Invalid(at, *s.XListType, detail))
		}
	}
	if isList(s, "map") {
		errs = append(errs, validateMapList(s, p)...)
	}
	return errs
}

func validateMapList(s *apiext.JSONSchemaProps, p *field.Path) (errs field.ErrorList) {
	keys := p.Child("x-kubernetes-list-map-keys")
	errs = rules.RequiredIf(errs, len(s.XListMapKeys) == 0, keys, "must not be empty if x-kubernetes-list-type is map")
	items := p.Child("items")
	switch {
	case s.Items == nil:
		return append(errs, field.Required(items, "must have a schema if x-kubernetes-list-type is map"))
	case s.Items.Schema == nil:
		return append(errs, field.Invalid(items, s.Items, "must only have a single schema if x-kubernetes-list-type is map"))
	case s.Items.Schema.Type != "object":
		return append(errs, field.Invalid(items.Child("type"), s.Items.Schema.Type, "must be object if parent array's x-kubernetes-list-type is map"))
	}
	item := s.Items.Schema
	seen := rules.Seen[string]{}
	for _, k := range rules.Until(&errs, s.XListMapKeys) {
		property, ok := item.Properties[k]
		switch {
		case !ok:
			errs = append(errs, field.Invalid(keys, s.XListMapKeys, "entries must all be names of item properties"))
		case property.Type == "array" || property.Type == "object":
			errs = append(errs, field.Invalid(items.Child("properties").Key(k).Child("type"), item.Type, "must be a scalar type if parent array's x-kubernetes-list-type is map"))
		}
		errs = rules.InvalidIf(errs, seen.Again(k), keys, s.XListMapKeys, "must not contain duplicate entries")
	}
	return errs
}

// validateKeyed checks that items of sets and maps, and the keys of the latter, are
// always there.
func validateKeyed(s *apiext.JSONSchemaProps, p *field.Path) (errs field.ErrorList) {
	if s.Items == nil || s.Items.Schema == nil || !isList(s, "set") && !isList(s, "map") {
		return nil
	}
	item, at := s.Items.Schema, p.Child("items")
	if item.Nullable {
		errs = append(errs, field.Forbidden(at.Child("nullable"), "cannot be nullable when x-kubernetes-list-type is "+*s.XListType))
	}
	if !isList(s, "map") {
		return errs
	}
	required := rules.In(item.Required)
	for _, k := range rules.Until(&errs, s.XListMapKeys) {
		property, ok := item.Properties[k]
		if !ok {
			continue // reported already
		}
		key := at.Child("properties").Key(k)
		errs = rules.RequiredIf(errs, property.Default == nil && !required.Has(k), key.Child("default"), "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property")
		errs = rules.ForbiddenIf(errs, property.Nullable, key.Child("nullable"), "this property is in x-kubernetes-list-map-keys, so it cannot be nullable")
	}
	return errs
}
