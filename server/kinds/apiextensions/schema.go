package apiextensions

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/schema/structural"
)

// validateSchema checks the schema of a version, or the common one of all versions, unless it is known to be
// valid.
func validateSchema(ctx context.Context, v *apiext.CustomResourceValidation, status bool, t tolerance, version string, p *field.Path) field.ErrorList {
	text, known := t.texts[v]
	if known && passed.has(pass{text, status}) {
		return nil
	}
	errs := checkSchema(ctx, v, status, t, version, p)
	if known && len(errs) == 0 && t.none(version) {
		passed.add(pass{text, status})
	}
	return errs
}

func checkSchema(ctx context.Context, v *apiext.CustomResourceValidation, status bool, t tolerance, version string, p *field.Path) (errs field.ErrorList) {
	s, at := v.OpenAPIV3Schema, p.Child("openAPIV3Schema")
	if s == nil {
		return nil
	}
	if status {
		errs = append(errs, validateRoot(s, p)...)
	}
	errs = rules.ForbiddenIf(errs, s.Nullable, p.Child("openAPIV3Schema.nullable"), "nullable cannot be true at the root")
	w := &walk{t: t, unpriced: t.unchanged.Has(version), weights: weights{}}
	if parts := plainOf(s); len(errs) == 0 && !t.looseSchema && parts != nil && parts.rest(ctx, w, s, at) {
		return slices.Concat(w.schema, w.rules, w.cost.validate(at))
	}
	return w.whole(ctx, s, at, errs)
}

// whole checks all of a schema. It adds to errs, the errors of the root.
func (w *walk) whole(ctx context.Context, s *apiext.JSONSchemaProps, at *field.Path, errs field.ErrorList) field.ErrorList {
	var unreadable field.ErrorList // reported only where no other error explains it better
	var rules *scope               // nil: rules cannot be compiled
	if !w.t.looseSchema {
		var wrong field.ErrorList
		wrong, unreadable = validateStructure(ctx, s, w.t, at)
		errs = append(errs, wrong...)
		if len(wrong) == 0 && len(unreadable) == 0 {
			rules = rootScope(s)
		}
	}
	w.node(ctx, s, place{path: at, root: true, rules: rules})
	errs = append(errs, w.schema...)
	errs = append(errs, w.rules...)
	if len(errs) == 0 {
		errs = unreadable
	}
	// A stock server makes a validator as well, to see whether that can be made. It fails at
	// references alone, of which there are none here.
	return append(errs, w.cost.validate(at)...)
}

// validateStructure checks that a schema is structural and that its defaults are valid; unreadable is the
// error if it cannot be parsed as one.
func validateStructure(ctx context.Context, s *apiext.JSONSchemaProps, t tolerance, p *field.Path) (wrong, unreadable field.ErrorList) {
	tree, err := structuralschema.NewStructural(s)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(p, "", err.Error())}
	}
	if wrong = structuralschema.ValidateStructural(p, tree); len(wrong) > 0 {
		return wrong, nil
	}
	wrong, err = structural.ValidateDefaults(ctx, p, tree, !t.unprunedDefaults, t.release)
	if err != nil {
		wrong = field.ErrorList{field.Invalid(p, "", err.Error())}
	}
	return wrong, nil
}

// atRoot are the keywords that the root of a schema may have with a status subresource, which is checked
// against the schema of the status only.
var atRoot = []string{
	"Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum", "MaxLength", "MinLength", "Pattern",
	"MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items", "Properties", "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations",
}

// validateRoot finds the first fault of the root.
func validateRoot(s *apiext.JSONSchemaProps, p *field.Path) field.ErrorList {
	v := reflect.ValueOf(*s)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch {
		case v.Field(i).IsZero():
		case name == "Type" && s.Type != "object":
			return field.ErrorList{field.Invalid(p.Child("openAPIV3Schema.type"), s.Type,
				`only "object" is allowed as the type at the root of the schema if the status subresource is enabled`)}
		case !slices.Contains(atRoot, name):
			return field.ErrorList{field.Invalid(p.Child("openAPIV3Schema"), *s,
				fmt.Sprintf("only %v fields are allowed at the root of the schema if the status subresource is enabled", atRoot))}
		}
	}
	return nil
}
