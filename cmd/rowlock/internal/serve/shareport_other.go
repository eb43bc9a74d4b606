//go:build !linux

package serve

import (
	"errors"
	"syscall"
)

// sharePort is for Linux.
func sharePort(string, string, syscall.RawConn) error {
	return errors.New("--permit-port-sharing works on Linux alone")
}
