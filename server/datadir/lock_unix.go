//go:build unix

package datadir

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// hold takes a file for this process, until the result is called; nil while another process holds it. Where a
// file system has no locks, or takes no file, every process holds it.
func hold(path string) (release func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) { // a folder that needs no writes
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, err
	}
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return nil, f.Close()
		default:
			return f.Close, nil
		}
	}
}

// lockExclusive excludes other servers from a folder while this one reads or changes several of its files, until the
// result is called. It has no effect on file systems without locks.
func lockExclusive(path string) (release func(), err error) {
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
