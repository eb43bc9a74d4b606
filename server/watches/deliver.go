package watches

import (
	"context"
	"errors"
	"time"

	"github.com/rowlock/rowlock/server/cache"
)

// errUp: the watch has lasted for its time.
var errUp = errors.New("the time of the watch is up")

// drain sends what waits, and the bookmark that is due. What comes meanwhile wakes the
// handler again.
func (w *stream) drain(ctx context.Context, out output) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.heard(); w.up {
		return errUp
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
			// The revision was taken after the time came, with nothing left to send before it.
			w.due = false
			return w.bookmark(out, revision, false)
		}
		if err := w.deliver(out); err != nil || !w.due {
			return err
		}
	}
}

// take asks for the next deliveries, once all before have been sent.
func (w *stream) take(ctx context.Context) (revision int64, err error) {
	w.batch, revision, err = w.watcher.Take(ctx, w.batch)
	w.rest = w.batch
	return revision, err
}

// push sends what waits, as far as that needs no waiting, from a goroutine of the cache.
// If something is left to be done it returns false, and the handler goes on.
func (w *stream) push(ctx context.Context, out *directOutput) (done bool) {
	if !w.mu.TryLock() {
		return false
	}
	defer w.mu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			w.panicked, done = p, false // it costs this request, not those of others
		}
	}()
	if w.over {
		return true
	}
	if w.heard(); w.up || w.failed != nil || w.panicked != nil || out.blocked() || len(w.rest) > 0 || !w.watcher.InMemory() {
		return false
	}
	var revision int64
	if revision, w.failed = w.take(ctx); w.failed != nil {
		return false
	}
	out.noWait = true
	w.failed = w.deliver(out)
	if w.failed == nil && w.due && len(w.rest) == 0 && !out.blocked() {
		// The revision was taken after the time came, and all before it has been sent.
		w.due = false
		w.failed = w.bookmark(out, revision, false)
	}
	out.noWait = false
	return w.failed == nil && !out.blocked()
}

// heard looks whether the clock has rung, and what for. The caller holds w.mu.
func (w *stream) heard() {
	if !w.rang.Swap(false) || w.up {
		return
	}
	now := time.Now()
	if w.up = !now.Before(w.end); w.up {
		return
	}
	w.due = w.bookmarks
	w.server.clock.set(w, w.nextAlarm(now))
}

// deliver sends the rest of the batch, or what the client takes of it without delay.
func (w *stream) deliver(out output) error {
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
		key := w.later
		if !w.begun {
			key = w.first
		}
		frame, err := d.Frame(key, w.make)
		if err != nil {
			return err
		}
		if out.postpones(frame) {
			break
		}
		w.rest = w.rest[1:]
		w.begun = true
		w.sent(len(frame))
		if err := out.send(frame); err != nil {
			return err
		}
	}
	w.watcher.Written()
	return out.flush()
}

// settle decides what the watcher sees of an event that needs a closer look.
func (w *stream) settle(d cache.Delivery) (cache.Delivery, bool, error) {
	return d.Settle(func(it *cache.Item) (bool, error) {
		return w.server.Objects.Selects(w.request.Context(), w.request.Resource, w.filter, it)
	})
}
