package conns

import (
	"bytes"
	"encoding/binary"
)

// Codes of resets (RFC 9113, 7).
const (
	resetProtocol = 1
	resetInternal = 2
	resetFlow     = 3
	resetClosed   = 5
	resetRefused  = 7
	resetCancel   = 8
)

// resetStream ends a stream that package http2 does not know.
func (c *HTTP2Conn) resetStream(id, code uint32) {
	c.flow.reset(id)
	c.frames.addNumber(resetFrame, id, code)
	c.sendQueued(false)
}

// Close is called by package http2 when nothing of its own is under way. It waits for the
// answers to short requests, and for those that go on without their handlers, unless nobody is there to take them.
func (c *HTTP2Conn) Close() error {
	c.rest.over.Store(true)
	broken := c.queue.broken() || c.failed.Load() || c.lost.Load()
	if broken {
		c.shorts.cancel()
	}
	c.shorts.finish(c.readOn)
	c.rest.alone.Store(true)
	if !broken && c.shorts != nil { // without those only errors have it called
		c.outlivers.await(c.readOn)
	}
	return c.Conn.Close()
}

// readOn goes on to read what the client sends, once: package http2 does not any more. What is
// not about short requests is for nobody. It ends with the connection, and ServeHTTP2 waits for
// it.
func (c *HTTP2Conn) readOn() {
	c.readsOn.Do(func() {
		c.reads.Go(func() {
			for p := make([]byte, 1<<10); ; {
				if _, err := c.Read(p); err != nil {
					return
				}
			}
		})
	})
}

// Busy says that requests are under way of which package http2 does not know.
func (c *HTTP2Conn) Busy() bool { return c.shorts.busy() || !c.outlivers.empty() }

// corrected says in frames by which a client is told to go away which streams are served
// nevertheless: package http2 does not know of those that are served beside it, and a client
// sends anew what it takes for unserved. The beginning of such a frame is kept until enough
// of it has come.
func (c *HTTP2Conn) corrected(p []byte) []byte {
	const lastAndCode = 8 // bytes
	t := &c.tracker
	at, h, have := t.left, t.head, t.have // the place in p of the next head, of which have bytes came before
	for at+frameHead-have <= len(p) {
		copy(h[have:], p[at:])
		payload := at + frameHead - have
		if h.kind() == goAwayFrame && h.length() >= lastAndCode {
			if payload+lastAndCode > len(p) {
				return c.keepBack(p, at)
			}
			c.goingAway(p[payload:])
		}
		at, have = payload+h.length(), 0
	}
	return p
}

// goingAway corrects what a client is told who is to go away.
func (c *HTTP2Conn) goingAway(payload []byte) {
	if binary.BigEndian.Uint32(payload[4:]) != 0 {
		c.failed.Store(true)
	}
	served, but := c.flow.goAway(binary.BigEndian.Uint32(payload) & largestWindow)
	binary.BigEndian.PutUint32(payload, served)
	for _, id := range but {
		c.frames.addNumber(resetFrame, id, resetRefused)
	}
}

// keepBack keeps what begins at a place for the next write.
func (c *HTTP2Conn) keepBack(p []byte, at int) []byte {
	c.partial = append(bytes.Clone(p[at:]), c.partial...)
	return p[:at]
}
