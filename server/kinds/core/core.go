// Package core says how the kinds of core/v1 behave, except Pods: how they are
// defaulted, prepared and validated, and how they print as tables.
//
// It promises: defaulting is idempotent; functions change only the object they
// are given and never panic, whatever a client sent; errors have the paths, order
// and words of release 1.32.
package core

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	specPath   = field.NewPath("spec")
	statusPath = field.NewPath("status")
	metaPath   = field.NewPath("metadata")
)

// sorted lists the keys of a map in order, so that errors have one.
func sorted[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
