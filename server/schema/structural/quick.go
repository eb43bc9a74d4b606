package structural

import (
	"regexp"
	"slices"
	"sync"
	"unicode/utf8"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// quick says whether values are valid, and never why not: nearly all are, and the
// library that says why makes a tree of validators for each of them, and compares each
// mistake with all others. What a value may be by itself it asks the library wherever
// that is not plain, so that the two always agree.
type quick struct {
	schema *spec.Schema
	alone  *spec.Schema // what it says of a value without its parts

	types      jsonTypes // 0: any
	nullable   bool
	enum       []any
	odd        bool // ask the library of every value
	format     string
	pattern    func() *regexp.Regexp // nil: there is none
	required   []string
	properties map[string]*quick
	values     *quick // of other properties; nil: anything
	closed     bool   // there are no other properties
	item       *quick // nil: anything

	all, any, one []*quick
	not           *quick
}

type jsonTypes uint8

const (
	isNull jsonTypes = 1 << iota
	isBoolean
	isInteger
	isNumber
	isString
	isArray
	isObject
)

var typeNames = map[string]jsonTypes{
	"null": isNull, "boolean": isBoolean, "integer": isInteger, "number": isNumber, "string": isString, "array": isArray, "object": isObject,
}

// newQuick reads a schema; nil is one that all values are valid against.
func newQuick(s *spec.Schema) *quick { return patterns{}.quick(s) }

// patterns are those of a schema. They are compiled when they are needed, for they can
// be large, and once, for many fields have the same.
type patterns map[string]func() *regexp.Regexp

func (of patterns) compiled(pattern string) func() *regexp.Regexp {
	if of[pattern] == nil {
		of[pattern] = sync.OnceValue(func() *regexp.Regexp {
			re, err := regexp.Compile(pattern)
			if err != nil {
				return nil
			}
			return re
		})
	}
	return of[pattern]
}

func (of patterns) quick(s *spec.Schema) *quick {
	if s == nil {
		return nil
	}
	alone := *s
	alone.Properties, alone.AdditionalProperties, alone.Required, alone.Items = nil, nil, nil, nil
	alone.AllOf, alone.AnyOf, alone.OneOf, alone.Not = nil, nil, nil, nil
	q := &quick{
		schema: s, alone: &alone, nullable: s.Nullable, enum: s.Enum, required: s.Required, odd: s.UniqueItems || s.MultipleOf != nil,
		all: of.quicks(s.AllOf), any: of.quicks(s.AnyOf), one: of.quicks(s.OneOf), not: of.quick(s.Not),
	}
	for _, name := range s.Type {
		q.types |= typeNames[name]
		q.odd = q.odd || typeNames[name] == 0
	}
	if s.Format != "" {
		q.odd = q.odd || q.types != isString
		q.format = s.Format
	}
	if s.Pattern != "" {
		q.pattern = of.compiled(s.Pattern)
	}
	if s.Items != nil {
		q.item = of.quick(s.Items.Schema)
	}
	if len(s.Properties) > 0 {
		q.properties = make(map[string]*quick, len(s.Properties))
	}
	for name, p := range s.Properties {
		q.properties[name] = of.quick(&p)
	}
	if s.AdditionalProperties != nil {
		q.closed = !s.AdditionalProperties.Allows
		q.values = of.quick(s.AdditionalProperties.Schema)
	}
	return q
}

func (of patterns) quicks(schemas []spec.Schema) (out []*quick) {
	for i := range schemas {
		out = append(out, of.quick(&schemas[i]))
	}
	return out
}

// of is what says of a property; nil: it may be anything.
func (q *quick) of(name string) *quick {
	if p, ok := q.properties[name]; ok {
		return p
	}
	return q.values
}

func (q *quick) valid(v any) bool {
	if q == nil {
		return true
	}
	if !q.validAlone(v) {
		return false
	}
	switch v := v.(type) {
	case nil: // alternatives are not asked about it
		return true
	case []any:
		if q.item == nil {
			break
		}
		for _, item := range v {
			if !q.item.valid(item) {
				return false
			}
		}
	case map[string]any:
		for _, name := range q.required {
			if _, ok := v[name]; !ok {
				return false
			}
		}
		if q.properties == nil && q.values == nil && !q.closed {
			break
		}
		for name, value := range v {
			if _, ok := q.properties[name]; !ok && q.closed || !q.of(name).valid(value) {
				return false
			}
		}
	}
	return q.validTogether(v)
}

// validAlone says whether a value is valid but for its parts.
func (q *quick) validAlone(v any) bool {
	if _, text := v.(string); q.odd || q.format != "" && !text || len(q.enum) > 0 && !slices.ContainsFunc(q.enum, func(e any) bool { return sameScalar(e, v) }) {
		return q.ask(v)
	}
	switch v := v.(type) {
	case nil:
		return q.types == 0 || q.nullable || q.types&isNull != 0
	case bool:
		return q.is(isBoolean)
	case int64:
		return q.is(isInteger|isNumber) && q.validInteger(v)
	case float64:
		if !q.is(isNumber) { // it may be whole
			return q.ask(v)
		}
		return q.validFloat(v)
	case string:
		return q.is(isString) && q.validString(v)
	case []any:
		return q.is(isArray) && within(len(v), q.schema.MinItems, q.schema.MaxItems)
	case map[string]any:
		return q.is(isObject) && within(len(v), q.schema.MinProperties, q.schema.MaxProperties)
	}
	return q.ask(v)
}

// ask has the library decide.
func (q *quick) ask(v any) bool {
	return validate.NewSchemaValidator(q.alone, nil, "", strfmt.Default).Validate(v).IsValid()
}

func (q *quick) is(t jsonTypes) bool { return q.types == 0 || q.types&t != 0 }

func (q *quick) validInteger(v int64) bool {
	s := q.schema
	if s.Maximum != nil && (v > int64(*s.Maximum) || s.ExclusiveMaximum && v == int64(*s.Maximum)) {
		return false
	}
	return s.Minimum == nil || v >= int64(*s.Minimum) && !(s.ExclusiveMinimum && v == int64(*s.Minimum))
}

func (q *quick) validFloat(v float64) bool {
	s := q.schema
	if s.Maximum != nil && (v > *s.Maximum || s.ExclusiveMaximum && v >= *s.Maximum) {
		return false
	}
	return s.Minimum == nil || v >= *s.Minimum && !(s.ExclusiveMinimum && v <= *s.Minimum)
}

func (q *quick) validString(v string) bool {
	s := q.schema
	if (s.MinLength != nil || s.MaxLength != nil) && !within(utf8.RuneCountInString(v), s.MinLength, s.MaxLength) {
		return false
	}
	if q.pattern != nil {
		if re := q.pattern(); re == nil || !re.MatchString(v) { // an invalid one matches nothing
			return false
		}
	}
	return q.format == "" || !strfmt.Default.ContainsName(q.format) || strfmt.Default.Validates(q.format, v)
}

func within(n int, least, most *int64) bool {
	return (least == nil || int64(n) >= *least) && (most == nil || int64(n) <= *most)
}

// validTogether holds a value against the alternatives.
func (q *quick) validTogether(v any) bool {
	for _, one := range q.all {
		if !one.valid(v) {
			return false
		}
	}
	if len(q.any) > 0 && !slices.ContainsFunc(q.any, func(one *quick) bool { return one.valid(v) }) {
		return false
	}
	if len(q.one) > 0 && q.matching(v) != 1 {
		return false
	}
	return q.not == nil || !q.not.valid(v)
}

// matching counts the schemas of which only one should be valid for a value.
func (q *quick) matching(v any) (n int) {
	for _, one := range q.one {
		if one.valid(v) {
			n++
		}
	}
	return n
}

// sameScalar compares two values of which one is a string, an integer or a boolean.
func sameScalar(a, b any) bool {
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return ok && a == b
	case int64:
		b, ok := b.(int64)
		return ok && a == b
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	}
	return false
}
