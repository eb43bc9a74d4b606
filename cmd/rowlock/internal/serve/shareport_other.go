//go:build !linux

package serve

import (
	"errors"
	"syscall"
)

// sharePort fails: the option needs Linux.
func sharePort(string, string, syscall.RawConn) error {
	return errors.New("--permit-port-sharing works on Linux alone")
}
