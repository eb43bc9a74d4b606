package conns

import (
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
	room   int       // bytes that its window has for the client
	fill   int       // bytes of padding that the client was not given back yet

	cancel context.CancelFunc // nil until the handler runs; guarded by shorts.mu
	answer shortAnswer
}

// request makes a request of the block, or nil if it is none that is taken.
func (s *shorts) request() *shortStream {
	b := &s.block
	if b.size > b.limit || b.id%2 == 0 || len(b.fields) < 4 || len(b.fields) > shortFields || b.selfish() {
		return nil
	}
	var method, path, host string
	seen := 0
	for seen < len(b.fields) && strings.HasPrefix(b.fields[seen].Name, ":") {
		switch f := &b.fields[seen]; {
		case !httpguts.ValidHeaderFieldValue(f.Value):
			return nil
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
	if seen != 4 || !plainMethod(method) || !strings.HasPrefix(path, "/") || host == "" || !s.is(method, path) {
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
	st := &shortStream{shorts: s, length: length, room: s.window}
	st.conn, st.id = s.conn, b.id
	st.req = &http.Request{
		Method: method, URL: target, RequestURI: path, Host: host, Header: header, ContentLength: int64(length),
		Proto: "HTTP/2.0", ProtoMajor: 2, RemoteAddr: s.asker(), TLS: s.tls,
	}
	return st
}

// plainMethod says whether answers to a method are what a handler writes.
func plainMethod(method string) bool {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	}
	return false
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
		if !validField(f) {
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

// validField says whether a field is one that HTTP/2 knows, and of no pseudo header.
func validField(f *hpack.HeaderField) bool {
	return httpguts.ValidHeaderFieldName(f.Name) && strings.ToLower(f.Name) == f.Name && httpguts.ValidHeaderFieldValue(f.Value)
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
	if !s.conn.rest.alone.Load() && time.Since(s.last) >= shortPassEvery || !s.conn.greeted.Load() || !s.conn.delivery.Direct() || s.conn.queue.blocked() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving || len(s.streams) >= s.most || s.awaited+st.length > shortBodies || !f.take(&st.http2Stream) {
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
	defer s.guard()
	for _, id := range s.overdueNow() {
		s.conn.resetStream(id, resetCancel)
	}
}

// overdueNow forgets those requests, and looks again later if others are left.
func (s *shorts) overdueNow() (ended []uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.overdue = nil
	for id, st := range s.streams {
		switch {
		case st.cancel != nil:
		case time.Since(st.since) >= clientPatience:
			s.drop(id, st)
			ended = append(ended, id)
		case s.overdue == nil && !s.closed:
			s.overdue = time.AfterFunc(clientPatience, s.late)
		}
	}
	return ended
}

// find is a stream that is under way, and whether its body is waited for; nil if id is none.
func (s *shorts) find(id uint32) (st *shortStream, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st = s.streams[id]
	return st, st != nil && st.cancel == nil
}

// waiting is a stream whose body has not wholly come; nil if id is none.
func (s *shorts) waiting(id uint32) *shortStream {
	if st, waits := s.find(id); waits {
		return st
	}
	return nil
}

// data takes a part of a body, or of what has ended where st is nil.
func (s *shorts) data(r *frameReader, from io.Reader, h *head, st *shortStream) error {
	n := h.length()
	if err := r.fill(from, frameHead+n); err != nil {
		return err
	}
	part, ok := unpadded(h, r.buf[frameHead:frameHead+n])
	if !ok {
		r.pass(frameHead + n) // package http2 says what is wrong
		return nil
	}
	r.have = 0
	if s.taken += n; s.taken >= shortWindow {
		s.conn.frames.addNumber(updateFrame, 0, uint32(s.taken))
		s.conn.sendQueued(false)
		s.taken = 0
	}
	code := uint32(0)
	switch {
	case st == nil:
		code = resetClosed
	case len(st.body)+len(part) > st.length:
		code = resetProtocol
	case n > st.room:
		code = resetFlow
	}
	if code != 0 {
		s.refuse(h.stream(), code)
	} else if st.add(part, h.has(endStream), n); h.has(endStream) {
		s.begin(st)
	}
	if cap(r.buf) > largestFrame {
		r.buf = nil
	}
	return nil
}

// add adds a part of the body, which took n bytes of the stream's window. Of those only what
// is no body is given back: there is room for all of that.
func (st *shortStream) add(part []byte, last bool, n int) {
	if have, want := cap(st.body), len(st.body)+len(part); have < want {
		if want < st.length && !last {
			want = min(st.length, max(want, 2*have)) // no more than twice what was sent
		}
		body := make([]byte, len(st.body), want)
		copy(body, st.body)
		st.body = body
	}
	st.body = append(st.body, part...)
	st.room -= n
	if st.fill += n - len(part); st.fill >= enoughPadding && !last {
		st.room += st.fill
		st.conn.frames.addNumber(updateFrame, st.id, uint32(st.fill))
		st.conn.sendQueued(false)
		st.fill = 0
	}
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
	body := &wholeBody{left: st.body, end: io.EOF}
	if len(st.body) < st.length {
		body.end = fmt.Errorf("request declared a Content-Length of %d but only wrote %d bytes", st.length, len(st.body))
	}
	st.req.Body = body
	st.req = st.req.WithContext(st.ctx)
	s.handlers.Go(st.serve)
}

// wholeBody is a body of which nothing more will come.
type wholeBody struct {
	left []byte
	read bool  // a part of it
	end  error // what a reader is told behind it
}

// Read implements io.Reader.
func (b *wholeBody) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		return 0, b.end
	}
	n := copy(p, b.left)
	b.left, b.read = b.left[n:], b.read || n > 0
	return n, nil
}

// Close implements io.Closer.
func (b *wholeBody) Close() error { return nil }

// Whole hands a body of up to limit bytes over as it lies in memory, which nobody writes to any more.
// ok is false, and it is there to be read, if it is longer, or not all there.
func (b *wholeBody) Whole(limit int64) (body []byte, ok bool) {
	if b.read || len(b.left) == 0 || int64(len(b.left)) > limit || !errors.Is(b.end, io.EOF) {
		return nil, false
	}
	body, b.left = b.left, nil
	return body, true
}

// serve calls the handler and ends the answer.
func (st *shortStream) serve() {
	defer st.shorts.guard()
	defer st.shorts.served(st)
	makeRoomFor(st.req)
	p := pieces.Get().(*piece)
	st.answer.stream, st.answer.header, st.answer.piece = st, make(http.Header, 8), p
	st.handle()
	st.answer.end()
	st.answer.piece = nil // who writes now panics, and writes into nobody else's answer
	if p.block.Cap() <= largestFrame {
		p.body = p.body[:0]
		p.block.Reset()
		pieces.Put(p)
	}
}

// served forgets a request whose handler has returned.
func (s *shorts) served(st *shortStream) {
	s.mu.Lock()
	delete(s.streams, st.id)
	s.signal()
	s.mu.Unlock()
	s.conn.flow.remove(&st.http2Stream)
	st.cancel()
}

// handle calls the handler. One that panics, or ends its goroutine, has its stream reset.
func (st *shortStream) handle() {
	whole := false
	defer func() {
		if whole {
			return
		}
		reason := recover()
		st.answer.fail(resetInternal)
		if err, is := reason.(error); reason != nil && (!is || !errors.Is(err, http.ErrAbortHandler)) {
			st.logPanic(reason)
		}
	}()
	st.shorts.handler.ServeHTTP(&st.answer, st.req)
	whole = true
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
