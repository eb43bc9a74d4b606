//go:build unix && !linux

package disk

import (
	"errors"
	"io"
)

// Serve is for Linux.
func Serve(string, string, io.Reader, io.Writer) error {
	return errors.New("disks that lose pages are for Linux")
}
