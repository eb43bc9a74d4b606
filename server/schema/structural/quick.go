package structural

import (
	"regexp"
	"slices"
	"unicode/utf8"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// quick says of values whether they are valid, and never why not: nearly all are, and
// the library that says why makes a tree of validators for each of them. It asks that
// library of whatever it does not know itself, so that the two always agree.
type quick struct {
	schema *spec.Schema // for the library
	hard   bool         // let the library decide

	types        jsonTypes // 0: any
	nullable     bool
	enum         []any
	min, max     *float64
	above, below bool // min and max are excluded
	short, long  *int64
	pattern      *regexp.Regexp
	format       string
	few, many    *int64 // items or properties
	required     []string
	properties   map[string]*quick
	values       *quick // of other properties; nil: anything
	items        *quick // nil: anything
	all, any     []*quick
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
func newQuick(s *spec.Schema) *quick {
	if s == nil {
		return nil
	}
	q := &quick{
		schema: s, nullable: s.Nullable, enum: s.Enum, required: s.Required,
		min: s.Minimum, above: s.ExclusiveMinimum, max: s.Maximum, below: s.ExclusiveMaximum,
		short: s.MinLength, long: s.MaxLength,
	}
	q.hard = len(s.OneOf) > 0 || s.Not != nil || len(s.Dependencies) > 0 || len(s.PatternProperties) > 0 ||
		s.UniqueItems || s.AdditionalItems != nil || s.MultipleOf != nil
	for _, name := range s.Type {
		q.types |= typeNames[name]
		q.hard = q.hard || typeNames[name] == 0
	}
	if s.Format != "" {
		q.hard = q.hard || q.types == 0
		if strfmt.Default.ContainsName(s.Format) {
			q.format = s.Format
		}
	}
	if s.Pattern != "" {
		var err error
		q.pattern, err = regexp.Compile(s.Pattern)
		q.hard = q.hard || err != nil
	}
	q.readParts(s)
	for i := range s.AllOf {
		q.all = append(q.all, newQuick(&s.AllOf[i]))
	}
	for i := range s.AnyOf {
		q.any = append(q.any, newQuick(&s.AnyOf[i]))
	}
	return q
}

func (q *quick) readParts(s *spec.Schema) {
	// What restricts both items and properties is rare enough.
	if (s.MinItems != nil || s.MaxItems != nil) && (s.MinProperties != nil || s.MaxProperties != nil) {
		q.hard = true
	}
	q.few, q.many = s.MinItems, s.MaxItems
	if s.MinProperties != nil || s.MaxProperties != nil {
		q.few, q.many = s.MinProperties, s.MaxProperties
		q.hard = q.hard || q.types&isArray != 0 || q.types == 0
	} else if q.few != nil || q.many != nil {
		q.hard = q.hard || q.types&isObject != 0 || q.types == 0
	}
	if s.Items != nil {
		q.items = newQuick(s.Items.Schema)
		q.hard = q.hard || len(s.Items.Schemas) > 0
	}
	if len(s.Properties) > 0 {
		q.properties = make(map[string]*quick, len(s.Properties))
		for name, p := range s.Properties {
			q.properties[name] = newQuick(&p)
		}
	}
	if s.AdditionalProperties != nil {
		q.hard = q.hard || !s.AdditionalProperties.Allows
		q.values = newQuick(s.AdditionalProperties.Schema)
	}
}

// ask has the library decide.
func (q *quick) ask(v any) bool {
	return validate.NewSchemaValidator(q.schema, nil, "", strfmt.Default).Validate(v).IsValid()
}

func (q *quick) valid(v any) bool {
	if q == nil {
		return true
	}
	if q.hard || len(q.enum) > 0 && !slices.ContainsFunc(q.enum, func(e any) bool { return sameScalar(e, v) }) {
		return q.ask(v)
	}
	switch v := v.(type) {
	case nil:
		return q.types == 0 || q.nullable || q.types&isNull != 0
	case bool:
		if !q.is(isBoolean) {
			return false
		}
	case int64:
		if !q.is(isInteger|isNumber) || !q.validInteger(v) {
			return false
		}
	case float64:
		if q.types&isNumber == 0 && q.types&isInteger != 0 {
			return q.ask(v) // it may be whole
		}
		if !q.is(isNumber) || !q.validFloat(v) {
			return false
		}
	case string:
		if !q.is(isString) || !q.validString(v) {
			return false
		}
	case []any:
		if !q.is(isArray) || !q.validItems(v) {
			return false
		}
	case map[string]any:
		if !q.is(isObject) || !q.validProperties(v) {
			return false
		}
	default:
		return q.ask(v)
	}
	return q.validTogether(v)
}

func (q *quick) is(t jsonTypes) bool { return q.types == 0 || q.types&t != 0 }

func (q *quick) validInteger(v int64) bool {
	if q.max != nil && (v > int64(*q.max) || q.below && v == int64(*q.max)) {
		return false
	}
	return q.min == nil || v >= int64(*q.min) && !(q.above && v == int64(*q.min))
}

func (q *quick) validFloat(v float64) bool {
	if q.max != nil && (v > *q.max || q.below && v >= *q.max) {
		return false
	}
	return q.min == nil || !(v < *q.min) && !(q.above && v <= *q.min)
}

func (q *quick) validString(v string) bool {
	if q.short != nil || q.long != nil {
		n := int64(utf8.RuneCountInString(v))
		if q.long != nil && n > *q.long || q.short != nil && n < *q.short {
			return false
		}
	}
	if q.pattern != nil && !q.pattern.MatchString(v) {
		return false
	}
	return q.format == "" || strfmt.Default.Validates(q.format, v)
}

func (q *quick) validCount(n int) bool {
	return (q.few == nil || int64(n) >= *q.few) && (q.many == nil || int64(n) <= *q.many)
}

func (q *quick) validItems(v []any) bool {
	if !q.validCount(len(v)) {
		return false
	}
	if q.items != nil {
		for _, item := range v {
			if !q.items.valid(item) {
				return false
			}
		}
	}
	return true
}

func (q *quick) validProperties(v map[string]any) bool {
	if !q.validCount(len(v)) {
		return false
	}
	for _, name := range q.required {
		if _, ok := v[name]; !ok {
			return false
		}
	}
	if q.properties == nil && q.values == nil {
		return true
	}
	for name, value := range v {
		p, ok := q.properties[name]
		if !ok {
			p = q.values
		}
		if !p.valid(value) {
			return false
		}
	}
	return true
}

func (q *quick) validTogether(v any) bool {
	for _, one := range q.all {
		if !one.valid(v) {
			return false
		}
	}
	return len(q.any) == 0 || slices.ContainsFunc(q.any, func(one *quick) bool { return one.valid(v) })
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
