package structural

import (
	"context"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/request"
)

// Validate returns the faults of an object; old is the object that it replaces, nil for a new one. Faults
// that old already had are tolerated: values that did not change are not held against the schema, and rules
// that they break become warnings of the request that ctx carries. The caller checks metadata, kind and
// apiVersion: found are the faults of these, which are returned too, and may mean that rules cannot be run.
func (s *Schema) Validate(ctx context.Context, found field.ErrorList, obj, old map[string]any) field.ErrorList {
	if s.broken != nil {
		return append(found, field.InternalError(nil, s.broken))
	}
	// Both values and rules use this comparison.
	var correlated *common.CorrelatedObject
	if old != nil && s.tree != nil && (s.rules() != nil || !s.object().valid(obj)) {
		correlated = common.NewCorrelatedObject(obj, old, s.celSchema())
	}
	errs, complete := s.object().findErrors(ctx, nil, obj, correlated)
	errs = append(append(found, errs...), s.validateScale(obj)...)
	return s.validateRest(ctx, errs, complete, obj, old, correlated)
}

// ValidateOther is Validate for an object with another kind or version, found: it does not validate values by the
// schema, but checks lists and rules.
func (s *Schema) ValidateOther(ctx context.Context, found field.ErrorList, obj, old map[string]any) field.ErrorList {
	if s.broken != nil {
		return append(found, field.InternalError(nil, s.broken))
	}
	var correlated *common.CorrelatedObject
	if old != nil && s.tree != nil && s.rules() != nil {
		correlated = common.NewCorrelatedObject(obj, old, s.celSchema())
	}
	return s.validateRest(ctx, found, true, obj, old, correlated)
}

// validateRest makes the checks that concern more than single values: embedded objects, lists, and rules.
func (s *Schema) validateRest(ctx context.Context, errs field.ErrorList, complete bool, obj, old map[string]any, correlated *common.CorrelatedObject) field.ErrorList {
	if s.embedded {
		errs = append(errs, validateMeta(ctx, s.release, nil, obj, s.tree, false)...)
	}
	errs = append(errs, s.validateLists(obj, old)...)
	return append(errs, s.validateRules(ctx, errs, complete, obj, old, correlated)...)
}

// ValidateStatus is Validate for a write of the status alone. In release 1.32 its values are held
// against the schema whether they changed or not.
func (s *Schema) ValidateStatus(ctx context.Context, found field.ErrorList, obj, old map[string]any) field.ErrorList {
	if s.broken != nil {
		return append(found, field.InternalError(nil, s.broken))
	}
	var correlated *common.CorrelatedObject
	if s.release.Has(release.CustomResources133) && old != nil && s.tree != nil {
		correlated = common.NewCorrelatedObject(obj, old, s.celSchema())
	}
	errs, complete := found, true
	if status, ok := obj["status"]; ok && s.status != nil {
		var of field.ErrorList
		of, complete = s.status().findErrors(ctx, field.NewPath("status"), status, correlated.Key("status"))
		errs = append(errs, of...)
	}
	errs = append(errs, s.validateScaleStatus(obj)...)
	errs = append(errs, s.validateLists(obj, old)...)
	return append(errs, s.validateRules(ctx, errs, complete, obj, old, correlated)...)
}

// validateLists finds repeated items of sets and maps, unless old has such already.
func (s *Schema) validateLists(obj, old map[string]any) field.ErrorList {
	if s.precheck.isUnique(obj) {
		return nil
	}
	errs := listtype.ValidateListSetsAndMaps(nil, s.tree, obj)
	if len(errs) > 0 && len(listtype.ValidateListSetsAndMaps(nil, s.tree, old)) > 0 {
		return nil
	}
	return errs
}

// validateRules runs the CEL rules, unless errors so far mean that they could not rely on the schema.
func (s *Schema) validateRules(ctx context.Context, sofar field.ErrorList, complete bool, obj, old map[string]any, correlated *common.CorrelatedObject) field.ErrorList {
	rules := s.rules()
	if rules == nil {
		return nil
	}
	if !complete || slices.ContainsFunc(sofar, blocks) {
		return field.ErrorList{field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")}
	}
	var before any // a nil map in it would not be nil
	if old != nil {
		before = old
	}
	e := &evaluation{ctx: ctx, of: s.release, left: expr.Budget, work: maxWork, warn: request.From(ctx).Warn}
	rules.run(e, nil, obj, before, counterpart{object: correlated})
	return e.errs
}

// blocks reports whether rules cannot be run after an error.
func blocks(err *field.Error) bool {
	switch err.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}
