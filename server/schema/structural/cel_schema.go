package structural

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiserver/pkg/cel/common"
)

// celSchema is a schema for the CEL library, which requests the parts
// of a schema whenever a rule looks at a part of a value; here they are made once.
type celSchema struct {
	*model.Structural
	properties map[string]common.Schema
	items      common.Schema
	additional common.SchemaOrBool
	resource   *celSchema // the same with the fields of every resource; nil unless it is one
}

var _ common.Schema = (*celSchema)(nil)

func newCELSchema(s *structuralschema.Structural) *celSchema {
	d := &celSchema{Structural: &model.Structural{Structural: s}}
	if s.XEmbeddedResource {
		d.resource = newCELResource(s)
	}
	if s.Properties != nil {
		d.properties = make(map[string]common.Schema, len(s.Properties))
	}
	for name, p := range s.Properties {
		d.properties[name] = newCELSchema(&p)
	}
	if s.Items != nil {
		d.items = newCELSchema(s.Items)
	}
	if s.AdditionalProperties != nil {
		additional := &additionalProperties{allowed: s.AdditionalProperties.Bool}
		if s.AdditionalProperties.Structural != nil {
			additional.schema = newCELSchema(s.AdditionalProperties.Structural)
		}
		d.additional = additional
	}
	return d
}

// newCELResource describes a schema with the fields that every resource has.
func newCELResource(s *structuralschema.Structural) *celSchema {
	plain := *model.WithTypeAndObjectMeta(s)
	plain.XEmbeddedResource = false
	d := newCELSchema(&plain)
	d.Structural.Structural.XEmbeddedResource = s.XEmbeddedResource
	d.resource = d
	return d
}

// asCELSchema returns the celSchema in an interface, or nil.
func asCELSchema(s common.Schema) *celSchema {
	d, _ := s.(*celSchema)
	return d
}

// Items, Properties, AdditionalProperties and WithTypeAndObjectMeta replace those of
// model.Structural.
func (d *celSchema) Items() common.Schema                      { return d.items }
func (d *celSchema) Properties() map[string]common.Schema      { return d.properties }
func (d *celSchema) AdditionalProperties() common.SchemaOrBool { return d.additional }
func (d *celSchema) WithTypeAndObjectMeta() common.Schema      { return d.resource }

type additionalProperties struct {
	schema  common.Schema
	allowed bool
}

// Schema and Allows implement common.SchemaOrBool.
func (o *additionalProperties) Schema() common.Schema { return o.schema }
func (o *additionalProperties) Allows() bool          { return o.allowed }
