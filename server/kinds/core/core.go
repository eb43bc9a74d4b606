// Package core holds the strategies of core/v1, except Pods: how the kinds are
// defaulted, prepared and validated, and their tables.
//
// It promises: defaulting is idempotent; functions change only the object that they get
// and never panic, whatever a client sent; errors have the paths, order and texts of release 1.32.
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
