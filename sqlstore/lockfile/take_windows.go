package lockfile

import (
	"errors"
	"os"
	"syscall"
)

// sharingViolation is what Windows says of a file that another has opened for itself.
const sharingViolation syscall.Errno = 32

// Take opens a file that nobody else has taken, or makes it; nil: somebody has. Whoever
// closes it, or ends, gives it back.
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
