//go:build !linux

package sqlite

import "math"

// freeBytes returns that the free bytes of the disk are unknown: as many as there can be.
func freeBytes(string) int64 { return math.MaxInt64 }
