package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// sharingViolation is Windows' error for a file that another process has opened exclusively.
const sharingViolation syscall.Errno = 32

// hold takes a file for this process, until the result is called; nil while another process holds it.
func hold(path string) (release func() error, err error) {
	h, err := exclusive(path)
	switch {
	case err == nil:
		return func() error { return syscall.CloseHandle(h) }, nil
	case errors.Is(err, sharingViolation):
		return nil, nil
	}
	return nil, &os.PathError{Op: "open", Path: path, Err: err}
}

// exclusive opens a file exclusively, and creates it if necessary.
func exclusive(path string) (syscall.Handle, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return syscall.InvalidHandle, err
	}
	return syscall.CreateFile(name, syscall.GENERIC_READ, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
}

// lockExclusive excludes other servers from a folder while this one reads or changes several of its files, until the
// result is called. It opens a file in it exclusively.
func lockExclusive(path string) (release func(), err error) {
	for {
		h, err := exclusive(filepath.Join(path, "folder.lock"))
		if err == nil {
			return func() { _ = syscall.CloseHandle(h) }, nil // the process has released it in any case
		}
		if !errors.Is(err, sharingViolation) {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		time.Sleep(10 * time.Millisecond)
	}
}
