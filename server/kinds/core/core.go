// Package core says how the kinds of core/v1 behave, except Pods: how they are
// defaulted, prepared and validated, and how they print as tables.
//
// It promises: defaulting is idempotent; functions change only the object they
// are given and never panic, whatever a client sent; errors have the paths, order
// and words of release 1.32.
package core

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
)

var (
	specPath   = field.NewPath("spec")
	statusPath = field.NewPath("status")
	metaPath   = field.NewPath("metadata")
)

// sorted lists the keys of a map in order, so that errors have one.
func sorted[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// checks makes the validation functions of a kind from functions over its Go
// type. They are given what the strategies hand them: objects of that type.
func checks[T kinds.Object](check func(T) field.ErrorList) func(context.Context, kinds.Object) field.ErrorList {
	return func(_ context.Context, obj kinds.Object) field.ErrorList { return check(obj.(T)) }
}

func updateChecks[T kinds.Object](check func(obj, old T) field.ErrorList) func(context.Context, kinds.Object, kinds.Object) field.ErrorList {
	return func(_ context.Context, obj, old kinds.Object) field.ErrorList { return check(obj.(T), old.(T)) }
}

func prepares[T kinds.Object](prepare func(T)) func(context.Context, kinds.Object) {
	return func(_ context.Context, obj kinds.Object) { prepare(obj.(T)) }
}

func preparesUpdate[T kinds.Object](prepare func(obj, old T)) func(context.Context, kinds.Object, kinds.Object) {
	return func(_ context.Context, obj, old kinds.Object) { prepare(obj.(T), old.(T)) }
}

func defaults[T kinds.Object](fill func(T)) func(kinds.Object) {
	return func(obj kinds.Object) { fill(obj.(T)) }
}

func defaultTo[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}
