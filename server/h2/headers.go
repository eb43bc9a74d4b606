package h2

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rowlock/rowlock/server/wire"
)

// block is what the headers of a request, or its trailers, consist of.
type block struct {
	id            uint32
	last          bool   // nothing follows the block
	open          bool   // more of it is to come
	selfDependent bool   // the stream is to depend on itself
	limit         uint32 // bytes of fields
	size          uint32
	came          int // bytes, compressed
	parts         int // frames
	fields        []hpack.HeaderField
}

func (b *block) add(f hpack.HeaderField) {
	if b.size > b.limit {
		return // a sum that went on could begin anew at 4 GB
	}
	if b.size += f.Size(); b.size <= b.limit {
		b.fields = append(b.fields, f)
	}
}

func (b *block) reset() {
	clear(b.fields)
	if b.fields = b.fields[:0]; cap(b.fields) > 64 {
		b.fields = nil
	}
	b.size, b.came, b.parts = 0, 0, 0
}

// headersFrame begins a block.
func (c *conn) headersFrame(f *http2.HeadersFrame) error {
	b := &c.block
	b.id, b.last = f.StreamID, f.StreamEnded()
	b.selfDependent = f.HasPriority() && f.Priority.StreamDep == f.StreamID
	return c.fragment(f.HeaderBlockFragment(), f.HeadersEnded())
}

// fragment takes a part of a block. All of it is decoded, whatever becomes of the request, as later
// blocks depend on it.
func (c *conn) fragment(part []byte, ended bool) error {
	b := &c.block
	b.came += len(part)
	b.parts++ // the decoder copies, for each, what of a long field has come before
	if b.came > int(b.limit) || b.parts > max(fragmentsMax, int(b.limit)/(4<<10)) {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	if _, err := c.decoder.Write(part); err != nil {
		return http2.ConnectionError(http2.ErrCodeCompression)
	}
	switch {
	case !ended && !b.open:
		c.opened.Store(time.Now().UnixNano())
	case ended && b.open:
		c.opened.Store(0)
	}
	if b.open = !ended; b.open {
		return nil
	}
	if err := c.decoder.Close(); err != nil {
		return http2.ConnectionError(http2.ErrCodeCompression)
	}
	defer b.reset()
	return c.headers()
}

// headers is called with a whole block: a request begins, or its body ends with trailers.
func (c *conn) headers() error {
	b := &c.block
	if b.id%2 == 0 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.mu.Lock()
	s, begun, goneAway := c.streams[b.id], b.id <= c.newest, c.goneAway
	known, reset := c.closed.find(b.id)
	c.mu.Unlock()
	switch {
	case s != nil:
		return c.trailers(s)
	case begun && reset:
		return nil // it was on its way
	case begun && known:
		return http2.ConnectionError(http2.ErrCodeStreamClosed)
	case begun:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case goneAway:
		return c.ignore()
	}
	r, ok := c.request()
	return c.take(r, ok)
}

// ignore is called with a request that came after the client was told to go away. The client may
// send it again elsewhere, so it must not be served.
func (c *conn) ignore() error {
	if c.ignored++; c.ignored > ignoredMax {
		return errFlood
	}
	return nil
}

// take begins a stream with a request, which is refused where there are too many or it is
// malformed.
func (c *conn) take(r request, ok bool) error {
	b := &c.block
	c.mu.Lock()
	defer c.sendAndUnlock()
	if c.goneAway { // since headers has looked: the client was told that this one is not served
		return c.ignore()
	}
	c.newest = b.id
	most := int(c.server.cfg.MaxStreams)
	switch {
	case !ok:
		c.closed.add(b.id, true)
		return http2.StreamError{StreamID: b.id, Code: http2.ErrCodeProtocol}
	case len(c.streams) >= most || c.handlers >= 2*most:
		c.closed.add(b.id, true)
		return http2.StreamError{StreamID: b.id, Code: http2.ErrCodeRefusedStream} // it may come again
	}
	s := &Stream{conn: c, id: b.id, window: c.initial, room: bodyWindow, length: r.length, sent: b.last}
	s.ctx.conn = c
	r.Body = http.NoBody
	if !b.last {
		s.body = &body{stream: s, expects: r.expects}
		r.Body = s.body
	}
	s.request = r.WithContext(&s.ctx)
	c.streams[b.id] = s
	if !b.last && !r.expects && b.size <= wholeHeaders && r.length >= 0 && r.length <= wholeBody && c.awaited+int(r.length) <= wholeBodies {
		s.awaits, s.since = true, time.Now()
		c.awaited += int(r.length)
		return nil
	}
	c.runLocked(s)
	return nil
}

// trailers end a body.
func (c *conn) trailers(s *Stream) error {
	b := &c.block
	c.mu.Lock()
	defer c.sendAndUnlock()
	if s.sent {
		return http2.StreamError{StreamID: b.id, Code: http2.ErrCodeStreamClosed}
	}
	ok := b.last && b.size <= b.limit && (s.length < 0 || s.came == s.length)
	for i := range b.fields {
		ok = ok && validField(&b.fields[i])
	}
	if !ok {
		return http2.StreamError{StreamID: b.id, Code: http2.ErrCodeProtocol}
	}
	c.bodyEndedLocked(s)
	return nil
}

// request is what a block asks for.
type request struct {
	http.Request
	length  int64 // of the body; -1: it is not known
	expects bool  // the client waits to hear that its body is wanted
}

// request makes a request of the block. ok is false for one that is malformed (RFC 9113, 8.1.1).
func (c *conn) request() (r request, ok bool) {
	b := &c.block
	if b.selfDependent {
		return r, false
	}
	fields := b.fields
	var method, scheme, path, authority string
	authorities := 0
	for len(fields) > 0 && fields[0].IsPseudo() {
		f := &fields[0]
		var to *string
		switch f.Name {
		case ":method":
			to = &method
		case ":scheme":
			to = &scheme
		case ":path":
			to = &path
		case ":authority":
			to = &authority
			authorities++
		default:
			return r, false
		}
		if *to != "" || authorities > 1 || f.Value == "" && f.Name != ":authority" || !httpguts.ValidHeaderFieldValue(f.Value) {
			return r, false
		}
		*to = f.Value
		fields = fields[1:]
	}
	if r.Header, ok = makeHeader(fields); !ok {
		return r, false
	}
	if host := r.Header["Host"]; len(host) > 0 {
		if authority == "" {
			authority = host[0]
		}
		delete(r.Header, "Host")
	}
	tooLong := b.size > b.limit
	switch {
	case !httpguts.ValidHeaderFieldName(method), strings.Contains(authority, "@"), !httpguts.ValidHostHeader(authority):
		return r, false
	case method == http.MethodConnect:
		if path != "" || scheme != "" || authority == "" {
			return r, false
		}
		r.URL, path = &url.URL{Host: authority}, authority
	case scheme != "https" && scheme != "http", path == "" && !tooLong:
		return r, false
	default:
		target, err := parseTarget(method, path)
		if err != nil {
			return r, false
		}
		r.URL = target
	}
	if r.length, ok = announced(r.Header, b.last); !ok {
		return r, false
	}
	if tooLong { // what is missing nobody knows
		r.Header = http.Header{tooLongKey: nil}
	}
	r.expects = httpguts.HeaderValuesContainsToken(r.Header["Expect"], "100-continue")
	r.Method, r.RequestURI, r.Host, r.ContentLength = method, path, authority, r.length
	r.Proto, r.ProtoMajor = "HTTP/2.0", 2
	r.RemoteAddr, r.TLS = c.peer()
	return r, true
}

// tooLongKey marks a request whose headers were too long to be kept.
const tooLongKey = ":too-long"

func parseTarget(method, path string) (*url.URL, error) {
	if path == "*" && method == http.MethodOptions {
		return &url.URL{Path: "*"}, nil
	}
	if !strings.HasPrefix(path, "/") {
		return nil, url.InvalidHostError(path)
	}
	return url.ParseRequestURI(path)
}

// announced is how long a body will be; -1 where nobody has said.
func announced(header http.Header, last bool) (n int64, ok bool) {
	said := header["Content-Length"]
	switch {
	case len(said) == 0 && last:
		return 0, true
	case len(said) == 0:
		return -1, true
	case len(said) > 1:
		return 0, false
	}
	length, err := strconv.ParseUint(said[0], 10, 63)
	return int64(length), err == nil && (length == 0 || !last)
}

// makeHeader makes a header of fields; ok is false if one of them is none that HTTP/2 knows.
func makeHeader(fields []hpack.HeaderField) (header http.Header, ok bool) {
	header = make(http.Header, len(fields))
	values := make([]string, 0, len(fields))
	var cookies []string
	for i := range fields {
		f := &fields[i]
		key, common := commonKeys[f.Name]
		if !common {
			switch f.Name {
			case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
				return nil, false
			case "te":
				if f.Value != "trailers" {
					return nil, false
				}
			}
			if !validName(f.Name) {
				return nil, false
			}
			key = http.CanonicalHeaderKey(f.Name)
		}
		if !httpguts.ValidHeaderFieldValue(f.Value) {
			return nil, false
		}
		have := header[key]
		switch {
		case key == "Cookie": // which may come in pieces (RFC 9113, 8.2.3)
			cookies = append(cookies, f.Value)
		case have == nil:
			values = append(values, f.Value)
			header[key] = values[len(values)-1 : len(values) : len(values)]
		default:
			header[key] = append(have, f.Value)
		}
	}
	if cookies != nil {
		header["Cookie"] = []string{strings.Join(cookies, "; ")}
	}
	return header, true
}

func validName(name string) bool {
	return httpguts.ValidHeaderFieldName(name) && strings.ToLower(name) == name
}

// validField says whether a field is one that HTTP/2 knows, and of no pseudo header.
func validField(f *hpack.HeaderField) bool {
	return validName(f.Name) && httpguts.ValidHeaderFieldValue(f.Value)
}

// commonKeys are names of headers as Go has them.
var commonKeys = func() map[string]string {
	out := map[string]string{}
	for _, key := range []string{
		"Accept", "Accept-Encoding", "Authorization", "Content-Length", "Content-Type", "Cookie", "Expect", "Host", "Impersonate-User", "Impersonate-Group", "Origin",
		"Referer", "Traceparent", "User-Agent", "X-Forwarded-For", "X-Real-Ip", "Kubectl-Command", "Kubectl-Session", "Audit-Id",
	} {
		out[strings.ToLower(key)] = key
	}
	return out
}()

var _ wire.Conn = (*conn)(nil)
