package datadir

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// anonymousFiles makes empty files that have no place but this process, for its user alone.
func anonymousFiles(names []string) (paths []string, release func() error, err error) {
	var files []*os.File
	release = func() error {
		var errs []error
		for _, f := range files {
			errs = append(errs, f.Close())
		}
		return errors.Join(errs...)
	}
	for _, name := range names {
		fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
		if err == nil {
			files = append(files, os.NewFile(uintptr(fd), name))
			paths = append(paths, fmt.Sprintf("%s%d", ownFiles(), fd))
			err = unix.Fchmod(fd, 0o600)
		}
		if err == nil {
			_, err = os.Stat(paths[len(paths)-1]) // there may be no /proc
		}
		if err != nil {
			return nil, nil, errors.Join(err, release())
		}
	}
	return paths, release, nil
}

// ownFiles returns where the system shows the open files of this process to others.
func ownFiles() string { return fmt.Sprintf("/proc/%d/fd/", os.Getpid()) }

// anonymous reports whether a path is of such a file, which cannot be replaced by another.
func anonymous(path string) bool { return strings.HasPrefix(path, ownFiles()) }
