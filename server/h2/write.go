package h2

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rowlock/rowlock/server/wire"
)

const (
	outMax      = 64 << 10 // bytes of out that answers wait for to be sent
	outTogether = 48 << 10 // bytes that are sent while other watches still write theirs
	pumpMost    = 16       // times that somebody sends what others queue meanwhile, before a goroutine goes on
	tableAfter  = 4        // answers on a connection before it gets a table of headers
)

// outLocked is the queue of frames.
func (c *conn) outLocked() *[]byte {
	if c.out == nil {
		c.out = wire.GetBuffer()
	}
	return c.out
}

// sendAndUnlock sends what is queued, unless somebody else is doing so, and unlocks c.mu.
func (c *conn) sendAndUnlock() {
	if c.pumping || c.out == nil || c.err != nil {
		c.mu.Unlock()
		return
	}
	c.pumping = true
	c.pump(false)
}

// pump sends what is queued until nothing is. While the client does not take it, or where others
// queue as fast as it sends, a goroutine goes on. It is called with c.mu locked, and unlocks it.
func (c *conn) pump(waits bool) {
	for rounds := 1; c.out != nil && c.err == nil; rounds++ {
		if rounds > pumpMost && !waits {
			c.running.Go(c.pumpOn) // whoever began has other clients to serve
			c.mu.Unlock()
			return
		}
		p := c.out
		c.out = nil
		c.mu.Unlock()
		kept, err := c.send(*p)
		wire.PutBuffer(p)
		c.mu.Lock()
		switch {
		case err != nil:
			c.brokenLocked(err)
		case kept && !waits:
			if c.err == nil {
				c.blocked = true
				c.running.Go(c.pumpOn)
				c.mu.Unlock()
				return
			}
		case kept:
			c.blocked = true
			c.awaitTaken()
		default:
			c.roomLocked()
		}
	}
	c.pumping = false
	c.mu.Unlock()
}

// pumpOn goes on, when the client has taken what was sent.
func (c *conn) pumpOn() {
	c.mu.Lock()
	c.awaitTaken()
	c.pump(true)
}

// awaitTaken waits for that. A client that takes nothing for too long has gone. It is called with
// c.mu locked, and returns with it locked.
func (c *conn) awaitTaken() {
	c.mu.Unlock()
	err := c.queue.Flush()
	c.mu.Lock()
	c.blocked, c.unread = false, 0
	if err != nil {
		c.brokenLocked(err)
	}
	c.roomLocked()
}

// send encrypts and writes bytes as far as the kernel has room. kept says that it has none for some.
// What makes several records is written at once.
func (c *conn) send(p []byte) (kept bool, err error) {
	if len(p) <= frameMax && c.queue.Tries() {
		_, err = c.tls.Write(p)
		return c.queue.Blocked(), err
	}
	c.queue.Gather()
	_, err = c.tls.Write(p)
	kept, late := c.queue.Release()
	if err == nil {
		err = late
	}
	return kept, err
}

// brokenLocked ends a connection that nothing can be sent by any more; the reader does the rest.
func (c *conn) brokenLocked(err error) {
	if c.err == nil {
		c.err = err
	}
	c.out = nil
	c.ending.Store(true)
	_ = c.socket.Conn.Close() // it may be closed already
	for _, s := range c.streams {
		s.signalLocked()
	}
}

// roomLocked tells answers that wait for it that they may go on.
func (c *conn) roomLocked() {
	if c.fullLocked() {
		return
	}
	for _, s := range c.streams {
		s.signalLocked()
	}
}

// fullLocked says that answers have to wait for what is queued.
func (c *conn) fullLocked() bool {
	return c.blocked || c.out != nil && len(*c.out) >= outMax
}

// framesLocked queues frames that are no part of an answer.
func (c *conn) framesLocked(write func(*http2.Framer)) {
	if c.err != nil {
		return
	}
	out := bytes.NewBuffer(*c.outLocked())
	write(http2.NewFramer(out, nil))
	*c.out = out.Bytes()
}

// controlLocked is framesLocked for answers to what the client sends, which has to take them.
func (c *conn) controlLocked(write func(*http2.Framer)) error {
	if c.blocked {
		if c.unread++; c.unread > unreadMax {
			return errFlood
		}
	}
	c.framesLocked(write)
	return nil
}

// dataLocked queues a part of a body; last says that nothing follows.
func (c *conn) dataLocked(id uint32, p []byte, last bool) {
	out := *c.outLocked()
	c.allowance.Add(2 + int64(len(p)/bytesOfFrame))
	for {
		n := min(len(p), frameMax)
		var flags http2.Flags
		if last && n == len(p) {
			flags = http2.FlagDataEndStream
		}
		out = append(appendFrame(out, n, http2.FrameData, flags, id), p[:n]...)
		if p = p[n:]; len(p) == 0 {
			*c.out = out
			return
		}
	}
}

// headersLocked queues the headers of an answer, or its trailers.
func (c *conn) headersLocked(id uint32, h *headers, last bool) {
	block := c.encodeLocked(h)
	out := *c.outLocked()
	c.allowance.Add(2 + int64(len(block)/bytesOfFrame))
	var flags http2.Flags
	if last {
		flags = http2.FlagHeadersEndStream
	}
	for kind := http2.FrameHeaders; ; kind, flags = http2.FrameContinuation, 0 {
		n := min(len(block), frameMax)
		if n == len(block) {
			flags |= http2.FlagHeadersEndHeaders
		}
		out = append(appendFrame(out, n, kind, flags, id), block[:n]...)
		if block = block[n:]; len(block) == 0 {
			*c.out = out
			return
		}
	}
}

// plain is an encoder that needs no table, so that it may be anybody's.
type plain struct {
	buf     bytes.Buffer
	encoder *hpack.Encoder
}

// encodeLocked encodes headers. What is sent again and again gets into a table that both ends
// keep, once a connection has some answers: most have one, of a watch. The result is good until the
// next call.
func (c *conn) encodeLocked(h *headers) []byte {
	if c.answers++; c.encoder == nil && c.answers > tableAfter {
		c.newEncoderLocked()
	}
	if c.encoder == nil {
		return h.plainly()
	}
	c.encoded.Reset()
	h.encode(c.encoder, false)
	return c.encoded.Bytes()
}

func (c *conn) newEncoderLocked() { c.encoder = hpack.NewEncoder(&c.encoded) }

// tableSizeLocked is told how large a table the client keeps. The next headers have to say that
// it got smaller.
func (c *conn) tableSizeLocked(size uint32) {
	if c.encoder == nil && size < 4<<10 {
		c.newEncoderLocked()
	}
	if c.encoder != nil {
		c.encoder.SetMaxDynamicTableSize(min(size, 4<<10))
	}
}

// headers are those of an answer, or its trailers, as they were when they were written.
type headers struct {
	fields []hpack.HeaderField // Sensitive: the value differs from one answer to the next
	plain  plain
}

// add adds a field whose value differs from one answer to the next.
func (h *headers) add(name, value string) {
	h.fields = append(h.fields, hpack.HeaderField{Name: name, Value: value, Sensitive: true})
}

// addStatus adds what an answer begins with.
func (h *headers) addStatus(code int) {
	h.fields = append(h.fields, hpack.HeaderField{Name: ":status", Value: statusText(code)})
}

// addAll adds the fields of a header but for those of a connection, and the one that is named.
func (h *headers) addAll(header http.Header, but string) {
	for key, values := range header {
		if key == but || key == "Connection" || key == "Transfer-Encoding" || strings.HasPrefix(key, http.TrailerPrefix) {
			continue
		}
		name, ok := wireNames[key]
		if !ok {
			if !httpguts.ValidHeaderFieldName(key) {
				continue
			}
			name.lower = strings.ToLower(key)
		}
		for _, v := range values {
			if httpguts.ValidHeaderFieldValue(v) {
				h.fields = append(h.fields, hpack.HeaderField{Name: name.lower, Value: v, Sensitive: !name.indexed})
			}
		}
	}
}

func (h *headers) reset() {
	clear(h.fields)
	h.fields = h.fields[:0]
}

// plainly encodes without a table.
func (h *headers) plainly() []byte {
	if h.plain.encoder == nil {
		h.plain.encoder = hpack.NewEncoder(&h.plain.buf)
	}
	h.plain.buf.Reset()
	h.encode(h.plain.encoder, true)
	return h.plain.buf.Bytes()
}

// encode writes the fields; those that differ from one answer to the next, or all if plain is set,
// get into no table. A buffer takes everything.
func (h *headers) encode(e *hpack.Encoder, plain bool) {
	for _, f := range h.fields {
		f.Sensitive = f.Sensitive || plain
		_ = e.WriteField(f)
	}
}

func statusText(code int) string {
	switch code {
	case http.StatusOK:
		return "200"
	case http.StatusCreated:
		return "201"
	}
	return strconv.Itoa(code)
}

// wireName is the name of a header as HTTP/2 has it; indexed says that its values come again.
type wireName struct {
	lower   string
	indexed bool
}

var wireNames = func() map[string]wireName {
	out := map[string]wireName{}
	again := []string{
		"Cache-Control", "Content-Type", "Content-Encoding", "Date", "Vary", "X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid",
		"X-Content-Type-Options", "Strict-Transport-Security",
	}
	for _, key := range slices.Concat(again, []string{"Audit-Id", "Content-Length", "Warning", "Location", "Retry-After", "Www-Authenticate", "Etag"}) {
		out[key] = wireName{strings.ToLower(key), slices.Contains(again, key)}
	}
	return out
}()
