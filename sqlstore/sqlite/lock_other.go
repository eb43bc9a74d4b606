//go:build !linux

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/rowlock/rowlock/sqlstore/lockfile"
)

// lockFile locks names as files of their own where locks of open file descriptions are not to be
// had. It never reports that this process is alone.
type lockFile struct {
	path string

	mu    sync.Mutex
	names map[string]*os.File
}

func openLock(ctx context.Context, path string) (*lockFile, error) {
	return &lockFile{path: path, names: make(map[string]*os.File)}, ctx.Err()
}

func (l *lockFile) refresh() {}

func (l *lockFile) inPlace() error { return nil }

func (l *lockFile) exclusive() uint64 { return 0 }

// try takes a name without waiting.
func (l *lockFile) try(name string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names == nil || l.names[name] != nil {
		return false, nil
	}
	f, err := lockfile.Take(l.path + "." + name)
	if err != nil {
		return false, fmt.Errorf("locking %q: %w", name, err)
	}
	if f == nil {
		return false, nil
	}
	l.names[name] = f
	return true, nil
}

func (l *lockFile) release(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.names[name]; f != nil {
		delete(l.names, name)
		f.Close()
	}
}

func (l *lockFile) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, f := range l.names {
		errs = append(errs, f.Close())
	}
	l.names = nil
	return errors.Join(errs...)
}
