package conns

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// frameReader follows the frames of a client on their way to package http2, and keeps
// from it the window updates of streams that were taken over.
type frameReader struct {
	left    int // bytes that pass as they come
	buf     []byte
	have    int // bytes of buf that were read, of a frame's head, or of a frame that is looked into
	ready   int // bytes of buf that package http2 is to have
	passed  int // how many of those it has
	limiter frameLimiter
	parting *parting // told of answers to pings; may be nil
	shorts  *shorts  // takes short requests; may be nil

	rest *rest // is told of what package http2 answers; may be nil
	owed int   // answers to settings, when package http2 has left for good
}

// owedMax is how many of them are owed a client that takes nothing: as many as package http2 keeps.
const owedMax = 10_000

var errUntaken = errors.New("the client sends settings, and takes no answers to them")

// settingsMax is the largest frame of settings that is looked into. Package http2 takes
// none of more than a hundred settings.
const settingsMax = 100 * 6

// read reads what package http2 is to have.
func (r *frameReader) read(from io.Reader, f *flowControl, p []byte) (int, error) {
	for len(p) > 0 {
		switch {
		case r.passed < r.ready:
			n := copy(p, r.buf[r.passed:r.ready])
			if r.passed += n; r.passed == r.ready {
				r.passed, r.ready = 0, 0
				if cap(r.buf) > largestFrame {
					r.buf = nil
				}
			}
			return n, nil
		case r.left > 0:
			n, err := from.Read(p[:min(len(p), r.left)])
			r.left -= n
			return n, err
		}
		if err := r.next(from, f); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// next reads the head of a frame, and the whole frame if it is one that tells something.
func (r *frameReader) next(from io.Reader, f *flowControl) error {
	if r.buf == nil {
		r.buf = make([]byte, frameHead+4)
	}
	if r.have == 0 {
		if n := f.pendingUpdate(); n > 0 {
			r.makeUpdate(n)
			return nil
		}
		if r.shorts.asked() {
			r.give(clientLeaves)
			return nil
		}
		r.acknowledge()
	}
	if err := r.fill(from, frameHead); err != nil {
		return err
	}
	h := head(r.buf[:frameHead])
	if r.shorts != nil {
		if took, err := r.shorts.follow(r, from, f, &h); took || err != nil {
			r.limiter.frame(&h, f)
			return err
		}
	}
	n := h.length()
	if r.shorts != nil && r.shorts.conn.rest.alone.Load() && h.asks() {
		return r.pong(from, f, &h)
	}
	switch kind := h.kind(); {
	case kind == updateFrame && n == 4, kind == resetFrame && n == 4, kind == settingsFrame && n <= settingsMax && !h.has(ack), kind == pingFrame && n == len(partingMark) && h.has(ack):
		if err := r.fill(from, frameHead+n); err != nil {
			return err
		}
	}
	left := frameHead + n - r.have // a part of the payload may have been read for somebody who does not want it any more
	r.pass(r.have)
	if err := r.inspect(f); err != nil {
		r.ready = 0
		return err
	}
	r.left = left
	r.limiter.frame(&h, f)
	switch {
	case r.shorts != nil && r.rest.over.Load() && h.kind() == settingsFrame && !h.has(ack) && left == 0:
		if r.ready, r.owed = 0, r.owed+1; r.owed > owedMax {
			return errUntaken
		}
		r.acknowledge()
	case r.rest != nil:
		r.rest.asks(&h)
	}
	return nil
}

// acknowledge answers settings that package http2 does not, unless the client takes nothing now.
func (r *frameReader) acknowledge() {
	if r.owed == 0 || r.shorts.conn.queue.blocked() {
		return
	}
	for ; r.owed > 0; r.owed-- {
		r.shorts.conn.frames.append(func(out []byte) []byte { return append(out, 0, 0, 0, settingsFrame, ack, 0, 0, 0, 0) })
	}
	r.shorts.conn.sendQueued(false)
}

// pong answers a ping on a connection that rests. A client that takes nothing is left to package
// http2, which does not keep answers without end.
func (r *frameReader) pong(from io.Reader, f *flowControl, h *head) error {
	c, n := r.shorts.conn, frameHead+h.length()
	if err := r.fill(from, n); err != nil {
		return err
	}
	if c.queue.blocked() {
		r.pass(n)
		r.rest.asks(h)
		return nil
	}
	c.frames.addPong(r.buf[frameHead:n])
	c.sendQueued(false)
	r.have = 0
	r.limiter.frame(h, f)
	return nil
}

// makeUpdate makes a frame that tells package http2 of more of the connection's window.
func (r *frameReader) makeUpdate(n int64) {
	r.ready = frameHead + 4
	copy(r.buf, []byte{0, 0, 4, updateFrame, 0, 0, 0, 0, 0})
	binary.BigEndian.PutUint32(r.buf[frameHead:], uint32(n))
}

// clientLeaves is a frame by which a client says that it is about to go. Package http2 then
// tells it to, and closes the connection once nothing is under way.
var clientLeaves = []byte{0, 0, 8, goAwayFrame, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

// pass has package http2 get the first n bytes of what was read, which are all of it.
func (r *frameReader) pass(n int) { r.ready, r.have = n, 0 }

// give has package http2 get bytes instead of what was read.
func (r *frameReader) give(p []byte) {
	r.buf = append(r.buf[:0], p...)
	r.ready, r.have = len(p), 0
}

// inspect learns from a frame, and changes what package http2 gets of it.
func (r *frameReader) inspect(f *flowControl) error {
	h, payload := (*head)(r.buf), r.buf[frameHead:r.ready]
	id := h.stream()
	switch kind := h.kind(); {
	case kind == headersFrame:
		return f.opened(id)
	case len(payload) == 0:
	case kind == settingsFrame:
		f.settings(payload)
	case kind == pingFrame:
		if r.parting != nil {
			r.parting.answered(payload)
		}
	case kind == resetFrame:
		f.reset(id)
		if f.goesOn(id) {
			r.ready = 0
		}
		if r.shorts != nil {
			if r.shorts.reset(id); r.shorts.foreign(id) && id <= f.latest() {
				r.ready = 0
			}
		}
	case kind == updateFrame:
		n := binary.BigEndian.Uint32(payload) & largestWindow
		if n == 0 {
			return nil // package http2 answers that with an error
		}
		if r.shorts != nil && f.overflows(id, int64(n)) {
			r.overflow(id)
			return nil
		}
		n = uint32(f.updated(id, int64(n)))
		if n == 0 || f.goesOn(id) || r.shorts != nil && r.shorts.foreign(id) && id <= f.latest() {
			r.ready = 0
		}
		binary.BigEndian.PutUint32(payload, n)
	}
	return nil
}

// overflow is told that a window has become larger than there may be any. Package http2 does
// not know how large that of a connection is: it is told of so much that it says the same.
func (r *frameReader) overflow(id uint32) {
	if id != 0 {
		r.shorts.refuse(id, resetFlow)
		r.ready = 0
		return
	}
	r.makeUpdate(largestWindow)
	r.give(append(bytes.Clone(r.buf[:r.ready]), r.buf[:r.ready]...))
}

// fill reads until n bytes are in buf.
func (r *frameReader) fill(from io.Reader, n int) error {
	if len(r.buf) < n {
		r.buf = append(r.buf, make([]byte, n-len(r.buf))...)
	}
	for r.have < n {
		m, err := from.Read(r.buf[r.have:n])
		r.have += m
		if err != nil && r.have < n {
			return err
		}
	}
	return nil
}
