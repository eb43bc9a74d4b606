package watches

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/yield"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
)

// errTimeout: the watch has lasted for its time.
var errTimeout = errors.New("the time of the watch is up")

// errSlow: the watch ends in the middle of a large event.
var errSlow = fmt.Errorf("%w for a large event", cache.ErrSlow)

// drain sends the deliveries that wait, and the bookmark that is due. Later ones wake the handler again.
func (w *stream) drain(ctx context.Context, out output) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.checkTimer(); w.up {
		return errTimeout
	}
	if w.panicked != nil {
		panic(w.panicked)
	}
	if w.failed != nil {
		return w.failed
	}
	if out.blocked() {
		if err := out.flush(); err != nil {
			return err
		}
	}
	if len(w.rest) > 0 {
		if err := w.deliver(out); err != nil {
			return err
		}
	}
	for {
		revision, err := w.take(ctx)
		if err != nil {
			return err
		}
		if len(w.rest) == 0 {
			w.watcher.Written()
			if !w.due {
				return nil
			}
			// The revision was read after the bookmark was due, and everything up to it has been sent.
			w.due = false
			return w.bookmark(out, revision, false)
		}
		if err := w.deliver(out); err != nil || !w.due {
			return err
		}
	}
}

// take takes the next deliveries; all earlier ones have been sent.
func (w *stream) take(ctx context.Context) (revision int64, err error) {
	w.batch, revision, err = w.watcher.Take(ctx, w.batch)
	w.rest = w.batch
	return revision, err
}

// push sends as many of the waiting deliveries as the client reads without delay, from a goroutine of the cache. If
// something is left to do, it returns false.
func (w *stream) push(ctx context.Context, out *directOutput) (done bool) {
	if !w.mu.TryLock() {
		return false
	}
	defer w.mu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			w.panicked, done = p, false // the panic ends this watch alone
		}
	}()
	if w.over {
		return true
	}
	if w.checkTimer(); w.up || w.failed != nil || w.panicked != nil || out.blocked() || len(w.rest) > 0 || !w.watcher.InMemory() {
		return false
	}
	var revision int64
	if revision, w.failed = w.take(ctx); w.failed != nil {
		return false
	}
	out.noWait = true
	defer func() { out.noWait = false }()
	if unread := cache.Try(func() { w.failed = w.deliver(out) }); unread != nil {
		w.failed = unread
	}
	if w.failed == nil && w.due && len(w.rest) == 0 && !out.blocked() {
		// The revision was read after the bookmark was due, and everything up to it has been sent.
		w.due = false
		w.failed = w.bookmark(out, revision, false)
	}
	return w.failed == nil && !out.blocked()
}

// checkTimer checks whether a bookmark or the end of the watch is due. The caller holds w.mu.
func (w *stream) checkTimer() {
	if !w.wheelFired.Swap(false) || w.up {
		return
	}
	now := time.Now()
	if w.up = !now.Before(w.end); w.up {
		return
	}
	w.due = w.bookmarks
	w.server.wheel.set(w, w.nextTimer(now))
}

// deliver sends the rest of the batch; with a direct output that does not wait, as much as the client reads at once. It ends the
// watch of a slow client for whose batch others wait.
func (w *stream) deliver(out output) error {
	var batch readPace
	awaited := w.watcher.HoldsLarge()
	for len(w.rest) > 0 && !out.blocked() {
		d := w.rest[0]
		if d.Unsure {
			settled, ok, err := w.settle(d)
			if err != nil {
				return err
			}
			if d = settled; !ok {
				w.rest = w.rest[1:]
				continue
			}
		}
		large := budget.Large(d.Size())
		if large && out.postpones(d.Size()) { // a goroutine of the cache does not make its frame either
			break
		}
		key := w.later
		if !w.begun {
			key = w.first
		}
		frame, err := w.frameOf(d, key, large && out.splits())
		if err != nil {
			return err
		}
		if out.postpones(frame.size()) {
			break
		}
		w.rest = w.rest[1:]
		w.begun = true
		w.sent(frame.size())
		var pace readPace
		switch {
		case large && out.splits():
			err = w.sendLarge(out, frame, &pace)
		case awaited:
			err = pace.send(frame.size(), func() error { return out.send(frame.object) })
		default:
			err = out.send(frame.object)
		}
		if err != nil {
			return err
		}
		if batch.bytes, batch.took = batch.bytes+pace.bytes, batch.took+pace.took; awaited && batch.tooSlow() {
			return cache.ErrSlow
		}
	}
	w.watcher.Written()
	return out.flush()
}

// frame is an event in the wire form of a watch. A large event may have three parts, and shares the object with the cache; any other event
// is in object as a whole.
type frame struct{ before, object, behind []byte }

func (f *frame) size() int { return len(f.before) + len(f.object) + len(f.behind) }

// frameOf returns the frame of a delivery, which the cache keeps by key. With parts, the frame may have several parts.
func (w *stream) frameOf(d cache.Delivery, key any, parts bool) (f frame, err error) {
	if parts {
		var ok bool
		if f.before, f.object, f.behind, ok = w.view.EventParts(d.Type.String(), d.Item()); ok {
			return f, nil
		}
	}
	f.object, err = d.Frame(key, w.make)
	return f, err
}

// sendLarge sends a frame in pieces, in turn with the long answers of other users. The watch ends in the middle of the frame if
// the cache has ended its watcher, which would keep the object in memory for as long as the client takes.
func (w *stream) sendLarge(out output, f frame, pace *readPace) error {
	turn := w.server.Answers.Turn(w.request)
	defer turn.End()
	for _, part := range [...][]byte{f.before, f.object, f.behind} {
		for len(part) > 0 {
			piece := part[:min(len(part), answers.Chunk)]
			if err := turn.Next(len(piece)); err != nil {
				return err
			}
			if err := pace.send(len(piece), func() error { return out.send(piece) }); err != nil {
				return err
			}
			if part = part[len(piece):]; pace.bytes < f.size() && (w.watcher.EndedSlow() || pace.tooSlow()) {
				return errSlow
			}
			yield.Now() // otherwise it keeps a processor for ten milliseconds, and short requests wait
		}
	}
	return nil
}

// event returns one event in the wire form of the watch.
func (w *stream) event(t cache.EventType, it *cache.Item) ([]byte, error) {
	return w.view.Event(t.String(), it, !w.begun)
}

// settle decides the event type for an object that is stored in another version than the watch's.
func (w *stream) settle(d cache.Delivery) (cache.Delivery, bool, error) {
	return d.Resolve(func(it *cache.Item) (bool, error) {
		return w.server.Objects.Selects(w.request.Context(), w.request.Resource, w.filter, it)
	})
}

// bookmark sends a bookmark at a revision. end means that it ends the initial events.
func (w *stream) bookmark(out output, revision int64, end bool) error {
	frame, err := w.view.Bookmark(revision, end, !w.begun)
	if err != nil {
		return err
	}
	w.begun = true
	w.sent(len(frame))
	if err := out.send(frame); err != nil {
		return err
	}
	return out.flush()
}

// States of a watch whose handler has returned.
const (
	rests uint32 = iota // no goroutine works for it
	works               // the goroutine of work runs
	again               // and will check again
)

// detach lets the watch go on after its handler and the filters around it have returned. From then on it has a goroutine
// only for work that would make the goroutines of the cache or of the timer wheel wait.
func (w *stream) detach(ctx context.Context, out *directOutput) {
	w.outlives, w.ctx, w.out = true, ctx, out
	w.request.Scope.Detach(w.resume)
}

// resume continues the watch once the handler and all filters have returned.
func (w *stream) resume(panicked any) {
	w.complete = false
	w.state.Store(works)
	if panicked != nil {
		w.endAs(panicked)
		return
	}
	w.slim()
	w.callsWebhook = w.request.Resource.LoadCallsWebhook() // the goroutines of the cache must not wait for a webhook
	w.unlink = w.out.stream.WhenEnded(w.ctx, w.Wake)       // work notices an earlier end
	w.server.wheel.set(w, w.nextTimer(time.Now()))
	w.watcher.SetHooks(w)
	w.work()
}

// slim drops state that only the start of a watch needs. The request and its headers would be most of the memory of an
// idle watch.
func (w *stream) slim() {
	_ = w.request.Context() // made of the request, and kept
	w.request.R, w.request.W, w.request.Scope.Info.Query = nil, nil, nil
	w.filter, w.options = w.options.Filter, nil
	w.out.counter = counterOf(w.out.w)
	w.out.w = nil
}

// Notify implements cache.Hooks.
func (w *stream) Notify() {
	if w.callsWebhook || !w.push(w.ctx, w.out) {
		w.Wake()
	}
}

// Wake implements cache.Hooks: it starts work, unless that runs. The connection waits for the end of work, as for that of
// the answer.
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

// work takes turns until nothing is left to send or the watch is over.
func (w *stream) work() {
	for {
		if over, panicked := w.turn(); over {
			w.endAs(panicked)
			return // the state stays works, so Wake starts no other
		}
		if w.state.CompareAndSwap(works, rests) {
			return
		}
		w.state.Store(works)
	}
}

// turn sends all pending frames, and reports whether the watch is over.
func (w *stream) turn() (over bool, panicked any) {
	defer func() {
		if p := recover(); p != nil {
			over, panicked = true, p
		}
	}()
	var err error
	if unread := cache.Try(func() { err = w.drain(w.ctx, w.out) }); unread != nil {
		err = unread
	}
	if err == nil && w.ctx.Err() == nil {
		return false, nil
	}
	if !errors.Is(err, errTimeout) {
		w.conclude(w.ctx, w.out, err)
	}
	w.complete = !errors.Is(err, errSlow)
	return true, nil
}

// endAs ends the watch, and then its request. panicked is the value of the panic that ends it, or nil.
func (w *stream) endAs(panicked any) {
	if w.unlink != nil {
		w.unlink()
	}
	w.finish(w.out)
	w.server.wheel.forget(w) // only now: until finish, push may have set it
	w.stop()
	rest := w.request.Scope.Ended(panicked)
	w.out.stream.Over()
	if err, ok := rest.(error); rest != nil && !(ok && errors.Is(err, http.ErrAbortHandler)) {
		w.server.log().Error("panic at the end of a watch", "audit-id", w.request.Scope.ID, "panic", rest)
	}
}
