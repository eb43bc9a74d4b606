// Package direct carries requests to a handler of the same process without a network, as an http.RoundTripper
// for clients.
//
// Answers stream, so that a watch shows each event when it is sent. A client that does not read stops the
// handler after window bytes, until the write deadline of the handler; the read deadline ends the wait for a
// client's body. A request that the client cancels is canceled in the handler. Close ends all handlers,
// including those that wait for a client, and waits for them. The transport may set the identity, which
// cannot be forged because it is not part of the request.
//
// Each request has one goroutine of the Transport, for which Close waits.
package direct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/rowlock/rowlock/authx"
)

// Transport carries requests to a handler.
type Transport struct {
	handler http.Handler
	ctx     context.Context // of all requests
	end     context.CancelFunc

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// New makes a Transport. Close must be called.
func New(h http.Handler) *Transport {
	t := &Transport{handler: h}
	t.ctx, t.end = context.WithCancel(context.Background())
	return t
}

// Close ends all requests and waits for them. Later ones fail.
func (t *Transport) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.end()
	t.wg.Wait()
}

// As makes requests as a user, whatever credentials they contain. Nil: as the user of their credentials.
func (t *Transport) As(who *authx.Identity) http.RoundTripper { return &way{t, who} }

type way struct {
	*Transport
	who *authx.Identity
}

// userKey is the key of the user in the context of a request.
type userKey struct{}

// Authenticator recognizes the users of a Transport.
type Authenticator struct{}

// Authenticate implements authx.Authenticator.
func (Authenticator) Authenticate(r *http.Request) (*authx.Authenticated, bool, error) {
	who, _ := r.Context().Value(userKey{}).(*authx.Identity)
	return &authx.Authenticated{Identity: who}, who != nil, nil
}

// enter counts a request; false: the Transport is closed.
func (t *Transport) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.wg.Add(1)
	}
	return !t.closed
}

// RoundTrip implements http.RoundTripper.
func (w *way) RoundTrip(r *http.Request) (*http.Response, error) {
	if !w.enter() {
		if r.Body != nil {
			_ = r.Body.Close() // it is not read
		}
		return nil, http.ErrServerClosed
	}
	base := w.ctx
	if w.who != nil {
		base = context.WithValue(base, userKey{}, w.who)
	}
	ctx, cancel := context.WithCancel(base)
	in := received(ctx, r)
	a := newAnswer(in.Body, cancel)
	unlink := context.AfterFunc(r.Context(), func() { a.give(r.Context().Err()) })
	stay := context.AfterFunc(w.ctx, a.leave)
	go func() {
		defer w.wg.Done()
		defer unlink()
		defer stay()
		defer cancel()
		serve(w.handler, a, in)
	}()
	select {
	case <-a.begun:
	case <-r.Context().Done():
		a.give(r.Context().Err())
		return nil, r.Context().Err()
	}
	if a.code == 0 {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, io.ErrUnexpectedEOF)
	}
	return &http.Response{
		Status: strconv.Itoa(a.code) + " " + http.StatusText(a.code), StatusCode: a.code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: a.shown, Body: a, ContentLength: a.length(), Request: r,
	}, nil
}

// received returns a client's request as a server receives it.
func received(ctx context.Context, r *http.Request) *http.Request {
	in := r.Clone(ctx)
	in.RequestURI, in.RemoteAddr = r.URL.RequestURI(), "127.0.0.1:0"
	in.Proto, in.ProtoMajor, in.ProtoMinor = "HTTP/1.1", 1, 1
	in.Host = cmp.Or(in.Host, r.URL.Host)
	in.URL.Scheme, in.URL.Host = "", ""
	if in.Body == nil {
		in.Body = http.NoBody
	}
	return in
}

// serve runs the handler. If it aborts its answer, the client gets a part of it and an error.
func serve(h http.Handler, a *answer, r *http.Request) {
	defer r.Body.Close()
	defer func() {
		p := recover()
		switch err, ok := p.(error); {
		case p == nil:
			a.finish(nil)
		case ok && errors.Is(err, http.ErrAbortHandler):
			a.finish(io.ErrUnexpectedEOF)
		default:
			a.finish(io.ErrUnexpectedEOF)
			panic(p)
		}
	}()
	h.ServeHTTP(a, r)
}
