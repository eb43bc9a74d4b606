package watches

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// States of a watch whose handler has returned.
const (
	rests uint32 = iota
	works        // a goroutine does what there is to do
	again        // and will look again
)

// outlive has the watch go on when its handler, and the filters around it, have returned: it
// then has a goroutine only while there is something to do that the goroutines of others,
// the cache's and the clock's, cannot do without waiting.
func (w *stream) outlive(ctx context.Context, out *directOutput) {
	w.outlives, w.ctx, w.out = true, ctx, out
	w.request.Scope.Outlive(w.goOn)
}

// goOn is called when all have returned.
func (w *stream) goOn(panicked any) {
	w.complete = false
	w.state.Store(works)
	if panicked != nil {
		w.endAs(panicked)
		return
	}
	w.slim()
	w.asks = w.request.Resource.LoadAsks()           // no goroutine of the cache waits for a webhook
	w.unlink = w.out.stream.WhenEnded(w.ctx, w.Wake) // work sees what ended before
	w.server.clock.set(w, w.nextAlarm(time.Now()))
	w.watcher.SetHooks(w)
	w.work()
}

// slim lets go of what only the beginning of a watch needs. The request and its headers are
// what most of a watch is that says nothing.
func (w *stream) slim() {
	_ = w.request.Context() // it is made of the request
	w.request.R, w.request.W, w.request.Scope.Info.Query = nil, nil, nil
	w.filter, w.options = w.options.Filter, nil
	w.out.counter = counterOf(w.out.w)
	w.out.w = nil
}

// Notify implements cache.Hooks.
func (w *stream) Notify() {
	if w.asks || !w.push(w.ctx, w.out) {
		w.Wake()
	}
}

// Wake implements cache.Hooks: a goroutine looks what there is to do. The connection waits
// for its end, as it does for that of the answer.
func (w *stream) Wake() {
	for {
		switch {
		case w.state.CompareAndSwap(rests, works):
			go w.work()
			return
		case w.state.CompareAndSwap(works, again), w.state.Load() == again:
			return
		}
	}
}

// work does what there is to do, until nothing is left.
func (w *stream) work() {
	for {
		if over, panicked := w.turn(); over {
			w.endAs(panicked)
			return // with nobody else to come: the state stays as it is
		}
		if w.state.CompareAndSwap(works, rests) {
			return
		}
		w.state.Store(works)
	}
}

// turn does what there is to do now, and says whether the watch is over.
func (w *stream) turn() (over bool, panicked any) {
	defer func() {
		if p := recover(); p != nil {
			over, panicked = true, p
		}
	}()
	err := w.drain(w.ctx, w.out)
	if err == nil && w.ctx.Err() == nil {
		return false, nil
	}
	if !errors.Is(err, errUp) {
		w.conclude(w.ctx, w.out, err)
	}
	w.complete = true
	return true, nil
}

// endAs ends the watch, and then its request, once. panicked is what it ends with, or nil.
func (w *stream) endAs(panicked any) {
	if w.unlink != nil {
		w.unlink()
	}
	w.finish(w.out)
	w.server.clock.forget(w) // nobody sets it any more: whoever was writing may have
	w.watcher.Stop()
	rest := w.request.Scope.Ended(panicked)
	w.out.stream.Over()
	if err, ok := rest.(error); rest != nil && !(ok && errors.Is(err, http.ErrAbortHandler)) {
		w.server.log().Error("the end of a watch has panicked", "audit-id", w.request.Scope.ID, "panic", rest)
	}
}
