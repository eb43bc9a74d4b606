// Package freshfile keeps values that are read from files, and reads them again
// when the files change.
//
// It promises: no goroutines; a file is looked at no more than once in an interval,
// by whoever asks then; while a changed file cannot be read the last good value
// stays.
package freshfile

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// interval is how long a look at the files holds.
const interval = time.Second

// Value is what was read from some files.
type Value[T any] struct {
	paths   []string
	read    func() (T, error)
	failed  func(error)
	clock   func() time.Time
	current atomic.Pointer[T]
	next    atomic.Int64 // when the files are looked at again, in Unix nanoseconds

	mu    sync.Mutex
	marks []mark
}

// mark tells versions of a file apart.
type mark struct {
	size     int64
	modified time.Time
	info     os.FileInfo
}

// New reads the files for the first time. read reads all of them; failed is told of
// each later read that goes wrong, and may be nil.
func New[T any](read func() (T, error), failed func(error), paths ...string) (*Value[T], error) {
	v := &Value[T]{paths: paths, read: read, failed: failed, clock: time.Now}
	v.marks, _ = v.look()
	first, err := read()
	if err != nil {
		return nil, err
	}
	v.current.Store(&first)
	v.next.Store(v.clock().Add(interval).UnixNano())
	return v, nil
}

// Get returns the value of the files as they were, at most an interval ago.
func (v *Value[T]) Get() T {
	now := v.clock().UnixNano()
	if due := v.next.Load(); now >= due && v.next.CompareAndSwap(due, now+int64(interval)) {
		v.refresh()
	}
	return *v.current.Load()
}

func (v *Value[T]) refresh() {
	v.mu.Lock()
	defer v.mu.Unlock()
	marks, err := v.look()
	if err != nil {
		v.tell(err)
		return
	}
	if same(marks, v.marks) {
		return
	}
	fresh, err := v.read()
	if err != nil {
		v.tell(err) // not noted as seen: it is tried again
		return
	}
	v.current.Store(&fresh)
	v.marks = marks
}

func (v *Value[T]) tell(err error) {
	if v.failed != nil {
		v.failed(err)
	}
}

func (v *Value[T]) look() ([]mark, error) {
	marks := make([]mark, len(v.paths))
	for i, path := range v.paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("looking for changes: %w", err)
		}
		marks[i] = mark{info.Size(), info.ModTime(), info}
	}
	return marks, nil
}

func same(a, b []mark) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].size != b[i].size || !a[i].modified.Equal(b[i].modified) || !os.SameFile(a[i].info, b[i].info) {
			return false
		}
	}
	return true
}
