package structural

import (
	"math"
	"regexp"
	"slices"
	"sync"
	"unicode/utf8"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/rowlock/rowlock/server/release"
)

// checker reports whether values are valid, but not why: nearly all are valid, and the library that explains
// makes a tree of validators for each of them, and compares each error with all others. The checker leaves
// any case that is not plain to the library, so that the two always agree.
type checker struct {
	schema *spec.Schema

	types      jsonTypes // 0: any
	nullable   bool
	ranges     bool // see maker
	enum       []any
	delegate   bool // validate every value by the library
	format     string
	pattern    func() *regexp.Regexp // nil: there is none
	required   []string
	properties map[string]*checker
	values     *checker // of other properties; nil: anything
	closed     bool     // there are no other properties
	item       *checker // nil: anything

	all, any, one []*checker
	not           *checker
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

// newChecker reads a schema; for nil, all values are valid.
func newChecker(s *spec.Schema, v release.Version) *checker { return newMaker(v).checker(s) }

// patterns are the patterns of a schema, compiled on first use, as they can be large, and once, as many fields have the
// same.
type patterns map[string]func() *regexp.Regexp

// maker makes the checkers of a schema.
type maker struct {
	patterns patterns
	ranges   bool // numbers must be within the range of their format
}

func newMaker(v release.Version) maker {
	return maker{patterns{}, v.Has(release.NumberRanges)}
}

func (p patterns) compiled(pattern string) func() *regexp.Regexp {
	if p[pattern] == nil {
		p[pattern] = sync.OnceValue(func() *regexp.Regexp {
			re, err := regexp.Compile(pattern)
			if err != nil {
				return nil
			}
			return re
		})
	}
	return p[pattern]
}

func (p maker) checker(s *spec.Schema) *checker {
	if s == nil {
		return nil
	}
	q := &checker{
		schema: s, ranges: p.ranges, nullable: s.Nullable, enum: s.Enum, required: s.Required, delegate: s.UniqueItems || s.MultipleOf != nil,
		all: p.checkers(s.AllOf), any: p.checkers(s.AnyOf), one: p.checkers(s.OneOf), not: p.checker(s.Not),
	}
	for _, name := range s.Type {
		q.types |= typeNames[name]
		q.delegate = q.delegate || typeNames[name] == 0
	}
	if s.Format != "" {
		q.delegate = q.delegate || q.types != isString
		q.format = s.Format
	}
	if q.ranges && q.types == isInteger {
		q.delegate = q.delegate || !isWhole(s.Minimum) || !isWhole(s.Maximum)
	}
	if s.Pattern != "" {
		q.pattern = p.patterns.compiled(s.Pattern)
	}
	if s.Items != nil {
		q.item = p.checker(s.Items.Schema)
	}
	if len(s.Properties) > 0 {
		q.properties = make(map[string]*checker, len(s.Properties))
	}
	for name, property := range s.Properties {
		q.properties[name] = p.checker(&property)
	}
	if s.AdditionalProperties != nil {
		q.closed = !s.AdditionalProperties.Allows
		q.values = p.checker(s.AdditionalProperties.Schema)
	}
	return q
}

func (p maker) checkers(schemas []spec.Schema) (out []*checker) {
	for i := range schemas {
		out = append(out, p.checker(&schemas[i]))
	}
	return out
}

// isWhole reports whether a bound, if there is one, is an integer. Where it is not, the library refuses all integers.
func isWhole(bound *float64) bool {
	return bound == nil || *bound == math.Trunc(*bound) && *bound >= -1<<63 && *bound < 1<<63
}

// property returns the checker of a property; nil: it may be anything.
func (q *checker) property(name string) *checker {
	if p, ok := q.properties[name]; ok {
		return p
	}
	return q.values
}

func (q *checker) valid(v any) bool {
	if q == nil {
		return true
	}
	if !q.validLocally(v) {
		return false
	}
	switch v := v.(type) {
	case nil: // alternatives do not apply to it
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
			if _, ok := q.properties[name]; !ok && q.closed || !q.property(name).valid(value) {
				return false
			}
		}
	}
	return q.validAlternatives(v)
}

// validLocally reports whether a value is valid but for its parts.
func (q *checker) validLocally(v any) bool {
	if _, text := v.(string); q.delegate || q.format != "" && !text || len(q.enum) > 0 && !slices.ContainsFunc(q.enum, func(e any) bool { return sameScalar(e, v) }) {
		return q.validateWithLibrary(v)
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
			return q.validateWithLibrary(v)
		}
		return q.validFloat(v)
	case string:
		return q.is(isString) && q.validString(v)
	case []any:
		return q.is(isArray) && within(len(v), q.schema.MinItems, q.schema.MaxItems)
	case map[string]any:
		return q.is(isObject) && within(len(v), q.schema.MinProperties, q.schema.MaxProperties)
	}
	return q.validateWithLibrary(v)
}

// validateWithLibrary validates a value without its parts by the library. It does not cache the validator: a schema
// takes some 700 bytes, and its validator several times that.
func (q *checker) validateWithLibrary(v any) bool {
	local := *q.schema
	local.Properties, local.AdditionalProperties, local.Required, local.Items = nil, nil, nil, nil
	local.AllOf, local.AnyOf, local.OneOf, local.Not = nil, nil, nil, nil
	result := validate.NewSchemaValidator(&local, nil, "", strfmt.Default).Validate(v)
	if !q.ranges {
		dropRanges(result)
	}
	return result.IsValid()
}

func (q *checker) is(t jsonTypes) bool { return q.types == 0 || q.types&t != 0 }

func (q *checker) validInteger(v int64) bool {
	s := q.schema
	if s.Maximum != nil && (v > int64(*s.Maximum) || s.ExclusiveMaximum && v == int64(*s.Maximum)) {
		return false
	}
	return s.Minimum == nil || v >= int64(*s.Minimum) && !(s.ExclusiveMinimum && v == int64(*s.Minimum))
}

func (q *checker) validFloat(v float64) bool {
	s := q.schema
	if s.Maximum != nil && (v > *s.Maximum || s.ExclusiveMaximum && v >= *s.Maximum) {
		return false
	}
	return s.Minimum == nil || v >= *s.Minimum && !(s.ExclusiveMinimum && v <= *s.Minimum)
}

func (q *checker) validString(v string) bool {
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

// validAlternatives holds a value against the alternatives.
func (q *checker) validAlternatives(v any) bool {
	for _, one := range q.all {
		if !one.valid(v) {
			return false
		}
	}
	if len(q.any) > 0 && !slices.ContainsFunc(q.any, func(one *checker) bool { return one.valid(v) }) {
		return false
	}
	if len(q.one) > 0 && q.matching(v) != 1 {
		return false
	}
	return q.not == nil || !q.not.valid(v)
}

// matching counts the schemas of which only one should be valid for a value.
func (q *checker) matching(v any) (n int) {
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
