package watches

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/server/wire"
)

// Objects is what watches use of what is stored; objects.Store implements it.
type Objects interface {
	// Watch starts a watcher of the changes after a revision.
	Watch(p permits.Permit, at objects.Place, scope cache.Scope, after int64) (*cache.Watcher, error)
	// WatchNow starts a watcher of the changes after what there is now, which it returns too.
	WatchNow(p permits.Permit, at objects.Place, scope cache.Scope) (*cache.Watcher, *objects.Collection, error)
	// Reach waits until memory has a revision, and CatchUp for the newest that is stored.
	Reach(ctx context.Context, revision int64) error
	CatchUp(ctx context.Context) error
	// Each calls fn with what a filter selects of a collection.
	Each(ctx context.Context, r *kinds.Resource, from *objects.Collection, f *cache.Filter, at cache.Position, fn func(*cache.Item) bool) error
	// Selects says whether a filter selects an item.
	Selects(ctx context.Context, r *kinds.Resource, f *cache.Filter, it *cache.Item) (bool, error)
}

// Answers makes the frames of a watch, and has the beginnings of many take turns;
// answers.Answers implements it.
type Answers interface {
	View(q *answers.Request, as codecs.Form) (*answers.View, error)
	Pace(q *answers.Request) answers.Pace
}

// Measure is told what watches do.
type Measure interface {
	// Watch is told of a watch; what it returns, of the bytes of each event sent.
	Watch(r *kinds.Resource) (sent func(bytes int))
	// InitialEvents takes the time until a watch had sent what there was.
	InitialEvents(r *kinds.Resource, info *request.Info, took time.Duration)
	// Terminated is told of each watch that was cut off because its client was too slow.
	Terminated(r *kinds.Resource)
}

// Server serves watches. Its fields are set once, before the first request.
type Server struct {
	Objects Objects
	Answers Answers
	Sent    func(http2, detached bool) // is told of each watch that begins; nil: nobody
	Measure Measure                    // nil: nobody measures
	Log     *slog.Logger               // nil: slog.Default
	For     time.Duration              // a watch without timeoutSeconds lasts this to twice this; 0: half an hour

	clock clock
}

const (
	// A watch without timeoutSeconds ends after one to two times this, unless Server.For
	// says otherwise, so that watches spread over servers again.
	usualDuration = 30 * time.Minute

	// Bookmarks come this often, and this long before the end.
	bookmarkEvery  = time.Minute
	bookmarkBefore = 2 * time.Second

	// A client that takes nothing for this long has gone.
	writeTimeout = 30 * time.Second
)

// nobody is told of what is sent.
func nobody(int) {}

// Watch is one watch that can be served.
type Watch struct{ stream *stream }

// New finds where a watch begins, by the options of a request, in a form that was
// negotiated. Serve must be called.
func (s *Server) New(q *answers.Request, o *objects.ListOptions, as codecs.Form) (Watch, error) {
	w := &stream{server: s, request: q, options: o, filter: o.Filter, bookmarks: o.AllowWatchBookmarks, sent: nobody}
	if s.Measure != nil {
		w.sent = s.Measure.Watch(q.Resource)
	}
	var err error
	if w.view, err = s.Answers.View(q, as); err != nil {
		return Watch{}, err
	}
	w.prepare()
	return Watch{w}, w.start(q.R.Context())
}

// Serve sends the events, or has them sent when all have returned. It stands on the stack of every watch whose handler stays, as do those it
// calls: each takes little of it, and what New needs is free by then.
func (w Watch) Serve() error { return w.stream.serve() }

func (w *stream) serve() error {
	defer w.returned()
	if isWebSocket(w.request.R) {
		return w.serveWebSocket()
	}
	if out := w.begin(); out != nil {
		defer w.leave(out)
		w.run(w.request.R.Context(), out)
		w.complete = true
	}
	return nil
}

// returned stops the watcher, unless the watch goes on.
func (w *stream) returned() {
	if w.watcher != nil && !w.outlives {
		w.watcher.Stop()
	}
}

// leave ends the answer, unless it goes on.
func (w *stream) leave(out closer) {
	if w.outlives {
		return
	}
	w.finish(out)
	if direct, ok := out.(*directOutput); ok {
		direct.stream.Over()
	}
}

// begin starts the answer; from here on errors are events. It is nil if the client has
// gone.
func (w *stream) begin() closer {
	rw, r := w.request.W, w.request.R
	rw.Header().Set("Content-Type", w.view.Negotiated().StreamType())
	rw.WriteHeader(http.StatusOK)
	standard := newStandardOutput(rw, r)
	if w.waiting(standard.flush) != nil {
		standard.close(false)
		return nil
	}
	var detached wire.Stream
	ok := false
	if w.request.Scope.Outlivable() {
		_ = w.waiting(func() error { // without a seat again its context has ended, which is seen soon enough
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

// finish ends the answer. From here on nobody writes it.
func (w *stream) finish(out closer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	out.close(w.complete)
}

// run sends everything, and an ERROR event if the watch fails.
func (w *stream) run(ctx context.Context, out output) {
	err := w.failed
	if err == nil {
		err = w.events(ctx, out)
	}
	w.request.Scope.Begun() // it may be an error with which it begins, and ends
	w.conclude(ctx, out, err)
}

// conclude says what has ended a watch, if that is an error that the client can be told of.
func (w *stream) conclude(ctx context.Context, out output, err error) {
	if err != nil && !errors.Is(err, errGone) && !errors.Is(err, answers.ErrNoList) && !errors.Is(err, cache.ErrEnded) && ctx.Err() == nil {
		w.fail(out, err)
	}
}

// fail ends the watch with an ERROR event; one whose client is too slow, without.
func (w *stream) fail(out output, err error) {
	r, path, id := w.request.Resource, w.request.Scope.Info.Path, w.request.Scope.ID
	if errors.Is(err, cache.ErrSlow) {
		if w.server.Measure != nil {
			w.server.Measure.Terminated(r)
		}
		w.server.log().Info("watch cut off: the client is too slow", "path", path, "audit-id", id)
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

func (s *Server) log() *slog.Logger {
	if s.Log == nil {
		return slog.Default()
	}
	return s.Log
}
