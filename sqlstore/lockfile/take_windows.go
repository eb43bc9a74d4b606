package lockfile

import (
	"errors"
	"os"
	"syscall"
)

// sharingViolation is Windows' error for a file that another process has opened exclusively.
const sharingViolation syscall.Errno = 32

// Take opens a file that no other process has taken, or creates it; nil: another process has. Closing it, or
// the end of the process, releases it.
func Take(path string) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, sharingViolation) {
		return nil, nil
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}
