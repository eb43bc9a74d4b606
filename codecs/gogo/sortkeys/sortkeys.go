// Package sortkeys puts keys of maps in order, for generated files that write maps.
package sortkeys

import "slices"

// Strings sorts in place.
func Strings(keys []string) { slices.Sort(keys) }
