package structural

import (
	"math"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// shape answers whether there is anything for the library to do with an object: it
// copies schemas as it goes, and most objects need nothing. Its yes is certain, its no
// is not.
type shape struct {
	properties map[string]*shape
	values     *shape // of other properties; nil: none, or whatever they are
	items      *shape // nil: whatever they are
	keep       bool   // fields that the schema does not know
	nullable   bool
	defaulted  bool // it has a default itself
	integer    bool // numbers are whole, if it is one
	checks     int  // what each value is held against, besides
	fill       int  // what its default weighs, with all that is then filled in below

	defaults bool // it or something in it has
	integers bool // something in it is an integer
	unique   bool // something in it has items that must differ
	list     string
	keys     []string
}

func newShape(s *structuralschema.Structural) *shape {
	if s == nil {
		return nil
	}
	out := &shape{
		keep: s.XPreserveUnknownFields, nullable: s.Nullable, defaulted: s.Default.Object != nil, keys: s.XListMapKeys,
		integer: s.Type == "integer" || s.XIntOrString,
	}
	out.checks = checksOf(s.ValueValidation)
	if s.XListType != nil {
		out.list = *s.XListType
	}
	out.unique = out.list == "set" || out.list == "map"
	out.items = newShape(s.Items)
	if s.AdditionalProperties != nil {
		out.values = newShape(s.AdditionalProperties.Structural)
	}
	if len(s.Properties) > 0 {
		out.properties = make(map[string]*shape, len(s.Properties))
	}
	for name, p := range s.Properties {
		out.properties[name] = newShape(&p)
	}
	for _, p := range out.properties {
		out.takeOver(p)
	}
	out.takeOver(out.items)
	out.takeOver(out.values)
	if out.defaulted {
		a := addition{left: math.MaxInt, steps: math.MaxInt}
		a.value(out, s.Default.Object)
		out.fill = min(weightOf(s.Default.Object)+math.MaxInt-a.left, tooMuch)
	}
	return out
}

func (s *shape) takeOver(part *shape) {
	if part != nil {
		s.defaults = s.defaults || part.defaulted || part.defaults
		s.unique = s.unique || part.unique
		s.integers = s.integers || part.integer || part.integers
	}
}

// of is the shape of a property, nil for one that the schema does not know.
func (s *shape) of(name string) *shape {
	if p, ok := s.properties[name]; ok {
		return p
	}
	return s.values
}

// settled says that v has neither a field that the schema does not know nor a null that
// may not stand. The top of a resource has fields that no schema need know.
func (s *shape) settled(v any, top bool) bool {
	switch v := v.(type) {
	case map[string]any:
		if s == nil {
			return len(v) == 0
		}
		for name, value := range v {
			if top && (name == "metadata" || name == "kind" || name == "apiVersion") {
				continue
			}
			part := s.of(name)
			switch {
			case part == nil && s.keep && s.values == nil && s.properties[name] == nil:
				continue
			case part == nil, value == nil && !part.nullable, !part.settled(value, false):
				return false
			}
		}
	case []any:
		if s != nil && s.keep {
			return s.items == nil
		}
		for _, item := range v {
			var items *shape
			if s != nil {
				items = s.items
			}
			if !items.settled(item, false) {
				return false
			}
		}
	}
	return true
}

// whole gives v with int64 wherever the schema wants an integer and a whole number was
// written as a fraction or with an exponent, 3.0 or 3e0. What v holds may change.
func (s *shape) whole(v any) any {
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
				v[name] = s.of(name).whole(value)
			}
		case []any:
			for i, item := range v {
				v[i] = s.items.whole(item)
			}
		}
	}
	return v
}

// wholeDefaults does that to the defaults of a schema whose shape s is.
func (s *shape) wholeDefaults(tree *structuralschema.Structural) {
	if tree == nil {
		return
	}
	tree.Default.Object = s.whole(tree.Default.Object)
	s.items.wholeDefaults(tree.Items)
	if tree.AdditionalProperties != nil {
		s.values.wholeDefaults(tree.AdditionalProperties.Structural)
	}
	for name, p := range tree.Properties {
		s.properties[name].wholeDefaults(&p)
		tree.Properties[name] = p
	}
}

// complete says that v has a value wherever the schema has a default.
func (s *shape) complete(v any) bool {
	if s == nil || !s.defaults {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for name, p := range s.properties {
			value, ok := v[name]
			if p.defaulted && (!ok || value == nil && !p.nullable) || !p.complete(value) {
				return false
			}
		}
		if s.values == nil {
			return true
		}
		for name, value := range v {
			if _, ok := s.properties[name]; !ok && (value == nil && !s.values.nullable || !s.values.complete(value)) {
				return false
			}
		}
	case []any:
		for _, item := range v {
			if item == nil || !s.items.complete(item) {
				return false
			}
		}
	}
	return true
}

// few items are compared with one another; more are put into a map.
const few = 16

// distinct says that the items of sets and maps in v differ.
func (s *shape) distinct(v any) bool {
	if s == nil || !s.unique {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if !s.of(name).distinct(value) {
				return false
			}
		}
	case []any:
		if (s.list == "set" || s.list == "map") && !s.differ(v) {
			return false
		}
		if s.items != nil && s.items.unique {
			for _, item := range v {
				if !s.items.distinct(item) {
					return false
				}
			}
		}
	}
	return true
}

// differ says that the items of a set, or the keys of those of a map, are scalars and
// that no two are the same.
func (s *shape) differ(items []any) bool {
	if s.list == "map" && len(s.keys) != 1 {
		return len(items) == 0
	}
	var space [few]any
	values := space[:0]
	var seen map[any]bool
	if len(items) > few {
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
