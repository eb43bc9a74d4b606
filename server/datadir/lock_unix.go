//go:build unix

package datadir

import (
	"errors"
	"os"
	"syscall"
)

// alone keeps other servers away from a folder while this one reads or changes several
// of its files, until the result is called. Where a file system has no locks, nothing
// keeps them away.
func alone(path string) (release func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return func() { f.Close() }, nil
		}
	}
}
