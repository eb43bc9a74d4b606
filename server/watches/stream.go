package watches

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/wire"
)

// stream is one watch. Its handler holds mu, but while it waits: then goroutines of the
// cache may send what is new (push), so that the handler need not wake up.
type stream struct {
	mu       sync.Mutex
	over     bool // nothing may be sent any more
	complete bool // nothing is missing from the answer
	outlives bool // it goes on although the handler has returned
	up       bool // its time is
	asks     bool // what it sends may take a webhook
	panicked any  // what push ended with

	server  *Server
	request *answers.Request
	options *objects.ListOptions
	view    *answers.View

	watcher   *cache.Watcher
	there     *objects.Collection // what there is at the beginning; nil for a watch from a revision
	failed    error               // why there is nothing to watch
	begun     bool                // a frame has been sent
	due       bool                // a bookmark is to be sent
	bookmarks bool
	end       time.Time
	timer     *time.Timer
	alarms    atomic.Uint32
	conn      wire.Conn // of HTTP/2; else nil
	filter    *cache.Filter
	batch     []cache.Delivery
	rest      []cache.Delivery                                   // of batch: to be sent still
	first     any                                                // the key of the first event's frame
	later     any                                                // that of all others
	make      func(cache.EventType, *cache.Item) ([]byte, error) // w.frame
	sent      func(bytes int)                                    // is told of each event

	// Where it goes on without its handler:
	ctx    context.Context
	out    *directOutput
	unlink func() bool // from ctx
	state  atomic.Uint32
	rang   atomic.Bool // the clock has, and nobody has looked
	alarm  alarm
}

// prepare makes ready what every event needs.
func (w *stream) prepare() {
	// Handles are compared faster than what they stand for, and need no memory.
	w.first, w.later = unique.Make(w.view.Key(true)), unique.Make(w.view.Key(false))
	w.make = w.frame
}

// frame is one event in the wire form of the watch.
func (w *stream) frame(t cache.EventType, it *cache.Item) ([]byte, error) {
	return w.view.Event(t.String(), it, !w.begun)
}

// events sends the initial events, then changes and bookmarks until the time is up.
func (w *stream) events(ctx context.Context, out output) error {
	w.end = time.Now().Add(w.duration())
	if w.there != nil && w.options.SyntheticEvents() {
		if err := w.initial(ctx, out); err != nil {
			return err
		}
		if m := w.server.Measure; m != nil && w.options.InitialEvents() {
			m.InitialEvents(w.request.Resource, w.request.Scope.Info, time.Since(w.request.Scope.Received))
		}
	}
	w.there = nil
	w.request.Scope.Begun()
	if direct, ok := out.(*directOutput); ok {
		w.outlive(ctx, direct)
		return nil
	}
	return w.ownLoop(ctx, out)
}

// What may happen besides changes.
const (
	timerFired uint32 = 1 << iota
	contextEnded
)

// ownLoop sends changes and bookmarks from the handler alone. It waits for one channel, as
// waiting for one of several costs each event more.
func (w *stream) ownLoop(ctx context.Context, out output) error {
	w.timer = time.AfterFunc(w.untilBookmark(), func() { w.happens(timerFired) })
	defer w.timer.Stop()
	defer context.AfterFunc(ctx, func() { w.happens(contextEnded) })()
	for {
		if err := w.drain(ctx, out); err != nil {
			return err
		}
		<-w.watcher.Ready()
		if w.alarms.Load() == 0 {
			continue
		}
		if w.alarms.Swap(0)&contextEnded != 0 || !time.Now().Before(w.end) {
			return nil
		}
		w.due = w.bookmarks
		w.timer.Reset(w.untilBookmark())
	}
}

// happens wakes ownLoop.
func (w *stream) happens(what uint32) {
	w.alarms.Or(what)
	w.watcher.Wake()
}

// untilBookmark is the time until a bookmark is due, or the end.
func (w *stream) untilBookmark() time.Duration {
	left := time.Until(w.end)
	if !w.bookmarks || left <= bookmarkBefore {
		return left
	}
	return min(bookmarkEvery, left-bookmarkBefore)
}
