package watches

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/ratelog"
	"github.com/rowlock/rowlock/server/relay"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/server/wire"
	"github.com/rowlock/rowlock/sqlstore"
)

// Measure counts and measures watches.
type Measure interface {
	// Watch counts a watch; the function that it returns takes the size of each event that was sent.
	Watch(r *kinds.Resource) (sent func(bytes int))
	// Sharded counts a watch with a shard selector, until ShardedEnded; leftOut counts an object that is not in its shard.
	Sharded(r *kinds.Resource) (leftOut func())
	ShardedEnded(r *kinds.Resource)
	// InitialEvents takes the time in which a watch sent its initial events.
	InitialEvents(r *kinds.Resource, info *request.Info, took time.Duration)
	// Terminated counts a watch that ended because its client was too slow.
	Terminated(r *kinds.Resource)
}

// Server serves watches. Its fields are set once, before the first request.
type Server struct {
	Objects *objects.Store
	Answers *answers.Answers           // encodes frames, and makes the initial events of many watches take turns
	Sent    func(http2, detached bool) // is called as a watch begins; may be nil
	Measure Measure                    // may be nil
	Log     *slog.Logger               // nil: slog.Default
	For     time.Duration              // a watch without timeoutSeconds lasts this to twice this; 0: half an hour

	wheel timerWheel
	slow  ratelog.Line // clients that do not read can cause any number
}

const (
	// A watch without timeoutSeconds ends after one to two times this, unless Server.For sets it,
	// so that watches spread over servers again.
	usualDuration = 30 * time.Minute

	// Bookmarks come this often, and this long before the end.
	bookmarkEvery  = time.Minute
	bookmarkBefore = 2 * time.Second
)

// Watch is a watch that can be served.
type Watch struct{ stream *stream }

// stream is one watch. Its handler holds mu, except while it waits: then goroutines of the cache may send new events
// (push), so that the handler need not wake up.
type stream struct {
	mu           sync.Mutex
	over         bool // nothing may be sent any more
	complete     bool // nothing is missing from the answer
	outlives     bool // it continues after the handler has returned
	up           bool // its time is up
	callsWebhook bool // its events may need a webhook
	panicked     any  // what push ended with

	server  *Server
	request *answers.Request
	options *objects.ListOptions
	view    *answers.View

	watcher   *cache.Watcher
	there     *objects.Collection // the objects at the beginning; nil for a watch from a revision
	failed    error               // why the watch ends
	begun     bool                // a frame has been sent
	due       bool                // a bookmark is to be sent
	bookmarks bool
	end       time.Time
	timer     *time.Timer
	signals   atomic.Uint32
	conn      wire.Conn // of HTTP/2; else nil
	filter    *cache.Filter
	batch     []cache.Delivery
	rest      []cache.Delivery                                   // of batch: not sent yet
	first     any                                                // key of the first event's frame
	later     any                                                // key of all other frames
	make      func(cache.EventType, *cache.Item) ([]byte, error) // w.event
	sent      func(bytes int)                                    // counts each event

	// Of a watch whose handler has returned:
	ctx        context.Context
	out        *directOutput
	unlink     func() bool // stops watching ctx
	state      atomic.Uint32
	wheelFired atomic.Bool // the wheel has fired, and checkTimer was not called since
	wheelEntry wheelEntry
}

// New finds where a watch begins, by the options of a request, in a form that was negotiated. The caller must call Serve.
func (s *Server) New(q *answers.Request, o *objects.ListOptions, as codecs.Form) (Watch, error) {
	w := &stream{server: s, request: q, options: o, filter: o.Filter, bookmarks: o.AllowWatchBookmarks, sent: func(int) {}}
	if s.Measure != nil {
		w.sent = s.Measure.Watch(q.Resource)
	}
	var err error
	if w.view, err = s.Answers.View(q, as); err != nil {
		return Watch{}, err
	}
	// Handles are compared faster than their keys, and need no memory.
	w.first, w.later = unique.Make(w.view.Key(true)), unique.Make(w.view.Key(false))
	w.make = w.event
	if w.sharded() {
		w.filter.OutOfShard = s.Measure.Sharded(q.Resource)
	}
	err = w.start(q.R.Context())
	if w.failed == nil && s.Objects.Outdated(q.Resource) { // its watches may have been ended just before this one began
		w.failed = cache.ErrEnded
	}
	if w.watcher == nil && w.sharded() {
		s.Measure.ShardedEnded(q.Resource)
	}
	return Watch{w}, err
}

// start finds where the watch begins. A valid request for a compacted revision, or for a future one that does not arrive in
// time, begins a watch that fails.
func (w *stream) start(ctx context.Context) error {
	o, store, permit := w.options, w.server.Objects, w.request.Scope.Permit
	revision, err := o.Revision(false)
	if err != nil {
		return err
	}
	at := objects.Place{Resource: w.request.Resource, Namespace: o.Namespace, Name: o.Name}
	scope := cache.Scope{Filter: o.Filter, User: w.request.User()}
	if conn := wire.From(ctx); conn != nil && w.request.R.ProtoMajor == 2 {
		scope.Group, w.conn = conn, conn
	}
	if revision > 0 && !o.InitialEvents() {
		w.watcher, err = store.Watch(permit, at, scope, revision)
		var gone *sqlstore.CompactedError
		if errors.As(err, &gone) {
			w.failed, err = err, nil
		}
		return err
	}
	switch {
	case revision > 0:
		if err = store.Reach(ctx, revision); apierrors.IsTimeout(err) {
			w.failed, err = err, nil
			return nil
		}
	case o.ResourceVersion == "":
		err = store.CatchUp(ctx)
	}
	if err != nil {
		return err
	}
	w.watcher, w.there, err = store.WatchNow(permit, at, scope)
	return err
}

// stop stops the watcher.
func (w *stream) stop() {
	w.watcher.Stop()
	if w.sharded() {
		w.server.Measure.ShardedEnded(w.request.Resource)
	}
}

// sharded reports whether the watch counts as one with a shard selector.
func (w *stream) sharded() bool {
	return w.server.Measure != nil && w.filter != nil && w.filter.Shard != nil
}

// Serve sends the events, or has them sent once the handler and the filters around it have returned. Serve is on the
// stack of every watch whose handler stays, and so are the functions that it calls: each takes little stack, and that of New
// is free by then.
func (v Watch) Serve() error {
	w := v.stream
	defer w.returned()
	if relay.WebSocket(w.request.R.Header) {
		return w.serveWebSocket()
	}
	if out := w.begin(); out != nil {
		defer w.leave(out)
		if w.complete = !errors.Is(w.run(w.request.R.Context(), out), errSlow); !w.complete {
			panic(http.ErrAbortHandler)
		}
	}
	return nil
}

// returned stops the watcher, unless the watch outlives the handler.
func (w *stream) returned() {
	if w.watcher != nil && !w.outlives {
		w.stop()
	}
}

// leave ends the answer, unless the watch outlives the handler.
func (w *stream) leave(out closer) {
	if w.outlives {
		return
	}
	w.finish(out)
	if direct, ok := out.(*directOutput); ok {
		direct.stream.Over()
	}
}

// begin starts the answer; from here on errors are events. It returns nil if the client has disconnected.
func (w *stream) begin() closer {
	rw, r := w.request.W, w.request.R
	rw.Header().Set("Content-Type", w.view.Negotiated().StreamType())
	rw.WriteHeader(http.StatusOK)
	standard := newStandardOutput(rw, r)
	if w.request.Scope.Waiting(standard.flush) != nil {
		standard.close(false)
		return nil
	}
	var detached wire.Stream
	ok := false
	if w.request.Scope.CanDetach() {
		_ = w.request.Scope.Waiting(func() error { // if it gets no seat again its context has ended, which run notices
			detached, ok = wire.Detach(rw)
			return nil
		})
	}
	if w.server.Sent != nil {
		w.server.Sent(r.ProtoMajor == 2, ok)
	}
	if !ok {
		return standard
	}
	standard.close(false)
	return &directOutput{stream: detached, w: rw}
}

// finish ends the answer: nothing is written from here on.
func (w *stream) finish(out closer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	out.close(w.complete)
}

// run sends everything, and an ERROR event if the watch fails.
func (w *stream) run(ctx context.Context, out output) error {
	err := w.failed
	if err == nil {
		if unread := cache.Try(func() { err = w.events(ctx, out) }); unread != nil {
			err = unread
		}
	}
	w.request.Scope.Begun() // the first event may be the error that ends the watch
	w.conclude(ctx, out, err)
	return err
}

// conclude sends the error that has ended the watch, if the client can read it.
func (w *stream) conclude(ctx context.Context, out output, err error) {
	if err != nil && !errors.Is(err, errGone) && !errors.Is(err, answers.ErrNoList) && !errors.Is(err, cache.ErrEnded) && ctx.Err() == nil {
		w.fail(out, err)
	}
}

// fail ends the watch with an ERROR event, or without one if the client is too slow.
func (w *stream) fail(out output, err error) {
	r, path, id := w.request.Resource, w.request.Scope.Info.Path, w.request.Scope.ID
	if errors.Is(err, cache.ErrSlow) {
		if w.server.Measure != nil {
			w.server.Measure.Terminated(r)
		}
		w.server.slow.Log(context.Background(), w.server.log(), slog.LevelInfo, "watch cut off: the client is too slow", "path", path, "audit-id", id)
		return
	}
	st, unknown := status.Of(err, r.GroupResource())
	if unknown {
		w.server.log().Error("watch failed", "path", path, "audit-id", id, "error", err)
	}
	if frame, err := w.view.Error(st); err == nil && out.send(frame) == nil {
		_ = out.flush() // the watch ends in any case
	}
}

func (s *Server) log() *slog.Logger { return cmp.Or(s.Log, slog.Default()) }

// duration returns the time until the watch ends.
func (w *stream) duration() time.Duration {
	if seconds := w.options.TimeoutSeconds; seconds != nil && *seconds != 0 {
		return time.Duration(min(*seconds, 1<<31)) * time.Second
	}
	usual := w.server.For
	if usual <= 0 {
		usual = usualDuration
	}
	return time.Duration(float64(usual) * (1 + rand.Float64()))
}

// events sends the initial events, then changes and bookmarks until the time is up.
func (w *stream) events(ctx context.Context, out output) error {
	if seconds := w.options.TimeoutSeconds; seconds != nil && *seconds < 0 {
		w.request.Scope.Begun()
		return nil // the time is up before the first event, as in a stock server
	}
	w.end = time.Now().Add(w.duration())
	if w.there != nil && w.options.SyntheticEvents() {
		if err := w.initial(out); err != nil {
			return err
		}
		if m := w.server.Measure; m != nil && w.options.InitialEvents() {
			m.InitialEvents(w.request.Resource, w.request.Scope.Info, time.Since(w.request.Scope.Received))
		}
	}
	w.there = nil
	w.request.Scope.Begun()
	if direct, ok := out.(*directOutput); ok {
		w.detach(ctx, direct)
		return nil
	}
	return w.handlerLoop(ctx, out)
}

// Causes that wake handlerLoop besides changes.
const (
	timerFired uint32 = 1 << iota
	contextEnded
)

// handlerLoop sends changes and bookmarks from the handler. It waits for a single channel, because a select over several
// would make each event more expensive.
func (w *stream) handlerLoop(ctx context.Context, out output) error {
	w.timer = time.AfterFunc(w.untilBookmark(), func() { w.signal(timerFired) })
	defer w.timer.Stop()
	defer context.AfterFunc(ctx, func() { w.signal(contextEnded) })()
	for {
		if err := w.drain(ctx, out); err != nil {
			return err
		}
		<-w.watcher.Ready()
		if w.signals.Load() == 0 {
			continue
		}
		if w.signals.Swap(0)&contextEnded != 0 || !time.Now().Before(w.end) {
			return nil
		}
		w.due = w.bookmarks
		w.timer.Reset(w.untilBookmark())
	}
}

// signal wakes handlerLoop.
func (w *stream) signal(what uint32) {
	w.signals.Or(what)
	w.watcher.Wake()
}

// untilBookmark returns the time until a bookmark is due, or the end.
func (w *stream) untilBookmark() time.Duration {
	left := time.Until(w.end)
	if !w.bookmarks || left <= bookmarkBefore {
		return left
	}
	return min(bookmarkEvery, left-bookmarkBefore)
}
