//go:build unix

package pgtest

import (
	"runtime"
	"sync"
)

// starter is one goroutine on one locked thread that forks all servers of the
// process; it ends with the process.
var starter forkThread

type forkThread struct {
	once sync.Once
	work chan func()
}

func (f *forkThread) do(fn func()) {
	f.once.Do(func() {
		f.work = make(chan func())
		go f.loop()
	})
	f.work <- fn
}

func (f *forkThread) loop() {
	runtime.LockOSThread()
	for fn := range f.work {
		fn()
	}
}
