// Package freshfile holds values that are read from files, and reads them again
// when the files change.
//
// It promises: a file that is still being written is not read, so that
// no value mixes two versions; while a changed file
// cannot be read the last good value stays. Value needs no goroutine: its callers check the files,
// at most once in an interval. A Follower's Run owns
// one, for versions that take time to take effect.
package freshfile

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// interval is the time for which a check of the files is valid.
	interval = time.Second
	// settled is the time for which a file must be unchanged to count as completely written.
	settled = 200 * time.Millisecond
)

// Value is a value that was read from some files.
type Value[T any] struct {
	paths   []string
	read    func() (T, error)
	failed  func(error)
	clock   func() time.Time     // for the ages of files
	elapsed func() time.Duration // since New, whatever the clock is set to
	current atomic.Pointer[T]
	next    atomic.Int64 // when the files are checked next, by elapsed

	mu       sync.Mutex
	marks    []mark // of the files that current was read from
	moving   []mark // of the last look, if it found something new
	reported string // the last reported failure
}

// mark distinguishes versions of a file.
type mark struct {
	size     int64
	modified time.Time
	mode     os.FileMode // read may check the permissions of the file
	info     os.FileInfo
}

// New reads the files for the first time. read reads all of them. failed
// receives the error if they have changed and cannot be read; it may be nil.
func New[T any](read func() (T, error), failed func(error), paths ...string) (*Value[T], error) {
	began := time.Now()
	v := &Value[T]{paths: paths, read: read, failed: failed, clock: time.Now, elapsed: func() time.Duration { return time.Since(began) }}
	v.marks, _ = v.look()
	first, err := read()
	if err != nil {
		return nil, err
	}
	v.current.Store(&first)
	v.next.Store(int64(v.elapsed() + interval))
	return v, nil
}

// Get returns the value of the files as they were, at most an interval ago; of files
// that are being written, as they were before.
func (v *Value[T]) Get() T {
	now := v.elapsed()
	if due := v.next.Load(); int64(now) >= due && v.next.CompareAndSwap(due, int64(now+interval)) {
		v.refresh(now)
	}
	return *v.current.Load()
}

func (v *Value[T]) refresh(now time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	marks, err := v.look()
	if err != nil {
		v.report(err)
		return
	}
	if same(marks, v.marks) {
		v.moving, v.reported = nil, ""
		return
	}
	if !same(marks, v.moving) && !still(marks, v.clock()) {
		v.wait(marks, now)
		return
	}
	fresh, err := v.read()
	if after, again := v.look(); again != nil || !same(after, marks) {
		v.wait(after, now) // written while it was read
		return
	}
	if err != nil {
		v.report(err) // not noted as seen: it is tried again
		return
	}
	v.current.Store(&fresh)
	v.marks, v.moving, v.reported = marks, nil, ""
}

// wait looks at files that move again soon.
func (v *Value[T]) wait(marks []mark, now time.Duration) {
	v.moving = marks
	v.next.Store(int64(now + settled))
}

// report reports a failure, once.
func (v *Value[T]) report(err error) {
	if v.failed != nil && v.reported != err.Error() {
		v.failed(err)
	}
	v.reported = err.Error()
}

func (v *Value[T]) look() ([]mark, error) {
	marks := make([]mark, len(v.paths))
	for i, path := range v.paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("looking for changes: %w", err)
		}
		marks[i] = mark{info.Size(), info.ModTime(), info.Mode(), info}
	}
	return marks, nil
}

// still reports whether none of the files was written a moment ago.
func still(marks []mark, now time.Time) bool {
	for _, m := range marks {
		if age := now.Sub(m.modified); age < settled {
			return false
		}
	}
	return true
}

func same(a, b []mark) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].size != b[i].size || a[i].mode != b[i].mode || !a[i].modified.Equal(b[i].modified) || !os.SameFile(a[i].info, b[i].info) {
			return false
		}
	}
	return true
}
