package structural

import (
	"math"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// precheck recognizes objects that the library would not change or refuse, as most are. The library would copy schemas.
// When a method returns true, the library is not needed; when it returns false, it may be.
type precheck struct {
	properties map[string]*precheck
	values     *precheck // of other properties; nil: none, or unrestricted
	items      *precheck // nil: unrestricted
	keep       bool      // unknown fields
	nullable   bool
	defaulted  bool // it has a default itself
	integer    bool // numbers are whole, if it is one
	checks     int  // how many checks each value takes, besides
	fill       int  // the weight of its default, with everything then filled in below

	defaults bool // it or something in it has
	integers bool // something in it is an integer
	unique   bool // something in it has items that must differ
	list     string
	keys     []string
}

func newPrecheck(s *structuralschema.Structural) *precheck {
	if s == nil {
		return nil
	}
	out := &precheck{
		keep: s.XPreserveUnknownFields, nullable: s.Nullable, defaulted: s.Default.Object != nil, keys: s.XListMapKeys,
		integer: s.Type == "integer" || s.XIntOrString,
	}
	out.checks = checksOf(s.ValueValidation)
	if s.XListType != nil {
		out.list = *s.XListType
	}
	out.unique = out.list == "set" || out.list == "map"
	out.items = newPrecheck(s.Items)
	if s.AdditionalProperties != nil {
		out.values = newPrecheck(s.AdditionalProperties.Structural)
	}
	if len(s.Properties) > 0 {
		out.properties = make(map[string]*precheck, len(s.Properties))
	}
	for name, p := range s.Properties {
		out.properties[name] = newPrecheck(&p)
	}
	for _, p := range out.properties {
		out.include(p)
	}
	out.include(out.items)
	out.include(out.values)
	if out.defaulted {
		a := workload{left: math.MaxInt, steps: math.MaxInt}
		a.add(out, s.Default.Object)
		out.fill = min(weightOf(s.Default.Object)+math.MaxInt-a.left, tooMuch)
	}
	return out
}

func (s *precheck) include(part *precheck) {
	if part != nil {
		s.defaults = s.defaults || part.defaulted || part.defaults
		s.unique = s.unique || part.unique
		s.integers = s.integers || part.integer || part.integers
	}
}

// property returns the precheck of a property, nil for an unknown one.
func (s *precheck) property(name string) *precheck {
	if p, ok := s.properties[name]; ok {
		return p
	}
	return s.values
}

// isPruned reports whether v has neither an unknown field nor a null that is not allowed. The root of a resource has
// fields that need no schema.
func (s *precheck) isPruned(v any, top bool) bool {
	switch v := v.(type) {
	case map[string]any:
		if s == nil {
			return len(v) == 0
		}
		for name, value := range v {
			if top && (name == "metadata" || name == "kind" || name == "apiVersion") {
				continue
			}
			part := s.property(name)
			switch {
			case part == nil && s.keep && s.values == nil && s.properties[name] == nil:
				continue
			case part == nil, value == nil && !part.nullable, !part.isPruned(value, false):
				return false
			}
		}
	case []any:
		if s != nil && s.keep {
			return s.items == nil
		}
		for _, item := range v {
			var items *precheck
			if s != nil {
				items = s.items
			}
			if !items.isPruned(item, false) {
				return false
			}
		}
	}
	return true
}

// convertIntegers returns v with an int64 wherever the schema has the type integer and a whole number was written as a
// fraction or with an exponent, 3.0 or 3e0. It changes v in place.
func (s *precheck) convertIntegers(v any) any {
	switch {
	case s == nil:
	case s.integer:
		// Beyond this there is no int64 that would not be another number.
		if f, ok := v.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1<<63 {
			return int64(f)
		}
	case s.integers:
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v {
				v[name] = s.property(name).convertIntegers(value)
			}
		case []any:
			for i, item := range v {
				v[i] = s.items.convertIntegers(item)
			}
		}
	}
	return v
}

// convertDefaults does so to the defaults of the schema that s was made from.
func (s *precheck) convertDefaults(tree *structuralschema.Structural) {
	if tree == nil {
		return
	}
	tree.Default.Object = s.convertIntegers(tree.Default.Object)
	s.items.convertDefaults(tree.Items)
	if tree.AdditionalProperties != nil {
		s.values.convertDefaults(tree.AdditionalProperties.Structural)
	}
	for name, p := range tree.Properties {
		s.properties[name].convertDefaults(&p)
		tree.Properties[name] = p
	}
}

// isDefaulted reports whether v has a value wherever the schema has a default.
func (s *precheck) isDefaulted(v any) bool {
	if s == nil || !s.defaults {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for name, p := range s.properties {
			value, ok := v[name]
			if p.defaulted && (!ok || value == nil && !p.nullable) || !p.isDefaulted(value) {
				return false
			}
		}
		if s.values == nil {
			return true
		}
		for name, value := range v {
			if _, ok := s.properties[name]; !ok && (value == nil && !s.values.nullable || !s.values.isDefaulted(value)) {
				return false
			}
		}
	case []any:
		for _, item := range v {
			if item == nil || !s.items.isDefaulted(item) {
				return false
			}
		}
	}
	return true
}

// few items are compared with one another; more are put into a map.
const smallList = 16

// isUnique reports whether the items of sets and maps in v differ.
func (s *precheck) isUnique(v any) bool {
	if s == nil || !s.unique {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if !s.property(name).isUnique(value) {
				return false
			}
		}
	case []any:
		if (s.list == "set" || s.list == "map") && !s.itemsDiffer(v) {
			return false
		}
		if s.items != nil && s.items.unique {
			for _, item := range v {
				if !s.items.isUnique(item) {
					return false
				}
			}
		}
	}
	return true
}

// itemsDiffer reports whether the items of a set, or the keys of the items of a map, are scalars and all
// distinct.
func (s *precheck) itemsDiffer(items []any) bool {
	if s.list == "map" && len(s.keys) != 1 {
		return len(items) == 0
	}
	var space [smallList]any
	values := space[:0]
	var seen map[any]bool
	if len(items) > smallList {
		seen = make(map[any]bool, len(items))
	}
	for _, item := range items {
		if s.list == "map" {
			m, _ := item.(map[string]any)
			item = m[s.keys[0]]
		}
		switch item.(type) {
		case string, int64, bool, float64:
		default:
			return false
		}
		if seen != nil {
			if seen[item] {
				return false
			}
			seen[item] = true
			continue
		}
		for _, other := range values {
			if other == item {
				return false
			}
		}
		values = append(values, item)
	}
	return true
}
