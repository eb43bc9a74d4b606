//go:build !linux

package wire

import (
	"errors"
	"os"
)

func newEpoll() *os.File                       { return nil }
func addEpoll(*os.File, uintptr, uint64) error { return errors.ErrUnsupported }
func waitEpoll(*os.File, func(id uint64))      {}

// closed reports whether the client has closed the connection. It is not known on this system.
func closed(uintptr) bool { return false }
