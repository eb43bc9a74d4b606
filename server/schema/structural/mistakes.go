package structural

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// The library takes a time that grows with the square of the number of mistakes, so no
// more than mostMistakes are told of an object, or a few more. Alternatives it tries
// out whole: those of a value of more than mostTried parts are told to be broken
// without why.
const (
	mostMistakes = 200
	mostTried    = 1000
)

// mistakes says what is wrong with a value, in the words of the library. both, where
// it is not nil, tolerates what did not change.
func (q *quick) mistakes(ctx context.Context, p *field.Path, v any, both *common.CorrelatedObject) (errs field.ErrorList, complete bool) {
	if q.valid(v) {
		return nil, true
	}
	f := &finding{ctx: ctx, left: mostMistakes}
	top := &spot{f: f, q: q, both: both, top: true}
	return validation.ValidateCustomResource(p, v, found{top.Validate(v)}), f.left > 0
}

// found hands a result to the one who turns it into errors.
type found struct{ result *validate.Result }

func (f found) Validate(any, ...validation.ValidationOption) *validate.Result { return f.result }

// finding is one search for mistakes.
type finding struct {
	ctx  context.Context
	left int
}

// spot is a value inside of the one that is searched. It has the library check this
// value and call it back for its parts.
type spot struct {
	f    *finding
	q    *quick
	both *common.CorrelatedObject // nil: nothing is tolerated
	path string
	top  bool
}

var _ validate.ValueValidator = (*spot)(nil)

// SetPath and Applies belong to the library's interface; it calls neither.
func (s *spot) SetPath(path string)            { s.path = path }
func (s *spot) Applies(any, reflect.Kind) bool { return true }

// Validate finds the mistakes of a value.
func (s *spot) Validate(v any) *validate.Result {
	none := &validate.Result{}
	if s.f.left <= 0 || s.q.valid(v) {
		return none
	}
	if s.f.ctx.Err() != nil {
		s.f.left = 0
		return none
	}
	schema, told := s.q.schema, s.alternatives(v)
	if told != nil {
		only := *schema
		only.AllOf, only.AnyOf, only.OneOf, only.Not = nil, nil, nil, nil
		schema = &only
	}
	before := s.f.left
	result := validate.NewSchemaValidator(schema, nil, s.path, strfmt.Default, s.parts).Validate(v)
	result.AddErrors(told...)
	if s.both != nil && s.both.CachedDeepEqual() {
		s.f.left = before
		return none
	}
	s.f.left = before - len(result.Errors)
	return result
}

// parts makes the library ask back about parts.
func (s *spot) parts(o *validate.SchemaValidatorOptions) {
	o.NewValidatorForField = func(name string, _ *spec.Schema, _ any, path string, _ strfmt.Registry, _ ...validate.Option) validate.ValueValidator {
		part := &spot{f: s.f, q: s.q.of(name), path: path}
		// Both objects were given the same kind and version, whatever they had.
		if !(s.top && (name == "kind" || name == "apiVersion")) {
			part.both = s.both.Key(name)
		}
		return part
	}
	o.NewValidatorForIndex = func(i int, _ *spec.Schema, _ any, path string, _ strfmt.Registry, _ ...validate.Option) validate.ValueValidator {
		return &spot{f: s.f, q: s.q.item, path: path, both: s.both.Index(i)}
	}
}

// alternatives tells which of a schema's are broken, where the library would take too
// long to find out why; else nil.
func (s *spot) alternatives(v any) (told []error) {
	q := s.q
	if q.all == nil && q.any == nil && q.one == nil && q.not == nil || size(v, mostTried) < mostTried {
		return nil
	}
	told = []error{}
	tell := func(format string, more ...any) {
		told = append(told, fmt.Errorf(format, append([]any{s.path}, more...)...))
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
		tell(validate.MustValidateAllSchemasError, ". None validated")
	default:
		tell(validate.MustValidateAllSchemasError, "")
	}
	only := quick{any: q.any}
	if !only.validTogether(v) {
		tell(validate.MustValidateAtLeastOneSchemaError)
	}
	if n := q.matching(v); len(q.one) > 0 && n == 0 {
		tell(validate.MustValidateOnlyOneSchemaError, "Found none valid")
	} else if n > 1 {
		tell(validate.MustValidateOnlyOneSchemaError, fmt.Sprintf("Found %d valid alternatives", n))
	}
	if q.not != nil && q.not.valid(v) {
		tell(validate.MustNotValidateSchemaError)
	}
	return told
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
