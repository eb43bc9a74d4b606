package apiextensions

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

func validateSpec(ctx context.Context, spec *apiext.CustomResourceDefinitionSpec, t tolerance, p *field.Path) field.ErrorList {
	errs := validateGroup(spec.Group, p.Child("group"))
	errs = append(errs, validateChoice(spec.Scope, p.Child("scope"), apiext.ClusterScoped, apiext.NamespaceScoped)...)

	// A flag that is absent means neither.
	keeps := spec.PreserveUnknownFields == nil || *spec.PreserveUnknownFields
	prunes := spec.PreserveUnknownFields == nil || !*spec.PreserveUnknownFields
	if prunes || anyNode(spec, hasExtensions) {
		t.looseSchema = false
	}
	if prunes || !t.noSchema {
		errs = append(errs, validatePresence(spec, t, p)...)
	}
	if anyNode(spec, func(s *apiext.JSONSchemaProps) bool { return s.Default != nil }) {
		t.looseSchema = false
		errs = rules.InvalidIf(errs, keeps, p.Child("preserveUnknownFields"), true, "must be false in order to use defaults in the schema")
	}
	errs = append(errs, validateVersions(ctx, spec, t, p)...)
	errs = append(errs, validateRequiredNames(&spec.Names, p.Child("names"))...)
	errs = append(errs, validateNames(&spec.Names, p.Child("names"))...)

	top := common{spec.Validation, spec.Subresources, spec.AdditionalPrinterColumns, spec.SelectableFields}
	status := hasStatus(spec.Subresources)
	for _, v := range spec.Versions {
		status = status || hasStatus(v.Subresources)
	}
	errs = append(errs, top.validate(ctx, status, t, spec.Version, p, p.Child("validation"))...)
	if c := spec.Conversion; c != nil {
		errs = rules.InvalidIf(errs, c.Strategy != apiext.NoneConverter && keeps, p.Child("conversion", "strategy"), c.Strategy, "must be None if spec.preserveUnknownFields is true")
		errs = append(errs, validateConversion(c, t, p.Child("conversion"))...)
	}
	return errs
}

func validateGroup(group string, p *field.Path) field.ErrorList {
	if group == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	if msgs := validation.IsDNS1123Subdomain(group); len(msgs) > 0 {
		return field.ErrorList{field.Invalid(p, group, strings.Join(msgs, ","))}
	}
	return rules.InvalidIf(nil, !strings.Contains(group, "."), p, group, "should be a domain with at least one dot")
}

// validateChoice checks a value that must be one of a few.
func validateChoice[T ~string](v T, p *field.Path, choices ...T) field.ErrorList {
	if v == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	for _, c := range choices {
		if v == c {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(p, string(v), choices)}
}

// validatePresence checks that versions have schemas.
func validatePresence(spec *apiext.CustomResourceDefinitionSpec, t tolerance, p *field.Path) (errs field.ErrorList) {
	if spec.Validation != nil && spec.Validation.OpenAPIV3Schema != nil {
		return nil
	}
	for i, v := range rules.Until(&errs, spec.Versions) {
		at := p.Child("versions").Index(i).Child("schema", "openAPIV3Schema")
		switch {
		case v.Schema != nil && v.Schema.OpenAPIV3Schema != nil:
		case !t.noSchema:
			errs = append(errs, field.Required(at, ""))
		case v.Served:
			errs = append(errs, field.Required(at, "because otherwise all fields are pruned"))
		}
	}
	return errs
}

func validateVersions(ctx context.Context, spec *apiext.CustomResourceDefinitionSpec, t tolerance, p *field.Path) (errs field.ErrorList) {
	versions := p.Child("versions")
	perVersion := false
	for _, v := range spec.Versions {
		perVersion = perVersion || v.Subresources != nil
	}
	storage, seen := 0, make(map[string]bool)
	for i := range rules.Until(&errs, spec.Versions) {
		v, at := &spec.Versions[i], versions.Index(i)
		if v.Storage {
			storage++
		}
		seen[v.Name] = true
		if msgs := validation.IsDNS1035Label(v.Name); len(msgs) > 0 {
			errs = append(errs, field.Invalid(at.Child("name"), v.Name, strings.Join(msgs, ",")))
		}
		for _, msg := range deprecationMistakes(v.Deprecated, v.DeprecationWarning) {
			errs = append(errs, field.Invalid(at.Child("deprecationWarning"), v.DeprecationWarning, msg))
		}
		subresources := spec.Subresources
		if perVersion {
			subresources = v.Subresources
		}
		own := common{v.Schema, v.Subresources, v.AdditionalPrinterColumns, v.SelectableFields}
		errs = append(errs, own.validate(ctx, hasStatus(subresources), t, v.Name, at, at.Child("schema"))...)
	}
	errs = rules.InvalidIf(errs, len(seen) < len(spec.Versions), versions, spec.Versions, "must contain unique version names")
	errs = rules.InvalidIf(errs, storage != 1, versions, spec.Versions, "must have exactly one version marked as storage version")
	if spec.Version != "" {
		if msgs := validation.IsDNS1035Label(spec.Version); len(msgs) > 0 {
			errs = append(errs, field.Invalid(p.Child("version"), spec.Version, strings.Join(msgs, ",")))
		}
	}
	return errs
}

// common is the part of a version that may also be set once for all versions.
type common struct {
	schema       *apiext.CustomResourceValidation
	subresources *apiext.CustomResourceSubresources
	columns      []apiext.CustomResourceColumnDefinition
	selectable   []apiext.SelectableField
}

// validate checks it; version is that of its schema, or the first that has it.
func (c common) validate(ctx context.Context, status bool, t tolerance, version string, p, schema *field.Path) (errs field.ErrorList) {
	if c.schema != nil {
		errs = validateSchema(ctx, c.schema, status, t, version, schema)
	}
	errs = append(errs, validateSubresources(c.subresources, p.Child("subresources"))...)
	errs = append(errs, rules.EachPtr(c.columns, p.Child("additionalPrinterColumns"), validateColumn)...)
	if p.Root() == p { // it is for all versions
		version = ""
	}
	return append(errs, c.validateSelectable(t.release.Has(release.CustomResources133) && t.selectable.Has(version), p)...)
}

func hasStatus(s *apiext.CustomResourceSubresources) bool { return s != nil && s.Status != nil }

// deprecationMistakes returns the faults of a version's warning.
func deprecationMistakes(deprecated bool, warning *string) (msgs []string) {
	if warning == nil {
		return nil
	}
	if !deprecated {
		return []string{"can only be set for deprecated versions"}
	}
	if len(*warning) > 256 {
		msgs = append(msgs, "must be <= 256 characters long")
	}
	if *warning == "" {
		msgs = append(msgs, "must not be an empty string")
	}
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	if i := strings.IndexFunc(*warning, unprintable); i >= 0 {
		msgs = append(msgs, fmt.Sprintf("must only contain printable UTF-8 characters; non-printable character found at index %d", i))
	}
	if !utf8.ValidString(*warning) {
		msgs = append(msgs, "must only contain printable UTF-8 characters")
	}
	return msgs
}
