//go:build unix && !linux

package faults

import (
	"errors"

	"golang.org/x/sys/unix"
)

func prlimit(int, int, *unix.Rlimit, *unix.Rlimit) error {
	return errors.New("limits of other processes are set on Linux alone")
}
