package h2

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// block is a header block: the headers of a request, or its trailers.
type block struct {
	id            uint32
	last          bool   // with END_STREAM
	open          bool   // CONTINUATION follows
	selfDependent bool   // the stream depends on itself
	limit         uint32 // bytes of fields
	size          uint32
	compressed    int // bytes
	fragments     int
	fields        []hpack.HeaderField
}

func (b *block) add(f hpack.HeaderField) {
	if b.size > b.limit {
		return // the sum could overflow
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
	b.size, b.compressed, b.fragments = 0, 0, 0
}

func (c *conn) headersFrame(f *http2.HeadersFrame) error {
	b := &c.block
	b.id, b.last = f.StreamID, f.StreamEnded()
	b.selfDependent = f.HasPriority() && f.Priority.StreamDep == f.StreamID
	return c.fragment(f.HeaderBlockFragment(), f.HeadersEnded())
}

// fragment decodes a part of a block, even of a request that is refused: later blocks depend on it.
func (c *conn) fragment(part []byte, ended bool) error {
	b := &c.block
	b.compressed += len(part)
	b.fragments++ // for each of them the decoder copies the beginning of an incomplete field
	if b.compressed > int(b.limit) || b.fragments > max(fragmentsMax, int(b.limit)/(4<<10)) {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	if _, err := c.decoder.Write(part); err != nil {
		return http2.ConnectionError(http2.ErrCodeCompression)
	}
	switch {
	case !ended && !b.open:
		c.blockOpened.Store(time.Now().UnixNano())
	case ended && b.open:
		c.blockOpened.Store(0)
	}
	if b.open = !ended; b.open {
		return nil
	}
	if err := c.decoder.Close(); err != nil {
		return http2.ConnectionError(http2.ErrCodeCompression)
	}
	defer b.reset()
	return c.endBlock()
}

// endBlock handles a complete block: a new request, or trailers.
func (c *conn) endBlock() error {
	b := &c.block
	if b.id%2 == 0 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.mu.Lock()
	s, used, goneAway := c.streams[b.id], b.id <= c.lastStream, c.goneAway
	known, reset := c.closed.find(b.id)
	c.mu.Unlock()
	switch {
	case s != nil:
		return c.trailers(s)
	case used && reset:
		return nil // sent before the client knew
	case used && known:
		return http2.ConnectionError(http2.ErrCodeStreamClosed)
	case used:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case goneAway:
		return c.ignore()
	}
	r, ok := c.parseRequest()
	return c.open(r, ok)
}

// ignore is called for a request after GOAWAY. The client may send it on another connection, so it
// must not be served.
func (c *conn) ignore() error {
	if c.ignored++; c.ignored > ignoredMax {
		return errFlood
	}
	return nil
}

// open opens a stream, unless the request is malformed (ok is false) or there are too many.
func (c *conn) open(r parsedRequest, ok bool) error {
	b := &c.block
	c.mu.Lock()
	defer c.sendAndUnlock()
	if c.goneAway { // meanwhile
		return c.ignore()
	}
	c.lastStream = b.id
	most := int(c.server.cfg.MaxStreams)
	switch {
	case !ok:
		c.closed.add(b.id, true)
		return http2.StreamError{StreamID: b.id, Code: http2.ErrCodeProtocol}
	case len(c.streams) >= most || c.handlers >= 2*most:
		c.closed.add(b.id, true)
		return http2.StreamError{StreamID: b.id, Code: http2.ErrCodeRefusedStream} // the client may retry it
	}
	s := &Stream{conn: c, id: b.id, sendWindow: c.initialWindow, recvWindow: bodyWindow, length: r.length, halfClosed: b.last}
	s.ctx.conn = c
	r.Body = http.NoBody
	if !b.last {
		s.body = &body{stream: s, sendContinue: r.sendContinue}
		r.Body = s.body
	}
	s.request = r.WithContext(&s.ctx)
	c.streams[b.id] = s
	if !b.last && !r.sendContinue && b.size <= bufferHeaders && r.length >= 0 && r.length <= bufferBody && c.buffering+int(r.length) <= bufferBodies {
		s.buffering, s.since = true, time.Now()
		c.buffering += int(r.length)
		return nil
	}
	c.startLocked(s)
	return nil
}

// trailers ends a body with a block.
func (c *conn) trailers(s *Stream) error {
	b := &c.block
	c.mu.Lock()
	defer c.sendAndUnlock()
	if s.halfClosed {
		return http2.StreamError{StreamID: b.id, Code: http2.ErrCodeStreamClosed}
	}
	ok := b.last && b.size <= b.limit && (s.length < 0 || s.received == s.length)
	for i := range b.fields {
		ok = ok && validField(&b.fields[i])
	}
	if !ok {
		return http2.StreamError{StreamID: b.id, Code: http2.ErrCodeProtocol}
	}
	c.bodyEndedLocked(s)
	return nil
}

// parsedRequest is a request before it has a stream.
type parsedRequest struct {
	http.Request
	length       int64 // of the body; -1: unknown
	sendContinue bool  // the client waits for 100 Continue
}

// parseRequest parses the block. ok is false if the request is malformed (RFC 9113, 8.1.1).
func (c *conn) parseRequest() (r parsedRequest, ok bool) {
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
	if r.length, ok = contentLength(r.Header, b.last); !ok {
		return r, false
	}
	if tooLong { // fields are missing
		r.Header = http.Header{tooLongKey: nil}
	}
	r.sendContinue = httpguts.HeaderValuesContainsToken(r.Header["Expect"], "100-continue")
	r.Method, r.RequestURI, r.Host, r.ContentLength = method, path, authority, r.length
	r.Proto, r.ProtoMajor = "HTTP/2.0", 2
	r.RemoteAddr, r.TLS = c.peer()
	return r, true
}

func parseTarget(method, path string) (*url.URL, error) {
	if path == "*" && method == http.MethodOptions {
		return &url.URL{Path: "*"}, nil
	}
	if !strings.HasPrefix(path, "/") {
		return nil, url.InvalidHostError(path)
	}
	return url.ParseRequestURI(path)
}

// contentLength returns the length of the body as announced; -1 if it was not.
func contentLength(header http.Header, last bool) (n int64, ok bool) {
	values := header["Content-Length"]
	switch {
	case len(values) == 0 && last:
		return 0, true
	case len(values) == 0:
		return -1, true
	case len(values) > 1:
		return 0, false
	}
	length, err := strconv.ParseUint(values[0], 10, 63)
	return int64(length), err == nil && (length == 0 || !last)
}

// makeHeader makes an http.Header; ok is false if HTTP/2 does not allow one of the fields.
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
		case key == "Cookie": // it may be split (RFC 9113, 8.2.3)
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

// validField reports whether a field is valid in trailers; pseudo-headers are not.
func validField(f *hpack.HeaderField) bool {
	return validName(f.Name) && httpguts.ValidHeaderFieldValue(f.Value)
}

// commonKeys maps names of headers to their canonical form.
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

// peer returns the address of the client, and the state of its TLS connection.
func (c *conn) peer() (string, *tls.ConnectionState) {
	if c.state == nil {
		state := c.tls.ConnectionState()
		c.state, c.remote = &state, c.tls.RemoteAddr().String()
	}
	return c.remote, c.state
}
