package h2

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rowlock/rowlock/server/wire"
)

// pieceMax is how much of an answer is collected before it is sent.
const pieceMax = 32 << 10

// sniffed is how much of an answer tells what it is.
const sniffed = 512

// pieces lends the memory that answers are collected in.
var pieces = sync.Pool{New: func() any { return &piece{} }}

// piece is what of an answer is not sent yet.
type piece struct {
	headers headers
	body    []byte
}

// answer is the http.ResponseWriter of a request. The answer leaves in one piece when the handler
// returns; one that is longer, or that is flushed, leaves in several and waits for the client.
type answer struct {
	stream   *Stream
	request  *http.Request
	header   http.Header
	piece    *piece
	code     int   // 0: no header was written
	length   int64 // as the header says; -1: it does not
	written  int64 // bytes
	begun    bool  // the header has been sent
	done     bool  // the handler has returned
	typed    bool  // the header says what the body is, or how it is encoded
	dated    bool
	leaves   bool // the client is to go away
	detached bool // the answer goes on without the handler
	err      error

	deadline *time.Timer // of writes; guarded by mu
	mu       sync.Mutex
}

func newAnswer(s *Stream, r *http.Request) *answer {
	return &answer{stream: s, request: r, header: make(http.Header, 8), piece: pieces.Get().(*piece)}
}

// release gives back what the answer has borrowed. Whoever writes from now on panics, and writes
// into nobody else's answer.
func (a *answer) release() {
	p := a.piece
	a.piece = nil
	if a.detached { // filters keep the writer of a watch
		a.request, a.header = nil, nil
		_ = a.SetWriteDeadline(time.Time{}) // it does not fail
	}
	p.body = p.body[:0]
	p.headers.reset()
	if p.headers.plain.buf.Cap() <= frameMax && cap(p.body) <= 2*pieceMax {
		pieces.Put(p)
	}
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter. What is in the header later are trailers.
func (a *answer) WriteHeader(code int) {
	if code < 100 || code > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", code))
	}
	if a.code != 0 {
		return
	}
	if code < 200 {
		var h headers
		h.addStatus(code)
		h.addAll(a.header, "Content-Length") // which is that of the answer to come
		a.err = a.stream.write(&h, nil, false)
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
	a.piece.headers.addStatus(code)
	a.piece.headers.addAll(a.header, "")
}

// hasBody says whether the answer may have one.
func (a *answer) hasBody() bool {
	return a.code != http.StatusNoContent && a.code != http.StatusNotModified
}

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) {
	if a.code == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if !a.hasBody() {
		return 0, http.ErrBodyNotAllowed
	}
	if a.written += int64(len(b)); a.length >= 0 && a.written > a.length {
		return 0, http.ErrContentLength
	}
	if a.err != nil {
		return 0, a.err
	}
	p := a.piece
	if a.request.Method == http.MethodHead {
		p.body = append(p.body, b[:min(len(b), max(0, sniffed-len(p.body)))]...)
		return len(b), nil
	}
	if len(p.body)+len(b) <= pieceMax {
		p.body = append(p.body, b...)
		return len(b), nil
	}
	if len(p.body) > 0 {
		a.send(p.body, false)
		p.body = p.body[:0]
	}
	a.send(b, false)
	if a.err != nil {
		return 0, a.err
	}
	return len(b), nil
}

// WriteString implements io.StringWriter.
func (a *answer) WriteString(s string) (int, error) { return a.Write([]byte(s)) }

// Flush implements http.Flusher.
func (a *answer) Flush() { _ = a.FlushError() }

// FlushError serves http.ResponseController.
func (a *answer) FlushError() error {
	if a.code == 0 {
		a.WriteHeader(http.StatusOK)
	}
	a.send(a.piece.body, false)
	a.piece.body = a.piece.body[:0]
	return a.err
}

// SetReadDeadline serves http.ResponseController.
func (a *answer) SetReadDeadline(at time.Time) error {
	if b := a.stream.body; b != nil {
		b.setDeadline(at)
	}
	return nil
}

// EnableFullDuplex serves http.ResponseController, over a protocol that always is.
func (a *answer) EnableFullDuplex() error { return nil }

// SetWriteDeadline serves http.ResponseController: the stream is reset when it has passed.
func (a *answer) SetWriteDeadline(at time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.deadline != nil {
		a.deadline.Stop()
		a.deadline = nil
	}
	if !at.IsZero() {
		a.deadline = time.AfterFunc(time.Until(at), func() { a.stream.fail(http2.ErrCodeInternal, os.ErrDeadlineExceeded) })
	}
	return nil
}

// Detach implements wire.Detacher.
func (a *answer) Detach() (wire.Stream, bool) {
	s := a.stream
	if a.detached || a.code == 0 || a.length >= 0 || !a.hasBody() || a.request.Method == http.MethodHead || a.FlushError() != nil || !s.detach() {
		return nil, false
	}
	a.detached = true
	return s, true
}

// detach has the connection wait for Over instead of the handler.
func (s *Stream) detach() bool {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.ended || !s.sent || s.conn.err != nil {
		return false
	}
	s.conn.running.Add(1)
	s.detached, s.body, s.request = true, nil, nil
	return true
}

// end sends what is left when the handler has returned.
func (a *answer) end() {
	if a.code == 0 {
		a.WriteHeader(http.StatusOK)
	}
	a.done = true
	trailers := a.trailers()
	a.send(a.piece.body, len(trailers) == 0)
	if len(trailers) > 0 && a.err == nil {
		var h headers
		h.addAll(trailers, "")
		a.err = a.stream.write(&h, nil, true)
	}
	_ = a.SetWriteDeadline(time.Time{}) // it does not fail
	if a.leaves {
		a.stream.conn.leave()
	}
}

// leave tells the client to go away, as an answer asks for.
func (c *conn) leave() {
	c.mu.Lock()
	c.goAwayLocked(http2.ErrCodeNo)
	c.sendAndUnlock()
}

// send sends headers, if they have not been sent, and a part of the body; last says that nothing
// will follow.
func (a *answer) send(body []byte, last bool) {
	if a.err != nil {
		return
	}
	var h *headers
	if !a.begun {
		a.begun = true
		h = &a.piece.headers
		if b := a.stream.body; b != nil {
			b.wanted()
		}
		if a.done && a.length < 0 && a.hasBody() && (a.request.Method != http.MethodHead || a.written > 0) {
			h.add("content-length", strconv.FormatInt(a.written, 10))
		}
		if !a.typed && len(body) > 0 {
			h.add("content-type", http.DetectContentType(body))
		}
		if !a.dated {
			h.fields = append(h.fields, hpack.HeaderField{Name: "date", Value: a.stream.conn.server.dates.now()})
		}
	} else if len(body) == 0 && !last {
		return
	}
	if a.request.Method == http.MethodHead {
		body = nil
	}
	a.err = a.stream.write(h, body, last)
}

// dates is the time as headers have it.
type dates struct {
	mu   sync.Mutex
	at   int64 // seconds
	text string
}

// now is the time, to the second.
func (d *dates) now() string {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := now.Unix(); at != d.at {
		d.at, d.text = at, now.UTC().Format(http.TimeFormat)
	}
	return d.text
}

// trailers are what a handler left in the header under names that it announced.
func (a *answer) trailers() http.Header {
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
