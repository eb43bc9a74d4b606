// Package structural applies the schema of a custom resource's version to objects: it prunes unknown fields, sets
// defaults and validates, with the error messages of release 1.32.
//
// A Schema is immutable and safe for concurrent use. Objects are trees of map[string]any, []any, string, bool, int64,
// float64 and nil; methods change and retain no other object than they document, and never panic. CEL rules are
// compiled when the first write needs them.
package structural

import (
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/rowlock/rowlock/server/release"
)

// Schema is the schema of one version of a custom resource.
type Schema struct {
	tree   *structuralschema.Structural // nil: everything is valid
	object func() *checker
	status func() *checker // nil: the schema has no status
	scale  *apiextensionsv1.CustomResourceSubresourceScale

	broken   error // why the schema could not be read
	release  release.Version
	preserve bool // keep unknown fields
	embedded bool // there are resources in the resource
	precheck *precheck

	celSchema func() *celSchema
	rules     func() *ruleTree // nil where there are none
}

// Compile compiles now the parts that are otherwise compiled at their first use.
func (s *Schema) Compile() {
	if s.object != nil {
		s.object()
	}
	if s.status != nil {
		s.status()
	}
	if s.rules != nil {
		s.rules()
	}
}

// embeds reports whether there are resources in the values of a schema.
func embeds(s *structuralschema.Structural) bool {
	if s == nil {
		return false
	}
	for _, p := range s.Properties {
		if embeds(&p) {
			return true
		}
	}
	return s.XEmbeddedResource || embeds(s.Items) || s.AdditionalProperties != nil && embeds(s.AdditionalProperties.Structural)
}

// newValues makes the validator of values, when it is needed.
func newValues(props *apiextensions.JSONSchemaProps, v release.Version) (func() *checker, error) {
	schema, err := openAPIOf(props, v)
	if err != nil {
		return nil, err
	}
	return sync.OnceValue(func() *checker { return newChecker(schema, v) }), nil
}

// openAPIOf converts a schema for the library that validates values. It keeps only the formats of the release; nil props
// allow every value.
func openAPIOf(props *apiextensions.JSONSchemaProps, v release.Version) (*spec.Schema, error) {
	schema := &spec.Schema{}
	if props == nil {
		return schema, nil
	}
	strip := validation.StripUnsupportedFormatsPostProcessorForVersion(version.MajorMinor(uint(v.Major()), uint(v.MinCompatibility().Minor())))
	if !v.Has(release.FormatsByType) {
		byType := strip
		strip = func(s *spec.Schema) error {
			untyped := spec.Schema{SchemaProps: spec.SchemaProps{Format: s.Format}}
			err := byType(&untyped)
			s.Format = untyped.Format
			return err
		}
	}
	if err := validation.ConvertJSONSchemaPropsWithPostProcess(props, schema, strip); err != nil {
		return nil, err
	}
	return schema, nil
}

// New returns the schema of a version. preserveUnknown disables pruning, as definitions of apiextensions/v1beta1 could.
// of is the release whose rules apply to objects. An error means that the version is invalid.
func New(v *apiextensionsv1.CustomResourceDefinitionVersion, preserveUnknown bool, of release.Version) (*Schema, error) {
	props, err := propsOf(v)
	if err != nil {
		return nil, err
	}
	s := &Schema{preserve: preserveUnknown, release: of, rules: func() *ruleTree { return nil }}
	if err := s.build(props); err != nil {
		return nil, fmt.Errorf("read the schema of version %s: %w", v.Name, err)
	}
	if v.Subresources != nil {
		s.scale = v.Subresources.Scale.DeepCopy()
	}
	return s, nil
}

// Broken returns the schema of a version whose schema cannot be read: it accepts no object.
func Broken(err error) *Schema { return &Schema{broken: err} }

// propsOf returns the schema of a version in the libraries' type; nil if there is none.
func propsOf(v *apiextensionsv1.CustomResourceDefinitionVersion) (*apiextensions.JSONSchemaProps, error) {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, nil
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, props, nil); err != nil {
		return nil, fmt.Errorf("convert the schema of version %s: %w", v.Name, err)
	}
	return props, nil
}

func (s *Schema) build(props *apiextensions.JSONSchemaProps) (err error) {
	if s.object, err = newValues(props, s.release); err != nil || props == nil {
		return err
	}
	if status, ok := props.Properties["status"]; ok {
		if s.status, err = newValues(&status, s.release); err != nil {
			return err
		}
	}
	if err := s.buildTree(props); err != nil || s.tree == nil {
		return err
	}
	s.embedded, s.precheck = embeds(s.tree), newPrecheck(s.tree)
	s.precheck.convertDefaults(s.tree)
	s.celSchema = sync.OnceValue(func() *celSchema { return newCELSchema(s.tree) })
	s.rules = sync.OnceValue(func() *ruleTree { return compileRules(s.tree, s.celSchema()) })
	return nil
}

// buildTree makes the schema as a tree; a schema that need not be structural has none.
func (s *Schema) buildTree(props *apiextensions.JSONSchemaProps) error {
	if props == nil {
		return nil
	}
	tree, err := structuralschema.NewStructural(props)
	if err != nil {
		if s.preserve { // such schemas need not be structural
			return nil
		}
		return err
	}
	s.tree = tree.DeepCopy() // it shares defaults with props
	if s.preserve {
		return nil
	}
	return defaulting.PruneDefaults(s.tree)
}
