//go:build unix

package etcdstub

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// alone takes a folder by a lock on a file in it, which the kernel gives back when the
// process is gone.
func alone(path string) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, errors.Join(errors.New("another process keeps it"), f.Close())
	case err != nil && !errors.Is(err, syscall.ENOTSUP) && !errors.Is(err, syscall.ENOSYS): // some file systems have no locks
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// ownedBy reports whether a user owns a file.
func ownedBy(info fs.FileInfo, user int) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == uint32(user)
}
