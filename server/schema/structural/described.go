package structural

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiserver/pkg/cel/common"
)

// described is a schema as the CEL library looks at it. That library asks for the parts
// of a schema whenever a rule looks at a part of a value; here they are made once.
type described struct {
	*model.Structural
	properties map[string]common.Schema
	items      common.Schema
	others     common.SchemaOrBool
	resource   *described // the same with the fields of every resource; nil unless it is one
}

var _ common.Schema = (*described)(nil)

func describe(s *structuralschema.Structural) *described {
	d := &described{Structural: &model.Structural{Structural: s}}
	if s.XEmbeddedResource {
		d.resource = describeResource(s)
	}
	if s.Properties != nil {
		d.properties = make(map[string]common.Schema, len(s.Properties))
	}
	for name, p := range s.Properties {
		d.properties[name] = describe(&p)
	}
	if s.Items != nil {
		d.items = describe(s.Items)
	}
	if s.AdditionalProperties != nil {
		others := &otherProperties{allowed: s.AdditionalProperties.Bool}
		if s.AdditionalProperties.Structural != nil {
			others.schema = describe(s.AdditionalProperties.Structural)
		}
		d.others = others
	}
	return d
}

// describeResource describes a schema with the fields that every resource has.
func describeResource(s *structuralschema.Structural) *described {
	plain := *model.WithTypeAndObjectMeta(s)
	plain.XEmbeddedResource = false
	d := describe(&plain)
	d.Structural.Structural.XEmbeddedResource = s.XEmbeddedResource
	d.resource = d
	return d
}

// asDescribed undoes what interfaces hide; nil stays nil.
func asDescribed(s common.Schema) *described {
	d, _ := s.(*described)
	return d
}

// Items, Properties, AdditionalProperties and WithTypeAndObjectMeta stand before those
// of model.Structural.
func (d *described) Items() common.Schema                      { return d.items }
func (d *described) Properties() map[string]common.Schema      { return d.properties }
func (d *described) AdditionalProperties() common.SchemaOrBool { return d.others }
func (d *described) WithTypeAndObjectMeta() common.Schema      { return d.resource }

type otherProperties struct {
	schema  common.Schema
	allowed bool
}

// Schema and Allows implement common.SchemaOrBool.
func (o *otherProperties) Schema() common.Schema { return o.schema }
func (o *otherProperties) Allows() bool          { return o.allowed }
