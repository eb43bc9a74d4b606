package cache

import (
	"runtime"
	"sync/atomic"
)

// fanStep is how many watchers are told before others have their turn.
const fanStep = 16

// fan tells watchers with hooks that they were given something. That may take a while,
// and a writer waits for its answer meanwhile: so it is not done by whoever applies
// changes, but by goroutines that end with it. They take half of the processors, so
// that requests, and clients on the same machine, have the rest.
type fan struct {
	watchers []*Watcher
	next     atomic.Int64
}

func (f *fan) start() {
	for range min(max(1, runtime.GOMAXPROCS(0)/2), (len(f.watchers)+fanStep-1)/fanStep) {
		go f.run()
	}
}

func (f *fan) run() {
	for {
		end := int(f.next.Add(fanStep))
		for _, w := range f.watchers[min(end-fanStep, len(f.watchers)):min(end, len(f.watchers))] {
			w.hooks.Load().push()
		}
		if end >= len(f.watchers) {
			return
		}
		runtime.Gosched()
	}
}

// hooks stand in for Ready.
type hooks struct{ push, wake func() }

// Push sets what is called when Take may have something new, in place of signalling
// Ready: push by a goroutine that can do what there is to be done, wake by others, with
// locks held. Neither may wait for anything. They may be called after Stop.
func (w *Watcher) Push(push, wake func()) { w.hooks.Store(&hooks{push, wake}) }

// Live says that Take need not read the log. It is for whoever may call Take.
func (w *Watcher) Live() bool { return w.history == nil }
