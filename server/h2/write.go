package h2

import (
	"bytes"
	"encoding/binary"
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
	outMax      = 64 << 10 // bytes of out at which responses wait
	outTogether = 48 << 10 // bytes of out that are sent although more watches are about to write
	flushRounds = 16       // rounds of flush before another goroutine continues
	tableAfter  = 4        // responses on a connection before it gets a dynamic table
)

// outLocked returns the queue of frames.
func (c *conn) outLocked() *[]byte {
	if c.out == nil {
		c.out = wire.GetBuffer()
	}
	return c.out
}

// sendAndUnlock sends the queue, unless another goroutine is doing so, and unlocks c.mu.
func (c *conn) sendAndUnlock() {
	if c.flushing || c.out == nil || c.err != nil {
		c.mu.Unlock()
		return
	}
	c.flushing = true
	c.flush(false)
}

// flush sends the queue until it is empty. When the client is slow, or others fill the queue as fast as
// it is sent, a goroutine of its own continues (mayWait). It is called with c.mu locked, and unlocks it.
func (c *conn) flush(mayWait bool) {
	for rounds := 1; c.out != nil && c.err == nil; rounds++ {
		if rounds > flushRounds && !mayWait {
			c.running.Go(c.flushLater) // the caller has other clients to serve
			c.mu.Unlock()
			return
		}
		p, split := c.out, c.split
		c.out, c.split = nil, 0
		c.mu.Unlock()
		blocked, err := c.send(*p, split)
		wire.PutBuffer(p)
		c.mu.Lock()
		switch {
		case err != nil:
			c.failLocked(err)
		case blocked && !mayWait:
			if c.err == nil {
				c.blocked = true
				c.running.Go(c.flushLater)
				c.mu.Unlock()
				return
			}
		case blocked:
			c.blocked = true
			c.waitWritableLocked()
		default:
			c.wakeWritersLocked()
		}
	}
	c.flushing = false
	c.mu.Unlock()
}

// flushLater waits until the client has read what was sent, and flushes.
func (c *conn) flushLater() {
	c.mu.Lock()
	c.waitWritableLocked()
	c.flush(true)
}

// waitWritableLocked waits until the socket keeps nothing any more; a client that reads nothing for too
// long is disconnected. It unlocks c.mu meanwhile.
func (c *conn) waitWritableLocked() {
	c.mu.Unlock()
	err := c.queue.Flush()
	c.mu.Lock()
	c.blocked, c.unread = false, 0
	if err != nil {
		c.failLocked(err)
	}
	c.wakeWritersLocked()
}

// send encrypts and writes bytes without waiting. blocked means that the socket keeps some of them. Bytes
// that need several TLS records are written to the kernel at once; one of them ends at split, unless it is 0.
func (c *conn) send(p []byte, split int) (blocked bool, err error) {
	if split == 0 && len(p) <= frameMax && c.queue.NonBlocking() {
		_, err = c.tls.Write(p)
		return c.queue.Blocked(), err
	}
	c.queue.Cork()
	if split > 0 {
		_, err = c.tls.Write(p[:split])
		p = p[split:]
	}
	if err == nil {
		_, err = c.tls.Write(p)
	}
	blocked, late := c.queue.Uncork()
	if err == nil {
		err = late
	}
	return blocked, err
}

// failLocked is called when a write has failed. The reader ends the connection.
func (c *conn) failLocked(err error) {
	if c.err == nil {
		c.err = err
	}
	c.out, c.split = nil, 0
	c.abort()
	c.signalAllLocked()
}

// wakeWritersLocked wakes the handlers that wait for room in the queue.
func (c *conn) wakeWritersLocked() {
	if !c.fullLocked() {
		c.signalAllLocked()
	}
}

// signalAllLocked signals all streams. Most connections have none that a goroutine waits for.
func (c *conn) signalAllLocked() {
	if c.waiters == 0 {
		return
	}
	for _, s := range c.streams {
		s.signalLocked()
	}
}

// fullLocked reports whether responses have to wait for the queue.
func (c *conn) fullLocked() bool {
	return c.blocked || c.out != nil && len(*c.out) >= outMax
}

// framesLocked queues frames that are no part of a response. Writes to a buffer do not fail.
func (c *conn) framesLocked(write func(*http2.Framer)) {
	if c.err != nil {
		return
	}
	out := bytes.NewBuffer(*c.outLocked())
	write(http2.NewFramer(out, nil))
	*c.out = out.Bytes()
}

// replyLocked is framesLocked for frames that the client has caused, which it must read.
func (c *conn) replyLocked(write func(*http2.Framer)) error {
	if c.blocked {
		if c.unread++; c.unread > unreadMax {
			return errFlood
		}
	}
	c.framesLocked(write)
	return nil
}

// dataLocked queues a part of a body; last means that nothing follows.
func (c *conn) dataLocked(id uint32, p []byte, last bool) {
	var end http2.Flags
	if last {
		end = http2.FlagDataEndStream
	}
	c.appendLocked(id, p, http2.FrameData, http2.FrameData, 0, end)
}

// headersLocked queues the headers of a response, or its trailers.
func (c *conn) headersLocked(id uint32, h *headers, last bool) {
	var flags http2.Flags
	if last {
		flags = http2.FlagHeadersEndStream
	}
	c.appendLocked(id, c.encodeLocked(h), http2.FrameHeaders, http2.FrameContinuation, flags, http2.FlagHeadersEndHeaders)
}

// appendLocked queues a payload as a frame and, if it is long, further ones of the type next. The first
// frame has the flags, the last one the end flag too.
func (c *conn) appendLocked(id uint32, p []byte, kind, next http2.FrameType, flags, end http2.Flags) {
	out := *c.outLocked()
	c.frameCredit.Add(2 + int64(len(p)/bytesOfFrame))
	for ; ; kind, flags = next, 0 {
		n := min(len(p), frameMax)
		if n == len(p) {
			flags |= end
		}
		out = append(appendFrame(out, n, kind, flags, id), p[:n]...)
		if p = p[n:]; len(p) == 0 {
			*c.out = out
			return
		}
	}
}

// encodeLocked encodes headers. A connection gets a dynamic table after some responses; most
// connections have one response, of a watch. The result is valid until the next call.
func (c *conn) encodeLocked(h *headers) []byte {
	if c.responses++; c.encoder == nil && c.responses > tableAfter {
		c.encoder = hpack.NewEncoder(&c.encoded)
	}
	if c.encoder == nil {
		return h.encodeStatic()
	}
	c.encoded.Reset()
	h.encode(c.encoder, false)
	return c.encoded.Bytes()
}

// tableSizeLocked sets the size of the client's dynamic table. The next headers have to confirm a
// reduction, so that needs an encoder.
func (c *conn) tableSizeLocked(size uint32) {
	if c.encoder == nil && size < 4<<10 {
		c.encoder = hpack.NewEncoder(&c.encoded)
	}
	if c.encoder != nil {
		c.encoder.SetMaxDynamicTableSize(min(size, 4<<10))
	}
}

// headers are the headers of a response, or its trailers, copied when they were written.
type headers struct {
	fields  []hpack.HeaderField // Sensitive: not for the dynamic table, because the value seldom repeats
	static  *hpack.Encoder      // without a dynamic table, so that it can serve any connection; writes to encoded
	encoded bytes.Buffer
}

// add adds a field whose value seldom repeats.
func (h *headers) add(name, value string) {
	h.fields = append(h.fields, hpack.HeaderField{Name: name, Value: value, Sensitive: true})
}

// addStatus adds the status, which comes first.
func (h *headers) addStatus(code int) {
	h.fields = append(h.fields, hpack.HeaderField{Name: ":status", Value: statusText(code)})
}

// addAll adds the fields of a header, except those that HTTP/2 forbids and the named one.
func (h *headers) addAll(header http.Header, except string) {
	for key, values := range header {
		if key == except || key == "Connection" || key == "Transfer-Encoding" || strings.HasPrefix(key, http.TrailerPrefix) {
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
				h.fields = append(h.fields, hpack.HeaderField{Name: name.lower, Value: v, Sensitive: !name.repeats})
			}
		}
	}
}

func (h *headers) reset() {
	clear(h.fields)
	h.fields = h.fields[:0]
}

// encodeStatic encodes without a dynamic table.
func (h *headers) encodeStatic() []byte {
	if h.static == nil {
		h.static = hpack.NewEncoder(&h.encoded)
	}
	h.encoded.Reset()
	h.encode(h.static, true)
	return h.encoded.Bytes()
}

// encode writes the fields, with static as if all were sensitive. Writes to a buffer do not fail.
func (h *headers) encode(e *hpack.Encoder, static bool) {
	for _, f := range h.fields {
		f.Sensitive = f.Sensitive || static
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

// wireName is the name of a header in HTTP/2; repeats means that its value usually does.
type wireName struct {
	lower   string
	repeats bool
}

var wireNames = func() map[string]wireName {
	out := map[string]wireName{}
	repeating := []string{
		"Cache-Control", "Content-Type", "Content-Encoding", "Date", "Vary", "X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid",
		"X-Content-Type-Options", "Strict-Transport-Security",
	}
	for _, key := range slices.Concat(repeating, []string{"Audit-Id", "Content-Length", "Warning", "Location", "Retry-After", "Www-Authenticate", "Etag"}) {
		out[key] = wireName{strings.ToLower(key), slices.Contains(repeating, key)}
	}
	return out
}()

// AddWriter implements wire.Conn.
func (c *conn) AddWriter() { c.writers.Add(1) }

// RemoveWriter implements wire.Conn.
func (c *conn) RemoveWriter() {
	if c.writers.Add(-1) == 0 {
		c.mu.Lock()
		c.sendAndUnlock()
	}
}

// MayBlock implements wire.Conn.
func (c *conn) MayBlock(n int64) bool {
	const others = 128 // responses that may share the window
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.windowReduced || c.blocked || n > c.initialWindow || n > c.sendWindow/others
}

// appendFrame appends a frame header.
func appendFrame(out []byte, size int, kind http2.FrameType, flags http2.Flags, id uint32) []byte {
	out = append(out, byte(size>>16), byte(size>>8), byte(size), byte(kind), byte(flags))
	return binary.BigEndian.AppendUint32(out, id)
}
