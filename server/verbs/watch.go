package verbs

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/conns"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/sqlstore"
)

const (
	// A watch without timeoutSeconds ends after one to two times this, unless the
	// server says otherwise, so that watches spread over servers again.
	watchFor = 30 * time.Minute

	// Bookmarks come this often, and this long before the end.
	bookmarkEvery  = time.Minute
	bookmarkBefore = 2 * time.Second

	// A client that takes nothing for this long is gone.
	writeFor = 30 * time.Second
)

// watch streams the changes of a collection or of one object. It stands on the stack
// of every open watch, as do those it calls: each takes little of it.
func (h *Handler) watch(c *Call) error {
	s, err := h.newStream(c)
	if err != nil {
		return err
	}
	if s.watcher != nil {
		defer s.watcher.Stop()
	}
	if isWebSocket(c.R) {
		return s.serveWebSocket()
	}
	if out := s.begin(); out != nil {
		defer s.finish(out)
		s.run(c.R.Context(), out)
		out.whole = true
	}
	return nil
}

// newStream reads what is to be watched, and finds where it begins.
func (h *Handler) newStream(c *Call) (*stream, error) {
	if err := h.Answers.AcceptsList(&c.Request); err != nil {
		return nil, err
	}
	o, err := parseList(c, true)
	if err != nil {
		return nil, err
	}
	form, err := h.Answers.NegotiateWatch(&c.Request, !(o.InitialEvents() && o.AllowWatchBookmarks))
	if err != nil {
		return nil, err
	}
	if err := readSelectors(c, o); err != nil {
		return nil, err
	}
	s := &stream{h: h, c: c, o: o}
	s.sent = func(int) {}
	if h.Measure != nil {
		s.sent = h.Measure.Watch(c.Resource)
	}
	if s.v, err = h.Answers.View(&c.Request, form); err != nil {
		return nil, err
	}
	s.prepare()
	return s, s.open(c.R.Context())
}

// duration is how long the watch lasts.
func duration(o *objects.ListOptions, usual time.Duration) time.Duration {
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds != 0 {
		return time.Duration(max(0, min(*o.TimeoutSeconds, 1<<31))) * time.Second
	}
	if usual <= 0 {
		usual = watchFor
	}
	return time.Duration(float64(usual) * (1 + rand.Float64()))
}

// open finds where the watch begins.
func (s *stream) open(ctx context.Context) error {
	o, h := s.o, s.h
	revision, err := o.Revision(false)
	if err != nil {
		return err
	}
	at := objects.Place{Resource: s.c.Resource, Namespace: o.Namespace, Name: o.Name}
	scope := cache.Scope{Filter: o.Filter}
	if conn := conns.FromContext(ctx); conn != nil && s.c.R.ProtoMajor == 2 {
		scope.Group = conn
	}
	if revision > 0 && !o.InitialEvents() {
		s.watcher, err = h.Objects.Watch(s.c.Scope.Permit, at, scope, revision)
		var gone *sqlstore.CompactedError
		if errors.As(err, &gone) {
			// The request was good: the watch begins, and ends with an error.
			s.failed, err = err, nil
		}
		return err
	}
	switch {
	case revision > 0:
		if err = h.Objects.Reach(ctx, revision); apierrors.IsTimeout(err) {
			s.failed, err = err, nil
			return nil
		}
	case o.ResourceVersion == "":
		err = h.Objects.CatchUp(ctx)
	}
	if err != nil {
		return err
	}
	s.watcher, s.start, err = h.Objects.WatchNow(s.c.Scope.Permit, at, scope)
	return err
}

// begin starts the answer; from here on errors are events. It is nil if the client
// has gone.
func (s *stream) begin() *wire {
	w := s.c.W
	w.Header().Set("Content-Type", s.v.Negotiated().StreamType())
	w.WriteHeader(http.StatusOK)
	out := newWire(w, s.c.R)
	if out.flush() != nil {
		out.close()
		return nil
	}
	var err error
	if out.direct, err = s.h.Delivery.Open(s.c.R.Context(), w); err != nil {
		out.close()
		panic(http.ErrAbortHandler) // the client may have got a part of something
	}
	return out
}

// finish ends the answer. From here on nobody writes it.
func (s *stream) finish(out *wire) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	out.close()
}

// run sends everything, and an ERROR event if the watch fails.
func (s *stream) run(ctx context.Context, out sink) {
	err := s.failed
	if err == nil {
		err = s.events(ctx, out)
	}
	if err != nil && !errors.Is(err, errGone) && !errors.Is(err, answers.ErrNoList) && !errors.Is(err, cache.ErrEnded) && ctx.Err() == nil {
		s.fail(out, err)
	}
}

// fail ends the watch with an ERROR event.
func (s *stream) fail(out sink, err error) {
	if errors.Is(err, cache.ErrSlow) {
		if s.h.Measure != nil {
			s.h.Measure.Terminated(s.c.Resource)
		}
		s.h.log().Info("watch cut off: the client is too slow", "path", s.c.R.URL.Path, "audit-id", s.c.Scope.ID)
		return
	}
	st, unknown := status.Of(err, s.c.Resource.GroupResource())
	if unknown {
		s.h.log().Error("watch failed", "path", s.c.R.URL.Path, "audit-id", s.c.Scope.ID, "error", err)
	}
	if frame, err := s.v.Error(st); err == nil && out.send(frame) == nil {
		_ = out.flush()
	}
}
