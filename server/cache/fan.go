package cache

import (
	"cmp"
	"runtime"
	"slices"
	"sync/atomic"
)

// How many watchers are told before others have their turn: few, or those of a group,
// as what they send goes out together.
const (
	fanStep   = 16
	groupStep = 128
)

// fan tells watchers with hooks that they were given something. That may take a while,
// and a writer waits for its answer meanwhile: so it is not done by whoever applies
// changes, but by goroutines that end with it. They take half of the processors, so
// that requests, and clients on the same machine, have the rest.
type fan struct {
	watchers []*Watcher // those of a group beside one another
	step     int
	next     atomic.Int64
}

func (f *fan) start() {
	go func() {
		if f.step == groupStep {
			slices.SortFunc(f.watchers, func(a, b *Watcher) int { return cmp.Compare(a.scope.order(), b.scope.order()) })
		}
		for range min(max(1, runtime.GOMAXPROCS(0)/2), (len(f.watchers)+f.step-1)/f.step) - 1 {
			go f.run()
		}
		f.run()
	}()
}

func (f *fan) run() {
	for {
		end := int(f.next.Add(int64(f.step)))
		some := f.watchers[min(end-f.step, len(f.watchers)):min(end, len(f.watchers))]
		for len(some) > 0 {
			some = some[pushTogether(some):]
		}
		if end >= len(f.watchers) {
			return
		}
		runtime.Gosched()
	}
}

// pushTogether pushes to the first watcher, and to those that follow of its group. It
// returns how many they were.
func pushTogether(watchers []*Watcher) (n int) {
	g := watchers[0].scope.Group
	if g != nil {
		g.AddWriter()
		defer g.RemoveWriter()
	}
	for n < len(watchers) && (n == 0 || g != nil && watchers[n].scope.Group == g) {
		watchers[n].hooks.Load().push()
		n++
	}
	return n
}

// hooks stand in for Ready.
type hooks struct{ push, wake func() }

// SetHooks sets what is called when Take may have something new, in place of signalling
// Ready: push by a goroutine that can do what there is to be done, wake by others, with
// locks held. Neither may wait for anything. They may be called after Stop.
func (w *Watcher) SetHooks(push, wake func()) { w.hooks.Store(&hooks{push, wake}) }

// InMemory says that Take has nothing to read that was kept elsewhere. It is for whoever may
// call Take.
func (w *Watcher) InMemory() bool { return w.history == nil && !w.passed.Load() }
