package h2

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/rowlock/rowlock/server/wire"
)

// bufferMax bounds the part of a response that is buffered before it is sent.
const bufferMax = 32 << 10

// sniffLen is the number of bytes of a body that http.DetectContentType reads.
const sniffLen = 512

// buffer is the part of a response that is not sent yet.
type buffer struct {
	headers headers
	body    []byte
}

var responseBuffers = sync.Pool{New: func() any { return &buffer{} }}

// response is the http.ResponseWriter of a request. A short response is sent at once when the handler
// returns; one that is long or flushed is sent in parts, and waits for the client.
type response struct {
	stream   *Stream
	request  *http.Request
	header   http.Header
	buffer   *buffer
	code     int   // 0: WriteHeader was not called
	length   int64 // according to the header; -1: unknown
	written  int64 // bytes
	begun    bool  // headers were sent
	returned bool  // the handler has
	typed    bool  // the header has a Content-Type or Content-Encoding
	dated    bool  // the header has a Date
	closes   bool  // GOAWAY follows
	detached bool
	err      error

	mu       sync.Mutex
	deadline *time.Timer // of writes; guarded by mu
}

func newResponse(s *Stream, r *http.Request) *response {
	return &response{stream: s, request: r, header: make(http.Header, 8), buffer: responseBuffers.Get().(*buffer)}
}

// release returns the buffer to the pool. Later writes panic, so that none reaches another response.
func (a *response) release() {
	b := a.buffer
	a.buffer = nil
	if a.detached { // filters keep the writer of a watch
		a.request, a.header = nil, nil
		_ = a.SetWriteDeadline(time.Time{}) // it does not fail
	}
	b.body = b.body[:0]
	b.headers.reset()
	if b.headers.encoded.Cap() <= frameMax && cap(b.body) <= 2*bufferMax {
		responseBuffers.Put(b)
	}
}

// Header implements http.ResponseWriter.
func (a *response) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter. Fields that are set later are trailers.
func (a *response) WriteHeader(code int) {
	if code < 100 || code > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", code))
	}
	if a.code != 0 {
		return
	}
	if code < 200 {
		var h headers
		h.addStatus(code)
		h.addAll(a.header, "Content-Length") // that of the final response
		a.err = a.stream.write(&h, nil, false)
		return
	}
	a.code, a.length = code, -1
	if values := a.header["Content-Length"]; len(values) > 0 {
		if n, err := strconv.ParseInt(values[0], 10, 64); err == nil && n >= 0 {
			a.length = n
		} else {
			delete(a.header, "Content-Length")
		}
	}
	_, a.typed = a.header["Content-Type"]
	_, a.dated = a.header["Date"]
	a.typed = a.typed || a.header.Get("Content-Encoding") != ""
	a.closes = a.header.Get("Connection") == "close"
	a.buffer.headers.addStatus(code)
	a.buffer.headers.addAll(a.header, "")
}

// hasBody reports whether the status allows a body.
func (a *response) hasBody() bool {
	return a.code != http.StatusNoContent && a.code != http.StatusNotModified
}

// Write implements http.ResponseWriter.
func (a *response) Write(p []byte) (int, error) {
	if a.code == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if !a.hasBody() {
		return 0, http.ErrBodyNotAllowed
	}
	if a.written += int64(len(p)); a.length >= 0 && a.written > a.length {
		return 0, http.ErrContentLength
	}
	if a.err != nil {
		return 0, a.err
	}
	b := a.buffer
	switch {
	case a.request.Method == http.MethodHead:
		b.body = append(b.body, p[:min(len(p), max(0, sniffLen-len(b.body)))]...)
	case len(b.body)+len(p) <= bufferMax:
		b.body = append(b.body, p...)
	default:
		if len(b.body) > 0 {
			a.send(b.body, false)
			b.body = b.body[:0]
		}
		if a.send(p, false); a.err != nil {
			return 0, a.err
		}
	}
	return len(p), nil
}

// WriteString implements io.StringWriter.
func (a *response) WriteString(s string) (int, error) { return a.Write([]byte(s)) }

// Flush implements http.Flusher.
func (a *response) Flush() { _ = a.FlushError() }

// FlushError serves http.ResponseController.
func (a *response) FlushError() error {
	if a.code == 0 {
		a.WriteHeader(http.StatusOK)
	}
	a.send(a.buffer.body, false)
	a.buffer.body = a.buffer.body[:0]
	return a.err
}

// SetReadDeadline serves http.ResponseController.
func (a *response) SetReadDeadline(at time.Time) error {
	if b := a.stream.body; b != nil {
		b.setDeadline(at)
	}
	return nil
}

// EnableFullDuplex serves http.ResponseController: HTTP/2 always is.
func (a *response) EnableFullDuplex() error { return nil }

// SetWriteDeadline serves http.ResponseController: after it the stream is reset.
func (a *response) SetWriteDeadline(at time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.deadline != nil {
		a.deadline.Stop()
		a.deadline = nil
	}
	if !at.IsZero() {
		a.deadline = time.AfterFunc(time.Until(at), func() { a.stream.fail(os.ErrDeadlineExceeded) })
	}
	return nil
}

// Detach implements wire.Detacher.
func (a *response) Detach() (wire.Stream, bool) {
	s := a.stream
	if a.detached || a.code == 0 || a.length >= 0 || !a.hasBody() || a.request.Method == http.MethodHead || a.FlushError() != nil {
		return nil, false
	}
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.ended || !s.halfClosed || s.conn.err != nil {
		return nil, false
	}
	s.conn.running.Add(1) // until Over
	s.body, s.request = nil, nil
	a.detached, s.detached = true, true
	return s, true
}

// end sends the rest when the handler has returned.
func (a *response) end() {
	if a.code == 0 {
		a.WriteHeader(http.StatusOK)
	}
	a.returned = true
	trailers := a.trailers()
	a.send(a.buffer.body, len(trailers) == 0)
	if len(trailers) > 0 && a.err == nil {
		var h headers
		h.addAll(trailers, "")
		a.err = a.stream.write(&h, nil, true)
	}
	_ = a.SetWriteDeadline(time.Time{}) // it does not fail
	if a.closes {
		a.stream.conn.goAway()
	}
}

// send sends the headers, unless they were sent, and a part of the body; last means that nothing follows.
func (a *response) send(body []byte, last bool) {
	if a.err != nil {
		return
	}
	var h *headers
	if !a.begun {
		a.begun = true
		h = &a.buffer.headers
		if b := a.stream.body; b != nil {
			b.skipContinue()
		}
		if a.returned && a.length < 0 && a.hasBody() && (a.request.Method != http.MethodHead || a.written > 0) {
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

// trailers returns the fields that the handler has set under announced names, or with http.TrailerPrefix.
func (a *response) trailers() http.Header {
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

// dates makes the values of Date, which all responses of a second share.
type dates struct{ last atomic.Pointer[date] }

type date struct {
	second int64
	text   string
}

func (d *dates) now() string {
	now := time.Now()
	last := d.last.Load()
	if last == nil || last.second != now.Unix() {
		last = &date{now.Unix(), now.UTC().Format(http.TimeFormat)}
		d.last.Store(last)
	}
	return last.text
}
