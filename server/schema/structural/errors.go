package structural

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// The library takes a time that grows with the square of the number of errors, so little more than maxErrors
// errors are reported for an object. It tries alternatives as a whole: for a value of more than maxTried
// parts the error only states that they do not hold, without reasons.
const (
	maxErrors = 200
	maxTried  = 1000
)

// findErrors returns the faults of a value, in the words of the library. If correlated is not nil, unchanged
// parts are tolerated. The result is not complete if there are more errors than are reported.
func (q *checker) findErrors(ctx context.Context, p *field.Path, v any, correlated *common.CorrelatedObject) (errs field.ErrorList, complete bool) {
	if q.valid(v) {
		return nil, true
	}
	f := &errorSearch{ctx: ctx, left: maxErrors}
	top := &partValidator{f: f, q: q, correlated: correlated, top: true}
	return validation.ValidateCustomResource(p, v, fixedResult{top.Validate(v)}), f.left > 0
}

// fixedResult gives a result to the part of the library that turns it into errors.
type fixedResult struct{ result *validate.Result }

func (f fixedResult) Validate(any, ...validation.ValidationOption) *validate.Result { return f.result }

// errorSearch is one search for errors.
type errorSearch struct {
	ctx  context.Context
	left int
}

// partValidator validates one value in the object: the library checks the value itself
// and calls back for its parts.
type partValidator struct {
	f          *errorSearch
	q          *checker
	correlated *common.CorrelatedObject // nil: nothing is tolerated
	path       string
	top        bool
}

var _ validate.ValueValidator = (*partValidator)(nil)

// SetPath and Applies belong to the library's interface; it calls neither.
func (s *partValidator) SetPath(path string)            { s.path = path }
func (s *partValidator) Applies(any, reflect.Kind) bool { return true }

// Validate finds the errors of a value.
func (s *partValidator) Validate(v any) *validate.Result {
	none := &validate.Result{}
	if s.f.left <= 0 || s.q.valid(v) {
		return none
	}
	if s.f.ctx.Err() != nil {
		s.f.left = 0
		return none
	}
	schema, failures := s.q.schema, s.alternatives(v)
	if failures != nil {
		only := *schema
		only.AllOf, only.AnyOf, only.OneOf, only.Not = nil, nil, nil, nil
		schema = &only
	}
	before := s.f.left
	result := validate.NewSchemaValidator(schema, nil, s.path, strfmt.Default, s.parts).Validate(v)
	if !s.q.ranges {
		dropRanges(result)
	}
	result.AddErrors(failures...)
	if s.correlated != nil && s.correlated.CachedDeepEqual() {
		s.f.left = before
		return none
	}
	s.f.left = before - len(result.Errors)
	return result
}

// outOfRange matches the library's errors for numbers outside the range of their format, and for
// values that are no numbers.
var outOfRange = regexp.MustCompile(`^(Checked|MultipleOf|Maximum boundary|Minimum boundary) value (must be of type (integer|number) (with format|\(default format\))|number range checking called with invalid)`)

// dropRanges removes those from a result.
func dropRanges(r *validate.Result) {
	r.Errors = slices.DeleteFunc(r.Errors, func(err error) bool { return outOfRange.MatchString(err.Error()) })
}

// parts has the library validate properties and items with a partValidator.
func (s *partValidator) parts(o *validate.SchemaValidatorOptions) {
	o.NewValidatorForField = func(name string, _ *spec.Schema, _ any, path string, _ strfmt.Registry, _ ...validate.Option) validate.ValueValidator {
		part := &partValidator{f: s.f, q: s.q.property(name), path: path}
		// Both objects have the same kind and version now.
		if !(s.top && (name == "kind" || name == "apiVersion")) {
			part.correlated = s.correlated.Key(name)
		}
		return part
	}
	o.NewValidatorForIndex = func(i int, _ *spec.Schema, _ any, path string, _ strfmt.Registry, _ ...validate.Option) validate.ValueValidator {
		return &partValidator{f: s.f, q: s.q.item, path: path, correlated: s.correlated.Index(i)}
	}
}

// alternatives returns which of allOf, anyOf, oneOf and not do not hold, where the library
// would take too long to find out why. Nil leaves it to the library.
func (s *partValidator) alternatives(v any) (failures []error) {
	q := s.q
	if q.all == nil && q.any == nil && q.one == nil && q.not == nil || size(v, maxTried) < maxTried {
		return nil
	}
	failures = []error{}
	fail := func(format string, more ...any) {
		failures = append(failures, fmt.Errorf(format, append([]any{s.path}, more...)...))
	}
	passed := 0
	for _, one := range q.all {
		if one.valid(v) {
			passed++
		}
	}
	switch {
	case passed == len(q.all):
	case passed == 0:
		fail(validate.MustValidateAllSchemasError, ". None validated")
	default:
		fail(validate.MustValidateAllSchemasError, "")
	}
	only := checker{any: q.any}
	if !only.validAlternatives(v) {
		fail(validate.MustValidateAtLeastOneSchemaError)
	}
	if n := q.matching(v); len(q.one) > 0 && n == 0 {
		fail(validate.MustValidateOnlyOneSchemaError, "Found none valid")
	} else if n > 1 {
		fail(validate.MustValidateOnlyOneSchemaError, fmt.Sprintf("Found %d valid alternatives", n))
	}
	if q.not != nil && q.not.valid(v) {
		fail(validate.MustNotValidateSchemaError)
	}
	return failures
}

// size counts the parts of a value, up to a limit.
func size(v any, limit int) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, part := range v {
			if n += size(part, limit-n); n >= limit {
				break
			}
		}
	case []any:
		for _, part := range v {
			if n += size(part, limit-n); n >= limit {
				break
			}
		}
	}
	return n
}
