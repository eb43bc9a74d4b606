package conns

import "encoding/binary"

const (
	frameHead = 9    // bytes: a length of three, a type, flags, a stream
	bulkFrame = 8000 // bytes of data; a frame of this size is followed by others, as a rule

	// Types of frames, and flags (RFC 9113, 6).
	dataFrame         = 0
	headersFrame      = 1
	resetFrame        = 3
	settingsFrame     = 4
	pingFrame         = 6
	goAwayFrame       = 7
	updateFrame       = 8
	continuationFrame = 9
	endStream         = 1 // of data and headers
	ack               = 1 // of settings and pings
	endHeaders        = 4 // of headers and continuations
)

// head is the beginning of a frame.
type head [frameHead]byte

func (h *head) length() int        { return int(h[0])<<16 | int(h[1])<<8 | int(h[2]) }
func (h *head) kind() byte         { return h[3] }
func (h *head) has(flag byte) bool { return h[4]&flag != 0 }
func (h *head) stream() uint32     { return binary.BigEndian.Uint32(h[5:]) & largestWindow }

// asks says of a frame that it is a ping.
func (h *head) asks() bool {
	return h.kind() == pingFrame && !h.has(ack) && h.stream() == 0 && h.length() == len(partingMark)
}

// frameTracker knows how far package http2 has got within the frames that it writes.
type frameTracker struct {
	left    int // bytes of the current frame that are still to come
	head    head
	have    int    // bytes of head
	headers bool   // a header block goes on in the next frame
	more    bool   // other frames will follow soon
	number  uint32 // the last bytes of an update of the window for bodies
}

// betweenFrames says that other frames may be written now.
func (t *frameTracker) betweenFrames() bool { return t.left == 0 && t.have == 0 && !t.headers }

// track goes through p, and returns the first place in it where other frames may be
// written, or -1.
func (c *HTTP2Conn) track(p []byte) (between int) {
	t, size := &c.tracker, len(p)
	between = -1
	for {
		if between < 0 && t.betweenFrames() {
			between = size - len(p)
		}
		if len(p) == 0 {
			return between
		}
		if t.left > 0 {
			n := min(t.left, len(p))
			t.left -= n
			c.trackUpdate(p[:n])
			p = p[n:]
			continue
		}
		n := copy(t.head[t.have:], p)
		t.have += n
		p = p[n:]
		if t.have == frameHead {
			c.trackHead()
		}
	}
}

// trackUpdate learns from a part of a frame's payload.
func (c *HTTP2Conn) trackUpdate(p []byte) {
	t := &c.tracker
	if t.head.kind() != updateFrame || t.head.stream() != 0 {
		return
	}
	for _, b := range p {
		t.number = t.number<<8 | uint32(b)
	}
	if t.left == 0 {
		c.rest.grants(int64(t.number & largestWindow))
	}
}

// trackHead learns from the head of a frame.
func (c *HTTP2Conn) trackHead() {
	t, h := &c.tracker, &c.tracker.head
	t.have, t.left = 0, h.length()
	t.more = h.kind() == dataFrame && !h.has(endStream) && (t.left >= bulkFrame || c.corked.Load() > 0)
	switch h.kind() {
	case dataFrame:
		c.flow.sent(h.stream(), h.length(), h.has(endStream))
	case headersFrame:
		t.headers = !h.has(endHeaders)
		if h.has(endStream) {
			c.flow.sent(h.stream(), 0, true)
		}
	case continuationFrame:
		t.headers = !h.has(endHeaders)
	case resetFrame:
		c.flow.endedByHTTP2(h.stream())
	case goAwayFrame:
		c.flow.goneAway.Store(true)
	case settingsFrame, pingFrame:
		c.rest.answered(h)
	}
}

// removeTokens takes tokens out of what package http2 writes. The beginning of a frame
// that may carry one is kept until all of it has come.
func (c *HTTP2Conn) removeTokens(p []byte) []byte {
	if len(c.partial) > 0 {
		p = append(c.partial, p...)
		c.partial = nil
	}
	var out []byte
	from, at, left := 0, 0, c.tracker.left // of p: what is not in out yet, what is looked at; bytes left of the current frame
	if c.tracker.have > 0 {                // this frame was begun before a token was sent, and so carries none
		h := c.tracker.head
		at = copy(h[c.tracker.have:], p)
		if c.tracker.have+at == frameHead {
			left = h.length()
		}
	}
	for at < len(p) {
		if left > 0 {
			n := min(left, len(p)-at)
			left -= n
			at += n
			continue
		}
		var h head
		n := copy(h[:], p[at:])
		if n < frameHead || (mayCarryToken(&h) || c.unsaid.of(&h)) && len(p)-at < frameHead+h.length() {
			c.partial = append([]byte(nil), p[at:]...)
			return append(out, p[from:at]...)
		}
		end := at + frameHead + h.length()
		if c.unsaid.take(&h) {
			switch {
			case h.kind() == pingFrame:
				c.rest.barred.Store(false)
			case h.has(ack) && h.kind() == settingsFrame:
				c.session.answered()
			}
			out = append(out, p[from:at]...)
			from, at = end, end
			continue
		}
		if mayCarryToken(&h) {
			if c.flow.seesEnd(&h) {
				out = append(out, p[from:at]...)
				from, at = end, end
				continue
			}
			is, whole := c.flow.matchToken(h.stream(), p[at+frameHead:end])
			if whole != nil {
				c.shown = append(c.shown, whole)
			}
			if is {
				out = append(out, p[from:at]...)
				from, at = end, end
				continue
			}
		}
		at += frameHead
		left = h.length()
	}
	if from == 0 {
		return p
	}
	return append(out, p[from:]...)
}

// tellShown lets streams begin to send whose tokens were found: not before what came with
// the token is on its way, which may be the headers of their answers.
func (c *HTTP2Conn) tellShown() {
	for _, s := range c.shown {
		close(s.found)
	}
	clear(c.shown)
	c.shown = c.shown[:0]
}

// mayCarryToken says whether a frame is small enough to be a token, or a part of one.
func mayCarryToken(h *head) bool { return h.kind() == dataFrame && h.length() <= tokenSize }
