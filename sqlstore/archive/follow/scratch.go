package follow

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rowlock/rowlock/sqlstore/lockfile"
)

// Beginnings of the names of temporary folders, which hold values.
const (
	restorePrefix = "rowlock-restore-"
	verifyPrefix  = "rowlock-verify-"
)

// leftFor is the age from which on a folder counts as abandoned: a new one is not locked yet.
const leftFor = time.Minute

// VerifyScratch makes a folder into which a verification restores; see scratch.
func VerifyScratch(parent string) (dir string, done func() error, err error) {
	return scratch(parent, verifyPrefix)
}

// scratch makes a temporary folder for its owner alone, in parent or where the system has
// them, and done removes it. Those that killed processes of the same user left there are
// removed first: each has a lock, which is free once its process is gone.
func scratch(parent, prefix string) (dir string, done func() error, err error) {
	parent = cmp.Or(parent, os.TempDir())
	removeLeft(parent)
	if dir, err = os.MkdirTemp(parent, prefix); err != nil {
		return "", nil, err
	}
	lock, err := lockfile.Take(filepath.Join(dir, lockName))
	if err == nil && lock == nil {
		err = errors.New(dir + " is taken by another process")
	}
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, func() error { return errors.Join(lock.Close(), os.RemoveAll(dir)) }, nil
}

// removeLeft removes the folders of killed processes. A failure is ignored: the next process tries again.
func removeLeft(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), restorePrefix) && !strings.HasPrefix(e.Name(), verifyPrefix) {
			continue
		}
		info, err := e.Info()
		// Into a folder of others a link may have been put, to be followed.
		if err != nil || !ours(info) || info.Mode().Perm() != 0o700 || time.Since(info.ModTime()) < leftFor {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		lock, err := lockfile.Take(filepath.Join(dir, lockName))
		if err != nil || lock == nil {
			continue
		}
		_ = lock.Close()
		_ = os.RemoveAll(dir)
	}
}
