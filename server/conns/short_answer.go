package conns

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2/hpack"
)

// shortPiece is how much of an answer is collected before it is sent.
const shortPiece = 32 << 10

// pieces lends the memory that answers are collected in.
var pieces = sync.Pool{New: func() any {
	p := &piece{}
	p.encoder = hpack.NewEncoder(&p.block)
	return p
}}

// piece is what of an answer is not sent yet. No header gets into a table, so that the
// encoder may be anybody's.
type piece struct {
	block   bytes.Buffer // of headers
	encoder *hpack.Encoder
	body    []byte
}

func (p *piece) add(name, value string) {
	_ = p.encoder.WriteField(hpack.HeaderField{Name: name, Value: value, Sensitive: true}) // a buffer takes everything
}

// addAll adds the fields of a header but for those of a connection, and others.
func (p *piece) addAll(h http.Header, but ...string) {
	for key, values := range h {
		if slices.Contains(but, key) || key == "Connection" || key == "Transfer-Encoding" || strings.HasPrefix(key, http.TrailerPrefix) || !httpguts.ValidHeaderFieldName(key) {
			continue
		}
		name := wireName(key)
		for _, v := range values {
			if httpguts.ValidHeaderFieldValue(v) {
				p.add(name, v)
			}
		}
	}
}

// wireNames are names of headers as HTTP/2 has them.
var wireNames = func() map[string]string {
	out := map[string]string{}
	for _, key := range []string{
		"Audit-Id", "Cache-Control", "Content-Type", "Content-Length", "Content-Encoding", "Date", "Vary", "Warning", "Location", "Retry-After",
		"X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid", "X-Content-Type-Options", "Strict-Transport-Security", "Www-Authenticate",
	} {
		out[key] = strings.ToLower(key)
	}
	return out
}()

func wireName(key string) string {
	if name, ok := wireNames[key]; ok {
		return name
	}
	return strings.ToLower(key)
}

// shortAnswer is the http.ResponseWriter of a short request. The answer leaves in one piece
// when the handler returns; one that is longer, or that is flushed, leaves in several and
// waits for the client.
type shortAnswer struct {
	stream  *shortStream
	header  http.Header
	piece   *piece
	code    int   // 0: no header was written
	length  int64 // as the header says; -1: it does not
	written int64 // bytes
	typed   bool  // the header says what the body is, or how it is encoded
	dated   bool
	sent    bool // the header has left
	done    bool // the handler has returned
	leaves  bool // the client is to go away
	err     error

	mu       sync.Mutex
	deadline *time.Timer // nil: none
	over     bool        // nothing is sent any more: it is whole, or was reset
}

// Header implements http.ResponseWriter.
func (a *shortAnswer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter. What is in the header later are trailers.
func (a *shortAnswer) WriteHeader(code int) {
	if code < 100 || code > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", code))
	}
	if a.code != 0 {
		return
	}
	p := a.piece
	p.add(":status", strconv.Itoa(code))
	if code < 200 {
		p.addAll(a.header, "Content-Length") // which is that of the answer to come
		a.queue(nil, false)
		return
	}
	a.code, a.length = code, -1
	if said := a.header["Content-Length"]; len(said) > 0 {
		if n, err := strconv.ParseInt(said[0], 10, 64); err == nil && n >= 0 {
			a.length = n
		} else {
			delete(a.header, "Content-Length")
		}
	}
	_, a.typed = a.header["Content-Type"]
	_, a.dated = a.header["Date"]
	a.typed = a.typed || a.header.Get("Content-Encoding") != ""
	a.leaves = a.header.Get("Connection") == "close"
	p.addAll(a.header)
}

// hasBody says whether an answer of a code may have one.
func hasBody(code int) bool {
	return code >= 200 && code != http.StatusNoContent && code != http.StatusNotModified
}

// Write implements http.ResponseWriter.
func (a *shortAnswer) Write(b []byte) (int, error) {
	if a.code == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if !hasBody(a.code) {
		return 0, http.ErrBodyNotAllowed
	}
	if a.written += int64(len(b)); a.sent && a.length >= 0 && a.written > a.length {
		return 0, errors.New("http2: handler wrote more than declared Content-Length")
	}
	for rest := b; len(rest) > 0; {
		if a.err != nil {
			return len(b) - len(rest), a.err
		}
		n := min(len(rest), shortPiece-len(a.piece.body))
		a.piece.body = append(a.piece.body, rest[:n]...)
		if rest = rest[n:]; len(a.piece.body) == shortPiece {
			a.send(false)
		}
	}
	return len(b), a.err
}

// WriteString implements io.StringWriter.
func (a *shortAnswer) WriteString(s string) (int, error) { return a.Write([]byte(s)) }

// Flush implements http.Flusher.
func (a *shortAnswer) Flush() { _ = a.FlushError() }

// FlushError serves http.ResponseController.
func (a *shortAnswer) FlushError() error {
	if a.code == 0 {
		a.WriteHeader(http.StatusOK)
	}
	a.send(false)
	return a.err
}

// SetReadDeadline serves http.ResponseController: the body is there.
func (a *shortAnswer) SetReadDeadline(time.Time) error { return nil }

// EnableFullDuplex serves http.ResponseController, over a protocol that always is.
func (a *shortAnswer) EnableFullDuplex() error { return nil }

// SetWriteDeadline serves http.ResponseController: the stream is reset when it has passed.
func (a *shortAnswer) SetWriteDeadline(at time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.deadline != nil {
		a.deadline.Stop()
		a.deadline = nil
	}
	if !at.IsZero() && !a.over {
		a.deadline = time.AfterFunc(time.Until(at), a.late)
	}
	return nil
}

// late ends an answer whose client does not take it in time.
func (a *shortAnswer) late() {
	defer a.stream.shorts.guard()
	a.fail(resetInternal)
}

// fail resets the stream of an answer that is not whole. Nothing of it is sent behind that.
func (a *shortAnswer) fail(code uint32) {
	if a.ends() {
		a.stream.cancel()
		a.stream.conn.resetStream(a.stream.id, code)
	}
}

// ends says, once, that the answer ends and that nothing has ended it before.
func (a *shortAnswer) ends() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	over := a.over
	a.over = true
	if a.deadline != nil {
		a.deadline.Stop()
	}
	return !over
}

// end sends what is left when the handler has returned.
func (a *shortAnswer) end() {
	if a.code == 0 {
		a.WriteHeader(http.StatusOK)
	}
	a.done = true
	trailers := a.trailers()
	a.send(len(trailers) == 0)
	if len(trailers) > 0 && a.err == nil {
		a.piece.addAll(trailers)
		a.queue(nil, true)
	}
	if a.ends(); a.leaves {
		a.stream.shorts.goAway()
	}
}

// trailers are what a handler left in the header under names that it announced.
func (a *shortAnswer) trailers() http.Header {
	var out http.Header
	keep := func(key string, values []string) {
		if out == nil {
			out = http.Header{}
		}
		out[key] = values
	}
	for key, values := range a.header {
		if name, ok := strings.CutPrefix(key, http.TrailerPrefix); ok {
			keep(http.CanonicalHeaderKey(name), values)
		}
	}
	for _, list := range a.header["Trailer"] {
		for name := range strings.SplitSeq(list, ",") {
			if key := http.CanonicalHeaderKey(strings.TrimSpace(name)); len(a.header[key]) > 0 {
				keep(key, a.header[key])
			}
		}
	}
	return out
}

// send sends what was collected; last says that nothing will follow.
func (a *shortAnswer) send(last bool) {
	if a.err != nil {
		return
	}
	p := a.piece
	if !a.sent {
		a.sent = true
		if a.length < 0 && a.done && hasBody(a.code) {
			p.add("content-length", strconv.Itoa(len(p.body)))
		}
		if !a.typed && hasBody(a.code) && len(p.body) > 0 {
			p.add("content-type", http.DetectContentType(p.body))
		}
		if !a.dated {
			p.add("date", time.Now().UTC().Format(http.TimeFormat))
		}
	}
	for body := p.body; ; {
		n := a.queue(body, last)
		if body = body[n:]; len(body) == 0 || a.err != nil {
			break
		}
		if a.err = a.wait(); a.err != nil {
			break
		}
	}
	p.body = p.body[:0]
	if !last && !a.done && a.err == nil { // more will come: the client is to have taken this
		a.err = a.stream.conn.queuedTaken(a.stream.ctx.Done())
	}
}

// wait waits for the client to grant more of a window.
func (a *shortAnswer) wait() error {
	s := &a.stream.http2Stream
	if err := s.conn.queuedTaken(s.ctx.Done()); err != nil {
		return err
	}
	err := s.conn.flow.awaitWindow(s.ctx, s)
	if err != nil && s.ctx.Err() == nil {
		a.fail(resetInternal)
		return os.ErrDeadlineExceeded
	}
	return err
}

// queue has the collected headers sent, and so much of the body as the windows have room for.
// last says that nothing follows the body.
func (a *shortAnswer) queue(body []byte, last bool) (n int) {
	if n, a.err = a.frames(body, last); a.err == nil {
		a.stream.conn.sendQueued(false)
	}
	return n
}

// frames makes frames of them, unless the stream was reset.
func (a *shortAnswer) frames(body []byte, last bool) (n int, err error) {
	c, p := a.stream.conn, a.piece
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return 0, os.ErrDeadlineExceeded
	}
	if n, err = c.flow.grant(&a.stream.http2Stream, len(body)); err != nil {
		return 0, err
	}
	if a.over = last && n == len(body); a.over {
		c.flow.remove(&a.stream.http2Stream) // the client may know the end before the handler has returned
	}
	c.frames.addAnswer(a.stream.id, p.block.Bytes(), body[:n], a.over)
	p.block.Reset()
	return n, nil
}
