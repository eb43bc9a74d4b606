package conns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2/hpack"
)

// shortStream is a short request and its answer.
type shortStream struct {
	http2Stream
	shorts *shorts
	req    *http.Request
	length int       // of the body, as announced
	since  time.Time // when its headers came
	body   []byte    // what has come of it

	cancel context.CancelFunc // nil until the handler runs; guarded by shorts.mu
	answer shortAnswer
}

// request makes a request of the block, or nil if it is none that is taken.
func (s *shorts) request() *shortStream {
	b := &s.block
	if b.size > b.limit || b.id%2 == 0 || len(b.fields) < 4 {
		return nil
	}
	var method, path, host string
	seen := 0
	for seen < len(b.fields) && strings.HasPrefix(b.fields[seen].Name, ":") {
		switch f := &b.fields[seen]; {
		case f.Name == ":method" && method == "":
			method = f.Value
		case f.Name == ":path" && path == "":
			path = f.Value
		case f.Name == ":authority" && host == "" && !strings.Contains(f.Value, "@"):
			host = f.Value
		case f.Name != ":scheme" || f.Value != "https":
			return nil
		}
		seen++
	}
	if seen != 4 || method == "" || path == "" || host == "" || !s.is(method, path) {
		return nil
	}
	header := shortHeader(b.fields[seen:])
	length, ok := announced(header, b.end)
	if header == nil || !ok {
		return nil
	}
	target, err := url.ParseRequestURI(path)
	if err != nil {
		return nil
	}
	st := &shortStream{shorts: s, length: length}
	st.conn, st.id = s.conn, b.id
	st.req = &http.Request{
		Method: method, URL: target, RequestURI: path, Host: host, Header: header, ContentLength: int64(length),
		Proto: "HTTP/2.0", ProtoMajor: 2, RemoteAddr: s.asker(), TLS: s.tls,
	}
	return st
}

// asker is the address of the client; s.tls is set as well.
func (s *shorts) asker() string {
	if s.tls == nil {
		state := s.conn.ConnectionState()
		s.tls, s.remote = &state, s.conn.RemoteAddr().String()
	}
	return s.remote
}

// shortHeader makes a header of fields, or nil if there is one that asks for more than an
// answer, or is none.
func shortHeader(fields []hpack.HeaderField) http.Header {
	header := make(http.Header, len(fields))
	values := make([]string, 0, len(fields))
	for i := range fields {
		f := &fields[i]
		switch f.Name {
		case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "expect", "host", "cookie", "priority":
			return nil
		}
		if !httpguts.ValidHeaderFieldName(f.Name) || strings.ToLower(f.Name) != f.Name || !httpguts.ValidHeaderFieldValue(f.Value) {
			return nil
		}
		key := http.CanonicalHeaderKey(f.Name)
		if have := header[key]; have != nil {
			header[key] = append(have, f.Value)
			continue
		}
		values = append(values, f.Value)
		header[key] = values[len(values)-1 : len(values) : len(values)]
	}
	return header
}

// announced is how long a body will be; ok is false where that is not known, or too much.
func announced(header http.Header, end bool) (n int, ok bool) {
	said := header["Content-Length"]
	if len(said) > 1 || len(said) == 0 && !end {
		return 0, false
	}
	if len(said) == 0 {
		return 0, true
	}
	length, err := strconv.ParseUint(said[0], 10, 31)
	return int(length), err == nil && length <= shortBody && (length == 0) == end
}

// take begins to serve a request, if there is room for it.
func (s *shorts) take(f *flowControl, st *shortStream) bool {
	if time.Since(s.last) >= shortPassEvery || !s.conn.greeted.Load() || !s.conn.delivery.Direct() || s.conn.queue.blocked() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.streams) >= shortMax || s.awaited+st.length > shortBodies || !f.take(&st.http2Stream) {
		return false
	}
	s.streams[st.id] = st
	if s.block.end {
		s.run(st)
		return true
	}
	s.awaited += st.length
	st.since = time.Now()
	if s.overdue == nil {
		s.overdue = time.AfterFunc(clientPatience, s.late)
	}
	return true
}

// late ends requests whose bodies have not come for too long.
func (s *shorts) late() {
	s.mu.Lock()
	s.overdue = nil
	left := false
	var ended []uint32
	for id, st := range s.streams {
		if st.cancel != nil {
			continue
		}
		if time.Since(st.since) >= clientPatience {
			s.drop(id, st)
			ended = append(ended, id)
			continue
		}
		left = true
	}
	if left && !s.closed {
		s.overdue = time.AfterFunc(clientPatience, s.late)
	}
	s.mu.Unlock()
	for _, id := range ended {
		s.conn.resetStream(id, resetCancel)
	}
}

// waiting is a stream whose body has not wholly come; nil if id is none.
func (s *shorts) waiting(id uint32) *shortStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.streams[id]; st != nil && st.cancel == nil {
		return st
	}
	return nil
}

// data takes a part of a body.
func (s *shorts) data(r *frameReader, from io.Reader, h *head, st *shortStream) error {
	n := h.length()
	if err := r.fill(from, frameHead+n); err != nil {
		return err
	}
	r.have = 0
	part, ok := unpadded(h, r.buf[frameHead:frameHead+n])
	if !ok {
		return errFrames
	}
	if s.taken += n; s.taken >= shortWindow {
		s.conn.frames.addUpdate(s.taken)
		s.taken = 0
	}
	if len(st.body)+len(part) > st.length {
		s.reset(st.id)
		s.conn.resetStream(st.id, resetProtocol)
		return nil
	}
	if st.body == nil {
		st.body = make([]byte, 0, st.length)
	}
	if st.body = append(st.body, part...); h.has(endStream) {
		s.begin(st)
	}
	if cap(r.buf) > largestFrame {
		r.buf = nil
	}
	return nil
}

// begin serves a request of which nothing more will come.
func (s *shorts) begin(st *shortStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.streams[st.id] != st || st.cancel != nil {
		return // it was too late
	}
	s.awaited -= st.length
	s.run(st)
}

// run starts the handler. The caller holds s.mu.
func (s *shorts) run(st *shortStream) {
	st.ctx, st.cancel = context.WithCancel(s.base)
	body := io.Reader(bytes.NewReader(st.body))
	if len(st.body) < st.length {
		body = io.MultiReader(body, failing{fmt.Errorf("request declared a Content-Length of %d but only wrote %d bytes", st.length, len(st.body))})
	}
	st.req.Body = io.NopCloser(body)
	st.req = st.req.WithContext(st.ctx)
	s.handlers.Go(st.serve)
}

// failing is a body that ends with an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// serve calls the handler and ends the answer.
func (st *shortStream) serve() {
	s := st.shorts
	defer func() {
		s.mu.Lock()
		delete(s.streams, st.id)
		s.mu.Unlock()
		s.conn.flow.remove(&st.http2Stream)
		st.cancel()
	}()
	whole := false
	defer func() {
		if whole {
			return
		}
		reason := recover()
		st.answer.ends()
		st.conn.resetStream(st.id, resetInternal)
		if err, is := reason.(error); !is || !errors.Is(err, http.ErrAbortHandler) {
			st.logPanic(reason)
		}
	}()
	makeRoom(len(st.req.Method))
	p := pieces.Get().(*piece)
	st.answer.stream, st.answer.header, st.answer.piece = st, make(http.Header, 8), p
	s.handler.ServeHTTP(&st.answer, st.req)
	st.answer.end()
	whole = true
	if p.block.Cap() <= largestFrame {
		p.body = p.body[:0]
		p.block.Reset()
		pieces.Put(p)
	}
}

// logPanic says what a handler panicked with, as package http2 does.
func (st *shortStream) logPanic(reason any) {
	text := fmt.Sprintf("http2: panic serving %v: %v\n%s", st.req.RemoteAddr, reason, debug.Stack())
	if to := st.shorts.hs.ErrorLog; to != nil {
		to.Print(text)
		return
	}
	log.Print(text)
}
