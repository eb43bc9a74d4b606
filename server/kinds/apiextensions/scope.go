package apiextensions

import (
	"errors"
	"math"
	"math/bits"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// scope is the context of a schema's rules: the type, and the maximum number of its values in an object. A
// nil scope has nil parts.
type scope struct {
	parent *scope
	schema *apiext.JSONSchemaProps // nil where there is none to check
	ruled  bool                    // it has rules, or something above it has
	most   *uint64                 // how often at most; nil: without a limit

	// inside finds the type as a part of the parent's, which is cheaper than making
	// it; nil if there is none.
	inside func(*celTypes) *celTypes
	made   *celTypes
}

// celTypes is a schema in the forms that rules are compiled against.
type celTypes struct {
	tree *structuralschema.Structural
	decl *apiservercel.DeclType
}

func rootScope(s *apiext.JSONSchemaProps) *scope {
	return &scope{schema: s, ruled: len(s.XValidations) > 0, most: new(uint64(1))}
}

func (c *scope) part(s *apiext.JSONSchemaProps, inside func(*celTypes) *celTypes) *scope {
	if c == nil {
		return nil
	}
	below := &scope{parent: c, schema: s, ruled: c.ruled || s != nil && len(s.XValidations) > 0, inside: inside}
	if c.schema != nil && c.most != nil {
		if n := parts(c.schema); n != nil {
			below.most = new(product(*c.most, *n))
		}
	}
	return below
}

func (c *scope) property(s *apiext.JSONSchemaProps, name string) *scope {
	return c.part(s, func(of *celTypes) *celTypes {
		escaped, ok := apiservercel.Escape(name)
		if !ok {
			return nil
		}
		tree, known := of.tree.Properties[name]
		f, typed := of.decl.Fields[escaped]
		if !known || !typed {
			return nil
		}
		return &celTypes{&tree, f.Type}
	})
}

func (c *scope) values(s *apiext.JSONSchemaProps) *scope {
	return c.part(s, func(of *celTypes) *celTypes {
		if of.tree.AdditionalProperties == nil {
			return nil
		}
		return &celTypes{of.tree.AdditionalProperties.Structural, of.decl.ElemType}
	})
}

func (c *scope) items(s *apiext.JSONSchemaProps) *scope {
	return c.part(s, func(of *celTypes) *celTypes {
		if of.tree.Items == nil {
			return nil
		}
		return &celTypes{of.tree.Items, of.decl.ElemType}
	})
}

// types makes the type of a schema that has rules, or of values that they read.
func (c *scope) types() (*celTypes, error) {
	if c.made != nil {
		return c.made, nil
	}
	if c.parent != nil && c.parent.ruled {
		above, err := c.parent.types()
		if err != nil {
			return nil, err
		}
		if c.made = c.inside(above); c.made != nil && c.made.tree != nil && c.made.decl != nil {
			return c.made, nil
		}
	}
	tree, err := structuralschema.NewStructural(c.schema)
	if err != nil {
		return nil, err
	}
	if tree == nil {
		return nil, errors.New("there is no schema")
	}
	decl := model.SchemaDeclType(tree, c.parent == nil || c.schema.XEmbeddedResource)
	if decl == nil {
		return nil, errors.New("unable to convert structural schema to CEL declarations")
	}
	c.made = &celTypes{tree, decl}
	return c.made, nil
}

// parts returns how many parts of one schema a value can have, nil for any number.
func parts(s *apiext.JSONSchemaProps) *uint64 {
	one := uint64(1)
	limit := &one // fields are there once
	switch {
	case s.Type == "array":
		limit = atMost(s.MaxItems)
	case s.Type == "object" && s.AdditionalProperties != nil:
		limit = atMost(s.MaxProperties)
	}
	return limit
}

func atMost(n *int64) *uint64 {
	if n == nil {
		return nil
	}
	return new(uint64(max(*n, 0)))
}

// product returns a times b, or the greatest number there is.
func product(a, b uint64) uint64 {
	if high, low := bits.Mul64(a, b); high == 0 {
		return low
	}
	return math.MaxUint64
}
