package sqlite

import (
	"math"
	"path/filepath"
	"syscall"
)

// freeBytes returns how many bytes the disk of a file has for this process, as many as there can be if that is unknown.
func freeBytes(path string) int64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(filepath.Dir(path), &s); err != nil || s.Bsize <= 0 || s.Bavail > math.MaxInt64/uint64(s.Bsize) {
		return math.MaxInt64
	}
	return int64(s.Bavail) * int64(s.Bsize)
}
