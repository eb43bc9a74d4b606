package cache

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// How many watchers are notified before other goroutines have their turn: few, or those
// of a group, as what they send goes out together.
const (
	fanOutStep = 16
	groupStep  = 128
)

// fanOuts owns the goroutines of fanOut, and those that index labels.
type fanOuts struct {
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup // added to under mu, unless closed
}

// start starts one goroutine, unless the cache is closed.
func (o *fanOuts) start(run func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.wg.Go(run)
	}
}

func (o *fanOuts) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.wg.Wait()
}

// ended says that whoever close waits for should give up what takes long.
func (o *fanOuts) ended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// fanOut notifies watchers with hooks that they were given something. That may take a
// while, and a writer waits for its answer meanwhile: so it is not done by whoever applies
// changes, but by goroutines that end with it. They take half of the processors, so that
// requests, and clients on the same machine, have the rest.
type fanOut struct {
	watchers []*Watcher // those of a group are neighbours
	step     int
	next     atomic.Int64
}

func (f *fanOut) start(owner *fanOuts) {
	owner.start(func() {
		if f.step == groupStep {
			slices.SortFunc(f.watchers, func(a, b *Watcher) int { return cmp.Compare(a.scope.order(), b.scope.order()) })
		}
		for range min(max(1, runtime.GOMAXPROCS(0)/2), (len(f.watchers)+f.step-1)/f.step) - 1 {
			owner.start(f.run)
		}
		f.run()
	})
}

func (f *fanOut) run() {
	for {
		end := int(f.next.Add(int64(f.step)))
		some := f.watchers[min(end-f.step, len(f.watchers)):min(end, len(f.watchers))]
		for len(some) > 0 {
			some = some[notifyTogether(some):]
		}
		if end >= len(f.watchers) {
			return
		}
		runtime.Gosched()
	}
}

// notifyTogether notifies the first watcher, and those that follow of its group. It
// returns how many they were.
func notifyTogether(watchers []*Watcher) (n int) {
	g := watchers[0].scope.Group
	if g != nil {
		g.AddWriter()
		defer g.RemoveWriter()
	}
	for n < len(watchers) && (n == 0 || g != nil && watchers[n].scope.Group == g) {
		(*watchers[n].hooks.Load()).Notify()
		n++
	}
	return n
}

// Hooks are called instead of a signal on Ready: Notify by a goroutine that can do what there
// is to be done, Wake by others, with locks held. Neither may wait for anything. Both may be
// called after Stop; Notify is not called after Close of the cache.
type Hooks interface {
	Notify()
	Wake()
}

type hookFuncs struct{ notify, wake func() }

func (h hookFuncs) Notify() { h.notify() }
func (h hookFuncs) Wake()   { h.wake() }

// HookFuncs are hooks of two functions.
func HookFuncs(notify, wake func()) Hooks { return hookFuncs{notify, wake} }

// SetHooks sets what is called when Take may have something new.
func (w *Watcher) SetHooks(h Hooks) { w.hooks.Store(&h) }

// InMemory says that Take returns what is queued, and reads neither the event log nor the store's. It is for the goroutine
// that calls Take.
func (w *Watcher) InMemory() bool { return !w.is(catchingUp) }

// Close waits for the goroutines that notify watchers or index labels, and starts no others. Watchers with
// hooks are not notified of what comes later.
func (c *Cache) Close() { c.fanOuts.close() }
