package conns

import (
	"bytes"
	"encoding/binary"
)

// Codes of resets (RFC 9113, 7).
const (
	resetProtocol = 1
	resetInternal = 2
	resetCancel   = 8
)

// resetStream ends a stream that package http2 does not know.
func (c *HTTP2Conn) resetStream(id, code uint32) {
	c.flow.reset(id)
	c.frames.addReset(id, code)
	c.sendQueued(false)
}

// Close is called by package http2 when nothing of its own is under way. It waits for the
// answers to short requests.
func (c *HTTP2Conn) Close() error {
	if c.queue.broken() {
		c.shorts.cancel()
	}
	c.shorts.finish()
	return c.Conn.Close()
}

// Busy says that requests are under way of which package http2 does not know.
func (c *HTTP2Conn) Busy() bool { return c.shorts.busy() }

// corrected says in frames by which a client is told to go away which streams are served
// nevertheless: package http2 does not know of those that are served beside it, and a client
// sends anew what it takes for unserved. The beginning of such a frame is kept until enough
// of it has come.
func (c *HTTP2Conn) corrected(p []byte) []byte {
	t := &c.tracker
	at, h, have := t.left, t.head, t.have // the place in p of the next head, of which have bytes came before
	for at+frameHead-have <= len(p) {
		copy(h[have:], p[at:])
		payload := at + frameHead - have
		if h.kind() == goAwayFrame && h.length() >= 4 {
			if payload+4 > len(p) {
				return c.keepBack(p, at)
			}
			last := p[payload : payload+4]
			binary.BigEndian.PutUint32(last, c.flow.goAway(binary.BigEndian.Uint32(last)&largestWindow))
		}
		at, have = payload+h.length(), 0
	}
	return p
}

// keepBack keeps what begins at a place for the next write.
func (c *HTTP2Conn) keepBack(p []byte, at int) []byte {
	c.partial = append(bytes.Clone(p[at:]), c.partial...)
	return p[:at]
}
